#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "kernels/convolution/packed_2d.h"
#include "nn/batch_norm.h"
#include "nn/init.h"

namespace stretto::nn {

struct PackedConv2dOptions {
  int64_t time_kernel = 3;  ///< taps
  int64_t column_kernel = 3;
  int64_t time_stride = 1;
  int64_t column_stride = 1;
};

/// Convolution over time and columns of packed rows, without a bias (kernels::
/// packed_convolution_2d). The weight has PyTorch's shape [O, C, taps of time, taps of columns] and
/// starts normal with variance 2 / (taps (C + O)) (Glorot and Bengio 2010), all taps together.
///
/// C channels in, O channels out, W and W' columns, N rows that go in, M that come out.
class PackedConv2dImpl : public torch::nn::Module {
 public:
  PackedConv2dImpl(const Init& init, int64_t in, int64_t out,
                   const PackedConv2dOptions& options = {});
  /// x [N, W * C] -> [M, W' * O]
  at::Tensor forward(const at::Tensor& x, const kernels::Offsets& offsets) const;
  /// The same with another weight of this shape, and with a bias [O] unless it is undefined.
  at::Tensor forward_by(const at::Tensor& filters, const at::Tensor& shift, const at::Tensor& x,
                        const kernels::Offsets& offsets) const;

  int64_t columns_out(int64_t columns) const {
    return (columns + options_.column_stride - 1) / options_.column_stride;
  }
  /// For one row that comes out, of so many columns that go in.
  double operations(int64_t columns) const {
    return 2 * static_cast<double>(weight.numel()) * static_cast<double>(columns_out(columns));
  }
  const PackedConv2dOptions& options() const { return options_; }

  at::Tensor weight;

 private:
  PackedConv2dOptions options_;
};
TORCH_MODULE(PackedConv2d);

/// end(norm(conv(x))), the norm over rows and columns; in evaluation part of the filters, as
/// convolved_rows() of nn/conv1d.h has it.
at::Tensor convolved_rows(const at::Tensor& x, const kernels::Offsets& offsets,
                          const PackedConv2d& conv, const BatchNorm& norm,
                          kernels::PlaneEnd end = kernels::PlaneEnd::kNone);

}  // namespace stretto::nn
