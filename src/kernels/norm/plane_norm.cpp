#include "kernels/norm/plane_norm.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "kernels/cpu/table.h"
#include "kernels/dispatch.h"

namespace stretto::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows whose sums are taken by one thread: 64 KiB of numbers, which stay in its cache. Sums of
/// blocks are added in order, so that they do not depend on the number of threads.
constexpr int64_t kBlockNumbers = 16384;

struct PlaneBlocks {
  explicit PlaneBlocks(const at::Tensor& x)
      : channels(x.size(1)),
        rows(x.size(1) == 0 ? 0 : x.numel() / x.size(1)),
        block(std::max<int64_t>(kBlockNumbers / std::max<int64_t>(channels, 1), 1)) {}

  int64_t count() const { return (rows + block - 1) / block; }
  int64_t rows_of(int64_t i) const { return std::min((i + 1) * block, rows) - i * block; }
  /// work(number, begin, end) of each block of rows, on threads.
  template <class Work>
  void each(const Work& work) const {
    at::parallel_for(0, count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) work(i, i * block, std::min((i + 1) * block, rows));
    });
  }

  int64_t channels, rows, block;
};

at::Tensor dense_planes(const at::Tensor& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor wide_zeros(int64_t size) {
  return at::zeros({size}, at::dtype(at::kDouble));
}

/// Mean and sum of squared distances to it of each channel, [2, C] in double: those of blocks put
/// together by Chan et al. 1979.
at::Tensor moments_of(const at::Tensor& x) {
  const PlaneBlocks blocks(x);
  const int64_t channels = blocks.channels;
  const at::Tensor parts = at::empty({blocks.count(), 2, channels}, x.options());
  float* const of_blocks = parts.mutable_data_ptr<float>();
  const float* const from = x.const_data_ptr<float>();
  blocks.each([&](int64_t i, int64_t begin, int64_t end) {
    float* const mine = of_blocks + i * 2 * channels;
    cpu::table().planes.moments(from, begin, end, channels, mine, mine + channels);
  });
  const at::Tensor sums = at::zeros({2, channels}, at::dtype(at::kDouble));
  double *const mean = sums.mutable_data_ptr<double>(), *const squares = mean + channels;
  double before = 0;
  for (int64_t i = 0; i < blocks.count(); ++i) {
    const auto count = static_cast<double>(blocks.rows_of(i)), all = before + count;
    const double share = count / all, weight = before * share;
    const float* const mine = of_blocks + i * 2 * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double apart = static_cast<double>(mine[c]) - mean[c];
      mean[c] += apart * share;
      squares[c] += static_cast<double>(mine[channels + c]) + apart * apart * weight;
    }
    before = all;
  }
  return sums;
}

/// Sums of slopes over all rows, [2, C] in double; `slopes` has what the first pass reads.
at::Tensor summed_slopes(const cpu::PlaneSlopes& slopes, const at::Tensor& x) {
  const PlaneBlocks blocks(x);
  const int64_t width = 2 * blocks.channels;
  const at::Tensor parts = at::empty({blocks.count(), width}, x.options());
  float* const of_blocks = parts.mutable_data_ptr<float>();
  blocks.each([&](int64_t i, int64_t begin, int64_t end) {
    cpu::table().planes.slope_sums(slopes, of_blocks + i * width, begin, end);
  });
  const at::Tensor sums = wide_zeros(width);
  double* const total = sums.mutable_data_ptr<double>();
  for (int64_t i = 0; i < blocks.count(); ++i) {
    for (int64_t j = 0; j < width; ++j) total[j] += static_cast<double>(of_blocks[i * width + j]);
  }
  return sums.view({2, -1});
}

const float* planes_or_null(const at::Tensor& x) {
  return x.defined() ? x.const_data_ptr<float>() : nullptr;
}

cpu::PlaneNorm norm_of_planes(const at::Tensor& x, const at::Tensor& map,
                              const at::Tensor& residual, PlaneEnd end) {
  const float* const scale = map.const_data_ptr<float>();
  return {.x = x.const_data_ptr<float>(),
          .scale = scale,
          .shift = scale + x.size(1),
          .residual = planes_or_null(residual),
          .channels = x.size(1),
          .end = end};
}

