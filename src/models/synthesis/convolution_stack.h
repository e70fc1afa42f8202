#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "kernels/kernels.h"
#include "nn/batch_norm.h"
#include "nn/packed_rows.h"
#include "nn/time_convolution.h"

namespace stretto::models {

struct ConvolutionStackOptions {
  int64_t in = 0;                 ///< channels of what it reads
  std::vector<int64_t> channels;  ///< of what each layer gives
  int64_t kernel = 5;
  bool tanh = false;        ///< behind the norms; else relu
  bool linear_end = false;  ///< nothing but dropout stands behind the last norm
  double dropout = 0;
  nn::BatchNormOptions norm;
  uint64_t first_site = 0;  ///< of dropout, one for each layer
};

/// Convolutions in time inside each sequence, zeroes beyond its ends:
///
///     x_i+1 = dropout(activation(norm_i(convolution_i(x_i))))
///
/// A sequence may be shorter than the kernel. N rows of all sequences; x [N, in] -> [N, out].
class ConvolutionStackImpl : public torch::nn::Module {
 public:
  ConvolutionStackImpl(const nn::Init& init, const ConvolutionStackOptions& options);

  at::Tensor forward(const at::Tensor& x, const kernels::Offsets& offsets,
                     const nn::DropoutSource& dropout) const;
  int64_t width() const {
    return options_.channels.empty() ? options_.in : options_.channels.back();
  }

 private:
  at::Tensor activated(const at::Tensor& x, size_t layer) const;

  ConvolutionStackOptions options_;
  std::vector<nn::TimeConvolution> convolutions_;
  std::vector<nn::BatchNorm> norms_;
};
TORCH_MODULE(ConvolutionStack);

}  // namespace stretto::models
