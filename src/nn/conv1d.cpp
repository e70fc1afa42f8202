#include "nn/conv1d.h"

#include <ATen/ATen.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/gemm/packed_weights.h"
#include "kernels/kernels.h"
#include "nn/watch.h"

namespace stretto::nn {
namespace {

InitRule first_filters(int64_t in, int64_t out, const Conv1dOptions& options) {
  if (options.rule) return *options.rule;
  const auto taps = static_cast<double>(options.kernel);
  const auto channels = static_cast<double>((in + out) / options.groups);
  const double variance = options.depthwise ? 1 / taps : 2 / (taps * channels);
  return {.distribution = Distribution::kNormal, .number = std::sqrt(variance)};
}

}  // namespace

Conv1dImpl::Conv1dImpl(const Init& init, int64_t in, int64_t out, const Conv1dOptions& options)
    : options_(options) {
  TORCH_CHECK(!options.depthwise || in == out, "[nn] one filter for each of ", in,
              " channels gives as many, not ", out);
  TORCH_CHECK(options.groups > 0 && in % options.groups == 0 && out % options.groups == 0 &&
                  (options.groups == 1 || !options.depthwise),
              "[nn] ", options.groups, " groups do not divide ", in, " inputs and ", out,
              " outputs");
  const int64_t columns = options.depthwise ? options.kernel : options.kernel * in / options.groups;
  weight = register_parameter("weight",
                              init.matrix("weight", out, columns, first_filters(in, out, options)));
  if (options.bias) bias = register_parameter("bias", init.constant("bias", out, 0.0));
}

at::Tensor Conv1dImpl::forward(const at::Tensor& x, const kernels::Offsets& offsets) const {
  return watch(*this, forward_by(weight, bias, x, offsets));
}

at::Tensor Conv1dImpl::forward_by(const at::Tensor& filters, const at::Tensor& shift,
                                  const at::Tensor& x, const kernels::Offsets& offsets) const {
  const int64_t groups = options_.groups;
  if (groups == 1) return of_group(filters, shift, x, offsets);
  std::vector<at::Tensor> outputs;
  const int64_t inputs = x.size(1) / groups;
  for (int64_t g = 0; g < groups; ++g) {
    const auto own = [&](const at::Tensor& all) {
      return all.defined() ? all.slice(0, g, std::nullopt, groups).contiguous() : all;
    };
    outputs.push_back(
        of_group(own(filters), own(shift), x.narrow(1, g * inputs, inputs).contiguous(), offsets));
  }
  return at::stack(outputs, 2).flatten(1);
}

at::Tensor Conv1dImpl::of_group(const at::Tensor& filters, const at::Tensor& shift,
                                const at::Tensor& x, const kernels::Offsets& offsets) const {
  const kernels::TimeWindow window{.offsets = offsets,
                                   .kernel = options_.kernel,
                                   .border = options_.border,
                                   .dilation = options_.dilation,
                                   .stride = options_.stride};
  if (options_.depthwise) return kernels::depthwise_convolution(x, filters, shift, window);
  // Filters of a group are made anew for each product, and linear() would keep them each time.
  const bool is_map = options_.kernel == 1 && options_.stride == 1 && options_.groups == 1;
  if (is_map) return kernels::linear(x, filters, shift);
  return kernels::time_convolution(x, filters, shift, window);
}

at::Tensor normed_rows(const at::Tensor& rows, const BatchNorm& norm, const NormEnd& end) {
  // [1, C, N, W] in channels-last memory is the rows as they lie.
  const int64_t channels = norm->weight.size(0);
  const auto planes = [&](const at::Tensor& x) {
    const at::Tensor dense = x.contiguous();
    return dense.view({1, dense.size(0), dense.size(1) / channels, channels}).permute({0, 3, 1, 2});
  };
  TORCH_CHECK(rows.dim() == 2 && rows.size(1) % channels == 0, "[nn] rows of ", channels,
              " channels must be [N, columns * ", channels, "], got ", rows.sizes());
  NormEnd of_planes{.end = end.end};
  if (end.residual.defined()) of_planes.residual = planes(end.residual);
  const at::Tensor normed = norm->forward_to(of_planes, planes(rows));
  return normed.permute({0, 2, 3, 1}).reshape(rows.sizes());
}

at::Tensor convolved_rows(const at::Tensor& x, const kernels::Offsets& offsets, const Conv1d& conv,
                          const BatchNorm& norm, const NormEnd& end) {
  if (at::GradMode::is_enabled() || !norm->goes_by_running()) {
    return normed_rows(conv->forward(x, offsets), norm, end);
  }
  const BatchNormImpl::Map map = norm->running_map();
  const at::Tensor shift = conv->bias.defined() ? conv->bias * map.scale + map.shift : map.shift;
  const auto normed = [&] { return conv->weight * map.scale.unsqueeze(1); };
  // An evaluation of many batches makes the filters once.
  auto* kept = kernels::PackedWeightsScope::current();
  at::Tensor y = conv->forward_by(kept != nullptr ? kept->made_of(conv->weight, normed) : normed(),
                                  shift, x, offsets);
  if (end.residual.defined()) y = y.add_(end.residual);
  return watch(*norm, kernels::bent_plane(std::move(y), end.end));
}

}  // namespace stretto::nn
