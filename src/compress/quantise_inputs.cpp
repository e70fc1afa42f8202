#include "compress/quantise_inputs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/linear_inputs.h"
#include "nn/embedding.h"

namespace stretto::compress {
namespace {

/// Where the numbers of a parameter lie.
struct ParameterPlace {
  const char* begin = nullptr;
  const char* end = nullptr;
  std::string name;
  int64_t columns = 0;
};

/// Matrices of the model but for tables: what an output projection sees says nothing of the rows
/// that are looked up.
std::vector<ParameterPlace> places_of(const torch::nn::Module& model) {
  std::set<const void*> tables;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    const auto* table = dynamic_cast<const nn::EmbeddingImpl*>(module.get());
    if (table != nullptr) tables.insert(table->weight.unsafeGetTensorImpl());
  }
  std::vector<ParameterPlace> places;
  for (const auto& item : model.named_parameters()) {
    const at::Tensor& weight = item.value();
    const bool usable = weight.dim() >= 2 && weight.numel() > 0 && weight.is_contiguous() &&
                        weight.device().is_cpu() && weight.scalar_type() == at::kFloat &&
                        !tables.contains(weight.unsafeGetTensorImpl());
    if (!usable) continue;
    const char* begin = static_cast<const char*>(weight.const_data_ptr());
    const auto bytes = static_cast<size_t>(weight.numel()) * sizeof(float);
    places.push_back({begin, begin + bytes, item.key(), weight.numel() / weight.size(0)});
  }
  std::ranges::sort(places, {}, &ParameterPlace::begin);
  return places;
}

/// What x^T x is, summed in the same order for any number of threads.
at::Tensor moments_of(const at::Tensor& x) {
  const kernels::gemm::OwnProducts own;
  return kernels::gemm::product({x, /*transposed=*/true}, {x}, {}, kernels::Compute::kFp32);
}

}  // namespace

struct InputStatistics::State {
  explicit State(const torch::nn::Module& model)
      : places(places_of(model)),
        scope([this](const at::Tensor& x, const at::Tensor& weight) { add(x, weight); }) {}

  /// Null where the weight is none of the model's parameters, nor rows of one.
  const ParameterPlace* place_of(const at::Tensor& weight) const {
    const char* begin = static_cast<const char*>(weight.const_data_ptr());
    auto found = std::ranges::upper_bound(places, begin, {}, &ParameterPlace::begin);
    if (found == places.begin()) return nullptr;
    --found;
    const auto columns = weight.size(1);
    const bool is_rows = weight.is_contiguous() && columns == found->columns &&
                         static_cast<size_t>(weight.numel()) * sizeof(float) <=
                             static_cast<size_t>(std::max<std::ptrdiff_t>(0, found->end - begin));
    return is_rows ? &*found : nullptr;
  }

  void add(const at::Tensor& x, const at::Tensor& weight) {
    if (x.size(0) == 0 || weight.numel() == 0) return;
    const ParameterPlace* place = place_of(weight);
    if (place == nullptr) return;
    const char* begin = static_cast<const char*>(weight.const_data_ptr());
    const auto row_bytes = static_cast<std::ptrdiff_t>(sizeof(float)) * place->columns;
    const int64_t from = (begin - place->begin) / row_bytes;
    RowInputs& inputs = seen[place->name][{from, weight.size(0)}];
    const at::Tensor rows = x.detach().contiguous();
    const at::Tensor moments = moments_of(rows);
    const double lowest = rows.min().item<double>(), highest = rows.max().item<double>();
    if (inputs.num_rows == 0) {
      inputs = {.from = from, .count = weight.size(0), .num_rows = 0, .moments = moments};
      inputs.lowest = lowest;
      inputs.highest = highest;
    } else {
      inputs.moments += moments;
      inputs.lowest = std::min(inputs.lowest, lowest);
      inputs.highest = std::max(inputs.highest, highest);
    }
    inputs.num_rows += rows.size(0);
  }

  const std::vector<ParameterPlace> places;  // by their address
  /// Weight -> (first row, number of rows) -> what these saw.
  std::map<std::string, std::map<std::pair<int64_t, int64_t>, RowInputs>> seen;
  const kernels::LinearInputsScope scope;
};

InputStatistics::InputStatistics(torch::nn::Module& model)
    : state_(std::make_unique<State>(model)) {}

InputStatistics::~InputStatistics() = default;

std::map<std::string, std::vector<RowInputs>> InputStatistics::found() const {
  std::map<std::string, std::vector<RowInputs>> found;
  for (const auto& [name, ranges] : state_->seen) {
    for (const auto& [rows, inputs] : ranges) found[name].push_back(inputs);
  }
  return found;
}

}  // namespace stretto::compress
