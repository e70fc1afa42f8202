#include "kernels/convolution/convolution_2d.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "kernels/compute.h"
#include "kernels/convolution/windows.h"
#include "kernels/dispatch.h"
#include "kernels/fused_common.h"
#include "kernels/rounding.h"

namespace stretto::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

constexpr std::array<int64_t, 2> kOnes{1, 1}, kZeroes{0, 0};

at::Tensor convolve_planes(const at::Tensor& x, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias, const PlaneWindow& window) {
  return at::convolution(x, weight, bias, window.strides(), window.paddings(), kOnes,
                         /*transposed=*/false, kZeroes, window.groups);
}

/// libtorch allows TF32 in convolutions of a GPU by default, and kFp32 is to be fp32.
class ConvolutionTf32 {
 public:
  explicit ConvolutionTf32(const at::Tensor& x, bool allowed)
      : before_(at::globalContext().allowTF32CuDNN()), changed_(x.is_cuda() && before_ != allowed) {
    if (changed_) at::globalContext().setAllowTF32CuDNN(allowed);
  }
  ~ConvolutionTf32() {
    if (changed_) at::globalContext().setAllowTF32CuDNN(before_);
  }
  ConvolutionTf32(const ConvolutionTf32&) = delete;
  ConvolutionTf32& operator=(const ConvolutionTf32&) = delete;

 private:
  bool before_, changed_;
};

/// What operands are handed to libtorch as: in the half type where its products are meant to be
/// faster, or rounded in fp32.
at::Tensor plane_operand(const at::Tensor& x, Compute compute) {
  const at::Tensor dense = x.contiguous(kChannelsLast);
  if (!is_half(compute)) return dense;
  const at::ScalarType type = half_type(compute);
  const bool narrow = x.is_cuda() || (compute == Compute::kBf16 && has_fast_bf16());
  const at::Tensor half = dense.to(type);
  return narrow ? half : half.to(at::kFloat);
}

/// A result as fp32 with the numbers of the half type.
at::Tensor plane_result(const at::Tensor& y, Compute compute) {
  if (!is_half(compute)) return y;
  return (y.scalar_type() == at::kFloat ? y.to(half_type(compute)) : y).to(at::kFloat);
}

struct Convolution2dNode : torch::autograd::Function<Convolution2dNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const PlaneWindow& window) {
    const Compute compute = ComputeScope::current();
    const at::Tensor planes = plane_operand(x, compute), filters = plane_operand(weight, compute);
    const ConvolutionTf32 tf32(x, compute == Compute::kTf32);
    ctx->save_for_backward({planes, filters});
    const auto strides = window.strides(), paddings = window.paddings();
    ctx->saved_data["strides"] = std::vector<int64_t>(strides.begin(), strides.end());
    ctx->saved_data["paddings"] = std::vector<int64_t>(paddings.begin(), paddings.end());
    ctx->saved_data["groups"] = window.groups;
    ctx->saved_data["biased"] = bias.has_value();
    fused::keep(ctx, compute);
    const auto shift = bias ? std::optional(bias->to(planes.scalar_type())) : std::nullopt;
    return plane_result(convolve_planes(planes, filters, shift, window), compute)
        .contiguous(kChannelsLast);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &planes = saved[0], &filters = saved[1];
    const Compute compute = fused::kept_compute(ctx);
    const auto numbers = [&](const char* name) { return ctx->saved_data[name].toIntVector(); };
    const ConvolutionTf32 tf32(planes, compute == Compute::kTf32);
    const bool biased = ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2);
    const at::Tensor slope = plane_operand(grads[0], compute);
    const auto strides = numbers("strides"), paddings = numbers("paddings");
    const PlaneWindow window{.stride = strides[0],
                             .padding = paddings[0],
                             .groups = ctx->saved_data["groups"].toInt(),
                             .stride_width = strides[1],
                             .padding_width = paddings[1]};
    const bool by_windows = ctx->needs_input_grad(1) && is_fused(planes) && !is_half(compute) &&
                            windows::takes_filter_slopes(filters, window);
    const std::array<bool, 3> wanted{ctx->needs_input_grad(0),
                                     ctx->needs_input_grad(1) && !by_windows, false};
    at::Tensor dx, dweight;
    if (wanted[0] || wanted[1])
      std::tie(dx, dweight, std::ignore) = at::convolution_backward(
          slope, planes, filters, at::OptionalIntArrayRef(), strides, paddings, kOnes,
          /*transposed=*/false, kZeroes, window.groups, wanted);
    if (by_windows) dweight = windows::filter_slopes(planes, slope, filters, window);
    return {dx.defined() ? plane_result(dx, compute) : dx,
            dweight.defined() ? plane_result(dweight, compute) : dweight,
            biased ? grads[0].sum({0, 2, 3}) : at::Tensor(),
            {}};
  }
};

void check_planes(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const PlaneWindow& window) {
  TORCH_CHECK(x.dim() == 4 && weight.dim() == 4 && weight.size(1) * window.groups == x.size(1),
              "[kernels] convolution_2d: x must be [N, C, H, W] with C = ", window.groups,
              " times ", weight.dim() == 4 ? weight.size(1) : 0, ", got ", x.sizes(),
              " and weight ", weight.sizes());
  const auto strides = window.strides(), paddings = window.paddings();
  TORCH_CHECK(window.stride > 0 && window.stride_width >= 0 && window.padding >= 0 &&
                  window.groups > 0 && weight.size(0) % window.groups == 0,
              "[kernels] convolution_2d: strides ", strides[0], " and ", strides[1], ", paddings ",
              paddings[0], " and ", paddings[1], " and ", window.groups,
              " groups do not fit weight ", weight.sizes());
  TORCH_CHECK(x.size(2) + 2 * paddings[0] >= weight.size(2) &&
                  x.size(3) + 2 * paddings[1] >= weight.size(3),
              "[kernels] convolution_2d: planes ", x.sizes(), " are smaller than filters ",
              weight.sizes());
  TORCH_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)),
              "[kernels] convolution_2d: bias must be [", weight.size(0), "], got ", bias.sizes());
}

}  // namespace

at::Tensor convolution_2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                          const PlaneWindow& window) {
  check_planes(x, weight, bias, window);
  const auto shift = bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt;
  const bool rounds = x.scalar_type() == at::kFloat && is_half(ComputeScope::current());
  const bool learns_by_windows = at::GradMode::is_enabled() && is_fused(x) && is_fused(weight) &&
                                 x.numel() > 0 && windows::takes_filter_slopes(weight, window);
  if (rounds || x.is_cuda() || learns_by_windows) {
    return Convolution2dNode::apply(x, weight, shift, window);
  }
  // The layout of planes and filters of one channel is ambiguous: only then is the result copied.
  return convolve_planes(x.contiguous(kChannelsLast), weight.contiguous(kChannelsLast), shift,
                         window)
      .contiguous(kChannelsLast);
}

}  // namespace stretto::kernels
