#include "kernels/cpu/table.h"

#include <atomic>

namespace stretto::kernels::cpu {
namespace {

std::atomic<const Table*>& in_use() {
  static std::atomic<const Table*> level{levels().front()};
  return level;
}

/// The loops of AVX-512 as they are, with the products that the processor has besides; the newest
/// of them names it.
const Table& avx512_with_more() {
  static const Table with_more = [] {
    Table table = avx512::kTable;
    if (__builtin_cpu_supports("avx512vnni")) {
      table.name = "avx512_vnni";
      table.quantised = avx512_vnni::kQuantised;
    }
    if (__builtin_cpu_supports("avx512bf16")) {
      table.name = "avx512_bf16";
      table.pack_bf16 = avx512_bf16::pack;
      table.product_bf16 = avx512_bf16::product;
    }
    return table;
  }();
  return with_more;
}

}  // namespace

const std::vector<const Table*>& levels() {
  static const std::vector<const Table*> found = [] {
    std::vector<const Table*> tables;
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
      if (__builtin_cpu_supports("avx512bf16") || __builtin_cpu_supports("avx512vnni"))
        tables.push_back(&avx512_with_more());
      tables.push_back(&avx512::kTable);
    }
    if (has_avx2) tables.push_back(&avx2::kTable);
    tables.push_back(&portable::kTable);
    return tables;
  }();
  return found;
}

const Table& table() {
  return *in_use().load(std::memory_order_relaxed);
}

LevelGuard::LevelGuard(const Table& level) : before_(in_use().exchange(&level)) {}

LevelGuard::~LevelGuard() {
  in_use().store(before_);
}

bool has_byte_product() {
  return table().quantised.product == avx512_vnni::kQuantised.product;
}

bool has_fast_product() {
  static const bool intel = __builtin_cpu_is("intel");
  return !intel && &table() != &portable::kTable;
}

}  // namespace stretto::kernels::cpu
