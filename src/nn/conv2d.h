#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "kernels/convolution/convolution_2d.h"
#include "nn/batch_norm.h"
#include "nn/init.h"
#include "nn/init_rules.h"

namespace stretto::nn {

/// Height and width of a plane, in pixels.
struct Extent {
  int64_t height = 0, width = 0;
};

struct Conv2dOptions {
  int64_t kernel = 3;  ///< height and width of the filters
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool bias = false;  ///< starts at zero
  /// How the weight starts, as a matrix [O, C / G * kernel^2]; fan_in is its columns.
  InitRule rule = {.distribution = Distribution::kHeNormal, .number = 1};
};

/// Normal with deviation sqrt(2 / (O kernel^2)): He et al. 2015 (arXiv:1502.01852) for the backward
/// pass, as torchvision and Goyal et al. start convolutions. Groups do not count.
InitRule he_fan_out(int64_t out, int64_t kernel);

/// Convolution of planes; x [N, C, H, W] -> [N, O, H', W'] in channels-last memory. The weight has
/// PyTorch's shape [O, C / G, kernel, kernel].
class Conv2dImpl : public torch::nn::Module {
 public:
  Conv2dImpl(const Init& init, int64_t in, int64_t out, const Conv2dOptions& options = {});
  at::Tensor forward(const at::Tensor& x) const;

  /// Height and width behind the convolution; 0 or less where the filter does not fit.
  Extent out_of(Extent in) const;
  /// Multiplications and additions for one sample of that height and width.
  double operations(Extent in) const;

  const Conv2dOptions& options() const { return options_; }

  at::Tensor weight;
  at::Tensor bias;  ///< undefined without bias

 private:
  Conv2dOptions options_;
};
TORCH_MODULE(Conv2d);

/// end(norm(conv(x)) + residual). In evaluation, without gradients, the norm is part of the
/// filters, which saves passes over the planes:
///
///     norm(conv(x)) = conv(x; W s) + (b - mean) s + beta        s = gamma / sqrt(var + epsilon)
at::Tensor convolved(const at::Tensor& x, const Conv2d& conv, const BatchNorm& norm,
                     const NormEnd& end = {});

}  // namespace stretto::nn
