#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compress/quantise_inputs.h"
#include "store/quantised.h"
#include "store/quantised_plan.h"
#include "store/safetensors.h"

/// Weights rounded to few bits after training. Results depend neither on threads nor on history.
namespace stretto::compress {

enum class Rounding : uint8_t {
  kNearest,     ///< the scale spans the weights, each goes to the nearest code
  kLeastError,  ///< the scale with the least squared error, clipping what it pays to clip
  /// GPTQ (Frantar et al. 2023, arXiv:2210.17323): what rounding a column changed is made good by
  /// the columns behind it, by the inputs that the layer has on calibration rows.
  kCalibrated,
};

struct CalibratedOptions {
  double damping = 0.01;  ///< share of the mean of the Hessian's diagonal that is added to it
};

/// A weight [rows, …] of any floating-point type, rounded and packed; not with kCalibrated.
/// Throws Error(kNumeric) for weights that are infinite or NaN, Error(kBadData) for a scale beyond
/// fp16; c10::Error for a shape that cannot be packed so.
/// @param name  for messages
store::QuantisedTensor quantise(const at::Tensor& weight, const store::QuantFormat& format,
                                Rounding rounding, const std::string& name);

/// The same with what was seen of the inputs of its rows. Rows without inputs (tables that are
/// looked up, hidden weights of recurrent layers) get the least error.
store::QuantisedTensor quantise_calibrated(const at::Tensor& weight,
                                           const store::QuantFormat& format,
                                           const std::vector<RowInputs>& inputs,
                                           const CalibratedOptions& options,
                                           const std::string& name);

/// fp32, in its shape.
at::Tensor dequantise(const store::QuantisedView& packed);

/// The weights that `quantise` of kNearest would leave, without packing: for training that sees its
/// rounding. fp32 on the weight's device; not differentiable.
at::Tensor nearest(const at::Tensor& weight, const store::QuantFormat& format);

/// The tensors of a compressed model.
struct QuantisedModel {
  std::map<std::string, store::QuantisedTensor> packed;
  std::vector<store::TensorView> kept;  ///< those that stay as they are: bytes of the model's file
  /// Relative error of each packed tensor: the norm of its change divided by that of the tensor.
  std::map<std::string, double> errors;

  /// Those of its file, which look at this.
  std::vector<store::TensorView> tensors() const;
  /// What its file says of them, under store::kQuantisedKey.
  std::string metadata() const;
};

/// Packs what `plan` says of a model file, tensor by tensor: one of them is in memory as fp32 at a
/// time. Throws as quantise() does.
/// @param inputs  of tensors by name, for kCalibrated
QuantisedModel quantise_model(const store::SafetensorsFile& model, const store::QuantPlan& plan,
                              Rounding rounding,
                              const std::map<std::string, std::vector<RowInputs>>& inputs = {},
                              const CalibratedOptions& options = {});

}  // namespace stretto::compress
