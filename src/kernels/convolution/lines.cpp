#include "kernels/convolution/lines.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>

namespace stretto::kernels {
namespace {

struct Sequence {
  int64_t in, length, out, out_length;  // first rows and numbers of rows
};

/// One row of `kernel` entries for each row that `count_of` says a sequence has.
template <class CountOf, class Fill>
at::Tensor lines_of(const TimeWindow& window, const CountOf& count_of, const Fill& fill) {
  const at::Tensor in = window.offsets.values.to(at::kInt).contiguous();
  const at::Tensor out = output_offsets(window).values.to(at::kInt).contiguous();
  const int32_t *begins = in.const_data_ptr<int32_t>(), *ends = out.const_data_ptr<int32_t>();
  const auto at = [&](int64_t i) {
    return Sequence{begins[i], begins[i + 1] - begins[i], ends[i], ends[i + 1] - ends[i]};
  };
  const int64_t sequences = in.size(0) - 1;
  int64_t rows = 0;
  for (int64_t i = 0; i < sequences; ++i) rows += count_of(at(i));
  at::Tensor lines = at::empty({rows, window.kernel}, at::kInt);
  int32_t* to = lines.data_ptr<int32_t>();
  for (int64_t i = 0; i < sequences; ++i) {
    const Sequence sequence = at(i);
    for (int64_t t = 0; t < count_of(sequence); ++t)
      for (int64_t tap = 0; tap < window.kernel; ++tap)
        *to++ = static_cast<int32_t>(fill(sequence, t, tap));
  }
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

at::Tensor input_lines(const TimeWindow& window) {
  return lines_of(
      window, [](const Sequence& s) { return s.out_length; },
      [&, left = window.left()](const Sequence& s, int64_t t, int64_t tap) {
        const int64_t seen = t * window.stride + tap * window.dilation - left;
        return seen >= 0 && seen < s.length ? s.in + seen : -1;
      });
}

at::Tensor output_lines(const TimeWindow& window) {
  return lines_of(
      window, [](const Sequence& s) { return s.length; },
      [&, left = window.left()](const Sequence& s, int64_t t, int64_t tap) {
        const int64_t steps = t + left - tap * window.dilation;
        const int64_t from = window.stride == 1 ? steps : steps / window.stride;  // slow to divide
        const bool sees = steps >= 0 && from * window.stride == steps && from < s.out_length;
        return sees ? s.out + from : -1;
      });
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
