#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/Storage.h>

#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/gemm/packed_weights.h"
#include "kernels/quantised/quantised.h"

namespace stretto::kernels {
namespace {

/// What the storage of a stand-in owns. Its first dimension has a step of one number, and its
/// second none, so that the place of a view's first number is the number of its first row.
struct StoodForMatrix {
  std::shared_ptr<const QuantisedMatrix> matrix;
  std::vector<float> nothing;  // NaN for each row
};

/// By which the storage is known.
void delete_stood_for(void* owned) {
  delete static_cast<StoodForMatrix*>(owned);
}

}  // namespace

at::Tensor stand_in(std::shared_ptr<const QuantisedMatrix> matrix) {
  TORCH_CHECK(matrix != nullptr, "[quantised] a stand-in needs a matrix");
  // A parameter is changed and read outside of inference mode too.
  const c10::InferenceMode normal(false);
  const int64_t outputs = matrix->outputs(), inputs = matrix->inputs();
  auto owned = std::make_unique<StoodForMatrix>();
  owned->matrix = std::move(matrix);
  owned->nothing.assign(static_cast<size_t>(outputs), std::numeric_limits<float>::quiet_NaN());
  float* data = owned->nothing.data();
  at::DataPtr memory(data, owned.release(), &delete_stood_for, c10::Device(c10::kCPU));
  const c10::Storage storage(c10::Storage::use_byte_size_t(),
                             static_cast<size_t>(outputs) * sizeof(float), std::move(memory),
                             /*allocator=*/nullptr, /*resizable=*/false);
  at::Tensor tensor = at::empty({0}, at::kFloat);
  tensor.set_(storage, 0, {outputs, inputs}, {1, 0});
  return tensor;
}

std::optional<StoodFor> stood_for(const at::Tensor& weight) {
  if (!weight.defined() || !weight.has_storage() || !weight.is_cpu()) return std::nullopt;
  const at::DataPtr& memory = weight.storage().data_ptr();
  if (memory.get_deleter() != &delete_stood_for) return std::nullopt;
  const auto& owned = *static_cast<const StoodForMatrix*>(memory.get_context());
  const bool is_rows = weight.dim() == 2 && weight.scalar_type() == at::kFloat &&
                       weight.size(1) == owned.matrix->inputs() &&
                       (weight.size(0) <= 1 || weight.stride(0) == 1) &&
                       (weight.size(1) <= 1 || weight.stride(1) == 0);
  TORCH_CHECK(is_rows, "[quantised] only whole rows can be cut from a weight of ",
              owned.matrix->bits(), " bits, got ", weight.sizes(), " with strides ",
              weight.strides());
  return StoodFor{owned.matrix.get(), weight.storage_offset(), weight.size(0)};
}

at::Tensor dense_weight(const at::Tensor& weight) {
  const std::optional<StoodFor> rows = stood_for(weight);
  if (!rows) return weight;
  // A part that is cut anew each time would be kept under the address of its first row.
  auto* kept = PackedWeightsScope::current();
  const bool is_whole = rows->first == 0 && rows->count == rows->matrix->outputs();
  const auto make = [&] { return rows->matrix->dense(rows->first, rows->count); };
  return kept != nullptr && is_whole ? kept->made_of(weight, make) : make();
}

at::Tensor weight_rows(const at::Tensor& weight, const at::Tensor& ids) {
  const std::optional<StoodFor> rows = stood_for(weight);
  if (!rows) return weight.index_select(0, ids);
  return rows->matrix->rows(rows->first == 0 ? ids : ids + rows->first);
}

}  // namespace stretto::kernels
