#include "compress/quantise.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "compress/quantise_scales.h"
#include "compress/quantise_values.h"
#include "compress/stored_numbers.h"
#include "store/quantised_file.h"

namespace stretto::compress {
namespace {

constexpr int64_t kGrainWeights = int64_t{1} << 14;  // of a thread

int64_t weights_of_scale(const store::QuantFormat& format, const store::QuantLayout& layout) {
  const bool whole = format.scope == store::QuantScope::kTensor;
  return whole ? layout.rows * layout.columns : layout.group_columns;
}

/// Calls body(index of a scale, its first weight, how many there are), on several threads.
template <class Body>
void for_each_scale(const store::QuantFormat& format, const store::QuantLayout& layout,
                    const Body& body) {
  const int64_t count = weights_of_scale(format, layout);
  const int64_t grain = std::max<int64_t>(1, kGrainWeights / count);
  at::parallel_for(0, layout.num_scales(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) body(index, index * count, count);
  });
}

ScaleAndZero scale_by(Rounding rounding, std::span<const float> weights,
                      const store::QuantFormat& format) {
  return rounding == Rounding::kNearest ? spanning_scale(weights, format)
                                        : least_error_scale(weights, {}, format);
}

std::span<const float> part_of_matrix(const at::Tensor& matrix, int64_t first, int64_t count) {
  return {matrix.const_data_ptr<float>() + first, static_cast<size_t>(count)};
}

double relative_error(const at::Tensor& weight, const store::QuantisedTensor& packed) {
  const at::Tensor before = weight.to(at::kDouble);
  const double norm = before.norm().item<double>();
  const double change = (dequantise(packed.view()).to(at::kDouble) - before).norm().item<double>();
  return norm == 0 ? 0 : change / norm;
}

}  // namespace

store::QuantisedTensor quantise(const at::Tensor& weight, const store::QuantFormat& format,
                                Rounding rounding, const std::string& name) {
  TORCH_CHECK(rounding != Rounding::kCalibrated, "[quantise] `", name,
              "`: calibrated rounding needs inputs: quantise_calibrated()");
  const at::Tensor matrix = dense_matrix(weight, format, name);
  const std::vector<int64_t> shape = weight.sizes().vec();
  const store::QuantLayout layout = store::layout_of(format, shape);
  store::QuantisedValues values = empty_values(format, layout);
  for_each_scale(format, layout, [&](int64_t index, int64_t first, int64_t count) {
    const auto weights = part_of_matrix(matrix, first, count);
    const ScaleAndZero choice = scale_by(rounding, weights, format);
    set_choice(values, index, choice);
    round_to_codes(
        weights, choice, format,
        std::span(values.codes).subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
  });
  return packed_values(format, shape, values, name);
}

at::Tensor dequantise(const store::QuantisedView& packed) {
  const store::QuantLayout layout = packed.layout();
  at::Tensor weight = at::empty(packed.shape, at::dtype(at::kFloat));
  auto* out = weight.mutable_data_ptr<float>();
  const int64_t grain = std::max<int64_t>(1, kGrainWeights / layout.columns);
  at::parallel_for(0, layout.rows, grain, [&](int64_t begin, int64_t end) {
    store::dequantise_rows(
        packed, begin, end - begin,
        {out + begin * layout.columns, static_cast<size_t>((end - begin) * layout.columns)});
  });
  return weight;
}

at::Tensor nearest(const at::Tensor& weight, const store::QuantFormat& format) {
  const at::Tensor matrix = dense_matrix(weight, format, "weight");
  const store::QuantLayout layout = store::layout_of(format, weight.sizes().vec());
  at::Tensor rounded = at::empty_like(matrix);
  auto* out = rounded.mutable_data_ptr<float>();
  for_each_scale(format, layout, [&](int64_t, int64_t first, int64_t count) {
    const auto weights = part_of_matrix(matrix, first, count);
    const ScaleAndZero choice = spanning_scale(weights, format);
    std::vector<int8_t> codes(weights.size());
    round_to_codes(weights, choice, format, codes);
    for (int64_t i = 0; i < count; ++i) {
      out[first + i] = weight_of(codes[static_cast<size_t>(i)], choice);
    }
  });
  return rounded.view(weight.sizes()).to(weight.device());
}

std::vector<store::TensorView> QuantisedModel::tensors() const {
  std::vector<store::TensorView> all = kept;
  for (const auto& [name, tensor] : packed) {
    const auto parts = store::stored_tensors(name, tensor.view());
    all.insert(all.end(), parts.begin(), parts.end());
  }
  return all;
}

std::string QuantisedModel::metadata() const {
  std::map<std::string, store::QuantisedShape> shapes;
  for (const auto& [name, tensor] : packed) shapes[name] = {tensor.format, tensor.shape};
  return store::quantised_metadata(shapes);
}

QuantisedModel quantise_model(const store::SafetensorsFile& model, const store::QuantPlan& plan,
                              Rounding rounding,
                              const std::map<std::string, std::vector<RowInputs>>& inputs,
                              const CalibratedOptions& options) {
  QuantisedModel quantised;
  for (const auto& planned : plan.tensors) {
    const store::TensorView* view = model.find(planned.name);
    TORCH_CHECK(view != nullptr && view->shape == planned.shape, "[quantise] the plan is of ",
                "another model: `", planned.name, "`");
    if (!planned.format) {
      quantised.kept.push_back(*view);
      continue;
    }
    const at::Tensor weight = stored_numbers(*view);
    const auto seen = inputs.find(planned.name);
    const bool calibrated = rounding == Rounding::kCalibrated && seen != inputs.end();
    const Rounding otherwise = rounding == Rounding::kCalibrated ? Rounding::kLeastError : rounding;
    auto packed = calibrated ? quantise_calibrated(weight, *planned.format, seen->second, options,
                                                   planned.name)
                             : quantise(weight, *planned.format, otherwise, planned.name);
    quantised.errors[planned.name] = relative_error(weight, packed);
    quantised.packed[planned.name] = std::move(packed);
  }
  return quantised;
}

}  // namespace stretto::compress
