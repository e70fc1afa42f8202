#include "kernels/convolution/lines.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>

namespace stretto::kernels {
namespace {

LineTaps taps_of(const TimeWindow& window) {
  return {.count = window.kernel,
          .stride = window.stride,
          .before = window.left(),
          .dilation = window.dilation};
}

/// One row of entries for each row that `count_of` says a span has.
template <class CountOf, class Fill>
at::Tensor lines_of(const std::vector<LineSpan>& spans, int64_t taps, const CountOf& count_of,
                    const Fill& fill) {
  int64_t rows = 0;
  for (const LineSpan& span : spans) rows += count_of(span);
  at::Tensor lines = at::empty({rows, taps}, at::kInt);
  int32_t* to = lines.data_ptr<int32_t>();
  for (const LineSpan& span : spans)
    for (int64_t t = 0; t < count_of(span); ++t)
      for (int64_t tap = 0; tap < taps; ++tap) *to++ = static_cast<int32_t>(fill(span, t, tap));
  return lines;
}

}  // namespace

Offsets output_offsets(const TimeWindow& window) {
  if (window.stride == 1) return window.offsets;
  const auto shorter = [&](const auto& length) {
    return (length + (window.stride - 1)).div(window.stride, "floor");
  };
  const at::Tensor& in = window.offsets.values;
  const at::Tensor lengths = shorter(in.diff());
  return {.values = at::cat({at::zeros({1}, in.options()), lengths.cumsum(0).to(in.scalar_type())}),
          .max_length = (window.offsets.max_length + window.stride - 1) / window.stride};
}

std::vector<LineSpan> spans_of(const TimeWindow& window) {
  const at::Tensor in = window.offsets.values.to(at::kInt).contiguous();
  const at::Tensor out = output_offsets(window).values.to(at::kInt).contiguous();
  const int32_t *begins = in.const_data_ptr<int32_t>(), *ends = out.const_data_ptr<int32_t>();
  std::vector<LineSpan> spans;
  for (int64_t i = 0; i + 1 < in.size(0); ++i)
    spans.push_back({begins[i], begins[i + 1] - begins[i], ends[i], ends[i + 1] - ends[i]});
  return spans;
}

at::Tensor input_lines(const std::vector<LineSpan>& spans, const LineTaps& taps) {
  return lines_of(
      spans, taps.count, [](const LineSpan& s) { return s.out_length; },
      [&](const LineSpan& s, int64_t t, int64_t tap) {
        const int64_t seen = t * taps.stride + tap * taps.dilation - taps.before;
        return seen >= 0 && seen < s.length ? s.in + seen : -1;
      });
}

at::Tensor output_lines(const std::vector<LineSpan>& spans, const LineTaps& taps) {
  return lines_of(
      spans, taps.count, [](const LineSpan& s) { return s.length; },
      [&](const LineSpan& s, int64_t t, int64_t tap) {
        const int64_t steps = t + taps.before - tap * taps.dilation;
        const int64_t from = taps.stride == 1 ? steps : steps / taps.stride;  // slow to divide
        const bool sees = steps >= 0 && from * taps.stride == steps && from < s.out_length;
        return sees ? s.out + from : -1;
      });
}

at::Tensor input_lines(const TimeWindow& window) {
  return input_lines(spans_of(window), taps_of(window));
}

at::Tensor output_lines(const TimeWindow& window) {
  return output_lines(spans_of(window), taps_of(window));
}

at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& lines, int64_t tap) {
  constexpr int64_t kGrain = 64;
  const int64_t width = x.size(1), taps = lines.size(1);
  at::Tensor out = at::empty({lines.size(0), width}, x.options());
  const float* from = x.const_data_ptr<float>();
  const int32_t* line = lines.const_data_ptr<int32_t>() + tap;
  float* to = out.data_ptr<float>();
  const auto bytes = static_cast<size_t>(width) * sizeof(float);
  at::parallel_for(0, lines.size(0), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t source = line[row * taps];
      if (source < 0)
        std::memset(to + row * width, 0, bytes);
      else
        std::memcpy(to + row * width, from + source * width, bytes);
    }
  });
  return out;
}

}  // namespace stretto::kernels
