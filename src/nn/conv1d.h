#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

#include "kernels/convolution/convolution.h"
#include "nn/batch_norm.h"
#include "nn/counted.h"
#include "nn/init.h"
#include "nn/init_rules.h"

namespace stretto::nn {

struct Conv1dOptions {
  int64_t kernel = 1;  ///< taps; 1 with stride 1 = a linear map of each row
  int64_t stride = 1;
  int64_t dilation = 1;
  kernels::Border border = kernels::Border::kCentred;
  bool depthwise = false;  ///< one filter for each channel: as many channels out as in
  /// G: output channel o sees the inputs of group o % G alone, C / G channels next to each other.
  /// Outputs of the groups alternate, so that a convolution behind this one sees all of them
  /// (ShuffleNet, Zhang et al. 2017, arXiv:1707.01083).
  int64_t groups = 1;
  bool bias = false;  ///< starts at zero
  /// How the weight starts, as the matrix that it is; nothing = normal with variance
  /// 2 / (taps (inputs + outputs)) of a group (Glorot and Bengio 2010), of one filter for each
  /// channel 1 / taps.
  std::optional<InitRule> rule = std::nullopt;
};

/// Convolution in time of packed rows, without padding: a sequence sees itself alone, and zeroes
/// beyond its ends.
///
/// C channels in, O channels out, K taps, G groups, N rows that go in, M that come out.
class Conv1dImpl : public torch::nn::Module, public Counted {
 public:
  Conv1dImpl(const Init& init, int64_t in, int64_t out, const Conv1dOptions& options = {});
  /// x [N, C] -> [M, O]; M = N unless it strides (kernels::output_offsets).
  at::Tensor forward(const at::Tensor& x, const kernels::Offsets& offsets) const;
  /// The same with another weight and bias of these shapes.
  at::Tensor forward_by(const at::Tensor& filters, const at::Tensor& shift, const at::Tensor& x,
                        const kernels::Offsets& offsets) const;

  /// For one row that comes out.
  double operations() const override { return 2 * static_cast<double>(weight.numel()); }
  const Conv1dOptions& options() const { return options_; }

  /// [O, K * C / G], tap-major (kernels::time_convolution), or one filter for each channel [C, K].
  at::Tensor weight;
  at::Tensor bias;  ///< [O]; undefined without bias

 private:
  at::Tensor of_group(const at::Tensor& filters, const at::Tensor& shift, const at::Tensor& x,
                      const kernels::Offsets& offsets) const;

  Conv1dOptions options_;
};
TORCH_MODULE(Conv1d);

/// end(norm(rows) + residual), which is one operator of planes. Rows are [N, C], or [N, W * C] of W
/// columns with channel c of column w at w * C + c; the norm is of the channels, over rows and
/// columns. The residual is like the rows.
at::Tensor normed_rows(const at::Tensor& rows, const BatchNorm& norm, const NormEnd& end = {});

/// normed_rows(conv(x)). In evaluation, without gradients, the norm is part of the filters, which
/// saves a pass over the rows:
///
///     norm(conv(x)) = conv(x; W s) + (b - mean) s + beta        s = gamma / sqrt(var + epsilon)
at::Tensor convolved_rows(const at::Tensor& x, const kernels::Offsets& offsets, const Conv1d& conv,
                          const BatchNorm& norm, const NormEnd& end = {});

}  // namespace stretto::nn
