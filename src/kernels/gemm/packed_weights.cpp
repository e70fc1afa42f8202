#include "kernels/gemm/packed_weights.h"

namespace stretto::kernels {
namespace {

thread_local PackedWeights* packed_in_use = nullptr;

}  // namespace

std::shared_ptr<const gemm::Packed> PackedWeights::shared(const at::Tensor& weight,
                                                          Compute compute) {
  const Key key{weight.const_data_ptr(), weight.size(0), weight.size(1), compute};
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  if (!entry.packed) {
    entry.weight = weight;
    entry.packed =
        std::make_shared<gemm::Packed>(gemm::Operand{weight, true}, compute, gemm::Pages::kLarge);
  }
  return entry.packed;
}

at::Tensor PackedWeights::made_of(const at::Tensor& weight,
                                  const std::function<at::Tensor()>& make) {
  const std::lock_guard lock(mutex_);
  auto& [of, made] = made_[weight.const_data_ptr()];
  if (!made.defined()) {
    made = make();
    of = weight;
  }
  return made;
}

PackedWeightsScope::PackedWeightsScope(PackedWeights& weights) : before_(packed_in_use) {
  packed_in_use = &weights;
}

PackedWeightsScope::~PackedWeightsScope() {
  packed_in_use = before_;
}

bool PackedWeightsScope::is_used() {
  constexpr int64_t kManyRows = 1024;
  return gemm::is_taken(kManyRows, kManyRows, kManyRows);
}

PackedWeights* PackedWeightsScope::current() {
  return is_used() ? packed_in_use : nullptr;
}

}  // namespace stretto::kernels
