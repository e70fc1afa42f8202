#include "distributed/numbers.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace stretto::distributed {
namespace {

std::string bytes_of(std::span<const double> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}

}  // namespace

void sum_numbers(const ProcessGroup& group, std::span<double> numbers) {
  if (!group.on_device()) {
    group.all_reduce(buffer(numbers));
    return;
  }
  const auto rows = group.all_gather_bytes(bytes_of(numbers));
  std::fill(numbers.begin(), numbers.end(), 0.0);
  for (const auto& row : rows) {  // in order of rank on every rank
    for (size_t i = 0; i < numbers.size(); ++i) {
      double value = 0;
      std::memcpy(&value, row.data() + i * sizeof(double), sizeof(double));
      numbers[i] += value;
    }
  }
}

void gather_numbers(const ProcessGroup& group, std::span<double> table) {
  const auto ranks = static_cast<size_t>(group.size());
  const size_t width = table.size() / ranks;
  if (!group.on_device()) {
    std::vector<int64_t> begins;
    for (size_t r = 0; r <= ranks; ++r) begins.push_back(static_cast<int64_t>(r * width));
    group.all_gather(buffer(table), begins);
    return;
  }
  const auto mine = table.subspan(static_cast<size_t>(group.rank()) * width, width);
  const auto rows = group.all_gather_bytes(bytes_of(mine));
  for (size_t r = 0; r < ranks; ++r) {
    std::memcpy(table.data() + r * width, rows[r].data(), width * sizeof(double));
  }
}

}  // namespace stretto::distributed
