#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>

#include "kernels/convolution/convolution.h"
#include "nn/counted.h"
#include "nn/init.h"
#include "nn/lora.h"

namespace stretto::nn {

struct TimeConvolutionOptions {
  int64_t kernel = 1;  ///< taps; 1 = a linear map of each row
  /// The first weights are normal with variance gain / (kernel * inputs). ConvS2S (section 3.5):
  /// the share of inputs that dropout keeps, times 4 in front of a gated linear unit.
  double gain = 1.0;
  bool weight_norm = true;
};

/// What a convolution multiplies by: normalised, and with what LoRA learns.
struct TimeConvolutionWeights {
  at::Tensor weight;  ///< [O, K * C], tap-major (kernels::time_convolution)
  at::Tensor bias;    ///< [O]
};

/// Convolution in time with weight normalisation (Salimans & Kingma 2016, arXiv:1602.07868): row o
/// of what multiplies is gain[o] weight[o] / |weight[o]|. The gain starts at |weight[o]|, so that
/// the first product is that of the drawn weights; the bias starts at zero.
///
/// Where `model.lora` names this map, it also has the parameters `lora_a` [r, K * C] and `lora_b`
/// [O, r] (nn/lora.h), and `weight` above stands for weight + scale B A: LoRA turns directions, and
/// the gain stays as frozen as the rest. The sum is part of effective(), so that what this computes
/// is at any time what its merged weight would. Nothing is dropped (`model.lora.dropout`): B A
/// never meets the input by itself.
///
/// C channels in, O channels out, K taps, N rows.
class TimeConvolutionImpl : public torch::nn::Module, public Counted {
 public:
  TimeConvolutionImpl(const Init& init, int64_t in, int64_t out,
                      const TimeConvolutionOptions& options = {});

  /// The weights that multiply. One call serves a forward pass, or all steps of a decoding; within
  /// a kernels::PackedWeightsScope they are made once for all.
  TimeConvolutionWeights effective() const;

  /// A convolution with one tap: x [N, C] -> [N, O].
  at::Tensor forward(const at::Tensor& x) const { return forward(x, effective()); }
  at::Tensor forward(const at::Tensor& x, const TimeConvolutionWeights& weights) const;

  int64_t kernel() const { return options_.kernel; }
  /// For one row that comes out. What LoRA learns is added to the weight, once for all rows.
  double operations() const override { return 2 * static_cast<double>(weight.numel()); }

  at::Tensor weight;           ///< [O, K * C]
  at::Tensor gain;             ///< [O]; undefined without weight normalisation
  at::Tensor bias;             ///< [O]
  std::unique_ptr<Lora> lora;  ///< null where the map learns its own weight

 private:
  TimeConvolutionOptions options_;
};
TORCH_MODULE(TimeConvolution);

}  // namespace stretto::nn