struct PlaneNormNode : torch::autograd::Function<PlaneNormNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& given, const at::Tensor& weight,
                            const at::Tensor& bias, const std::optional<at::Tensor>& residual,
                            double epsilon, PlaneEnd end, PlaneMoments* moments) {
    const at::Tensor x = dense_planes(given);
    const at::Tensor added = residual ? dense_planes(*residual) : at::Tensor();
    const PlaneBlocks blocks(x);
    const auto count = static_cast<double>(blocks.rows);
    const at::Tensor sums = moments_of(x);
    const at::Tensor mean = sums[0], inverse = (sums[1] / count + epsilon).rsqrt();
    moments->mean = mean.to(at::kFloat);
    moments->var = (sums[1] / (count - 1)).to(at::kFloat);
    const at::Tensor scale = inverse * weight;
    const at::Tensor map = at::cat({scale, bias - mean * scale}).to(at::kFloat);
    at::Tensor y = at::empty_like(x);
    const cpu::PlaneNorm norm = norm_of_planes(x, map, added, end);
    float* const to = y.mutable_data_ptr<float>();
    blocks.each([&](int64_t /*i*/, int64_t begin, int64_t stop) {
      cpu::table().planes.norm(norm, to, begin, stop);
    });
    const bool by_y = end == PlaneEnd::kRelu && residual;  // relu's slopes are told by y
    ctx->save_for_backward({x, weight, map, mean, inverse, by_y ? y : at::Tensor(),
                            end == PlaneEnd::kGelu ? added : at::Tensor()});
    ctx->saved_data["adds"] = residual.has_value();
    ctx->saved_data["end"] = static_cast<int64_t>(end);
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &map = saved[2], &mean = saved[3],
                     &inverse = saved[4], &y = saved[5], &residual = saved[6];
    const at::Tensor dy = dense_planes(grads[0]);
    const auto end = static_cast<PlaneEnd>(ctx->saved_data["end"].toInt());
    const bool adds = ctx->saved_data["adds"].toBool();
    const bool stores = end == PlaneEnd::kGelu || (end == PlaneEnd::kRelu && adds);
    at::Tensor dz = stores ? at::empty_like(x) : dy;
    const at::Tensor narrow_mean = mean.to(at::kFloat);
    cpu::PlaneSlopes slopes{.norm = norm_of_planes(x, map, residual, end),
                            .y = planes_or_null(y),
                            .dy = dy.const_data_ptr<float>(),
                            .mean = narrow_mean.const_data_ptr<float>(),
                            .dz = stores ? dz.mutable_data_ptr<float>() : nullptr,
                            .gain = nullptr,
                            .along = nullptr,
                            .offset = nullptr,
                            .dx = nullptr};
    const at::Tensor sums = summed_slopes(slopes, x);
    const at::Tensor dbias = sums[0].to(at::kFloat), dweight = (sums[1] * inverse).to(at::kFloat);
    if (!ctx->needs_input_grad(0))
      return {{}, dweight, dbias, adds ? dz : at::Tensor(), {}, {}, {}};
    const PlaneBlocks blocks(x);
    const auto count = static_cast<double>(blocks.rows);
    const at::Tensor gain = inverse * weight, along = gain * inverse * inverse * sums[1] / -count;
    const at::Tensor factors = at::cat({gain, along, gain * sums[0] / -count}).to(at::kFloat);
    slopes.gain = factors.const_data_ptr<float>();
    slopes.along = slopes.gain + blocks.channels;
    slopes.offset = slopes.along + blocks.channels;
    // Without a residual nobody else reads the slopes of z.
    at::Tensor dx = stores && !adds ? dz : at::empty_like(x);
    slopes.dx = dx.mutable_data_ptr<float>();
    blocks.each([&](int64_t /*i*/, int64_t begin, int64_t stop) {
      cpu::table().planes.slopes(slopes, begin, stop);
    });
    return {dx, dweight, dbias, adds ? dz : at::Tensor(), {}, {}, {}};
  }
};

void check_plane_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const at::Tensor& residual) {
  TORCH_CHECK(x.dim() == 4 && x.size(1) > 0 && x.numel() > x.size(1),
              "[kernels] plane_norm: x must be [N, C, H, W] with more than one number a channel, "
              "got ",
              x.sizes());
  TORCH_CHECK(weight.dim() == 1 && weight.size(0) == x.size(1) && bias.sizes() == weight.sizes(),
              "[kernels] plane_norm: weight and bias must be [", x.size(1), "], got ",
              weight.sizes(), " and ", bias.sizes());
  TORCH_CHECK(!residual.defined() || residual.sizes() == x.sizes(),
              "[kernels] plane_norm: the residual must be ", x.sizes(), ", got ",
              residual.defined() ? residual.sizes() : x.sizes());
}

}  // namespace

at::Tensor bent_plane(at::Tensor z, PlaneEnd end) {
  switch (end) {
    case PlaneEnd::kRelu:
      return z.relu_();
    case PlaneEnd::kGelu:
      return at::gelu(z);
    case PlaneEnd::kNone:
      break;
  }
  return z;
}

at::Tensor plane_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      const PlaneNormOptions& options, PlaneMoments& moments) {
  const at::Tensor& residual = options.residual;
  check_plane_norm(x, weight, bias, residual);
  const bool fused = is_fused(x) && is_fused(weight) && is_fused(bias) &&
                     (!residual.defined() || is_fused(residual));
  if (fused) {
    return PlaneNormNode::apply(
        x, weight, bias, residual.defined() ? std::optional<at::Tensor>(residual) : std::nullopt,
        options.epsilon, options.end, &moments);
  }
  // With a momentum of 1 libtorch's "running" statistics are the batch's.
  moments = {.mean = at::zeros(weight.sizes(), x.options().requires_grad(false)),
             .var = at::ones(weight.sizes(), x.options().requires_grad(false))};
  at::Tensor y = at::batch_norm(x, weight.to(x.scalar_type()), bias.to(x.scalar_type()),
                                moments.mean, moments.var, /*training=*/true, /*momentum=*/1,
                                options.epsilon, at::globalContext().userEnabledCuDNN());
  if (residual.defined()) y = y.add_(residual);
  return bent_plane(std::move(y), options.end);
}

}  // namespace stretto::kernels
