#include "kernels/convolution/packed_2d.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "kernels/convolution/convolution.h"
#include "kernels/convolution/convolution_2d.h"
#include "kernels/convolution/windows.h"
#include "kernels/dispatch.h"

namespace stretto::kernels {
namespace {

/// Where rows lie on the canvas that is convolved, and where those that come out are found.
struct CanvasPlaces {
  at::Tensor in, out;  ///< int64 [N] and [M]
  int64_t height = 0;
};

CanvasPlaces canvas_places(const PackedPlanes& planes, int64_t taps) {
  const int64_t stride = planes.time_stride, left = (taps - 1) / 2, right = taps - 1 - left;
  const at::Tensor bounds = planes.offsets.values.to(at::kCPU, at::kInt).contiguous();
  const int32_t* bound = bounds.const_data_ptr<int32_t>();
  std::vector<int64_t> in, out;
  CanvasPlaces places;
  int64_t begin = 0;  // of the first window of a sequence, a multiple of the stride
  for (int64_t b = 0; b + 1 < bounds.size(0); ++b) {
    const int64_t length = bound[b + 1] - bound[b], rows = (length + stride - 1) / stride;
    if (length == 0) continue;
    for (int64_t t = 0; t < length; ++t) in.push_back(begin + left + t);
    for (int64_t t = 0; t < rows; ++t) out.push_back(begin / stride + t);
    const int64_t last = begin + (rows - 1) * stride;  // where the last window begins
    places.height = std::max(begin + left + length, last + taps);
    // No window of this sequence sees the next one's rows, and none of the next one's sees these.
    const int64_t next = std::max(begin + left + length, last + right + 1);
    begin = (next + stride - 1) / stride * stride;
  }
  const at::Device device = planes.offsets.values.device();
  places.in = at::tensor(in, at::kLong).to(device);
  places.out = at::tensor(out, at::kLong).to(device);
  return places;
}

void check_packed_planes(const at::Tensor& x, const at::Tensor& weight,
                         const PackedPlanes& planes) {
  TORCH_CHECK(x.dim() == 2 && weight.dim() == 4 && planes.columns > 0 &&
                  x.size(1) == planes.columns * weight.size(1),
              "[kernels] packed_convolution_2d: x must be [N, ", planes.columns, " columns * ",
              weight.dim() == 4 ? weight.size(1) : 0, " channels], got ", x.sizes(), " and weight ",
              weight.sizes());
  TORCH_CHECK(planes.time_stride > 0 && planes.column_stride > 0,
              "[kernels] packed_convolution_2d: strides must be above 0, got ", planes.time_stride,
              " and ", planes.column_stride);
}

}  // namespace

at::Tensor packed_convolution_2d(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, const PackedPlanes& planes) {
  check_packed_planes(x, weight, planes);
  const int64_t channels = weight.size(1), filters = weight.size(0), taps = weight.size(3);
  const int64_t width = planes.columns_out() * filters;
  if (x.size(0) > 0 && is_fused(x) && is_fused(weight) && windows::takes_packed_rows()) {
    check_offsets(planes.offsets, x.size(0), "packed_convolution_2d");
    return windows::packed_convolution(x, weight, bias, planes);
  }
  const CanvasPlaces places = canvas_places(planes, weight.size(2));
  TORCH_CHECK(places.in.size(0) == x.size(0), "[kernels] packed_convolution_2d: offsets end at ",
              places.in.size(0), ", and there are ", x.size(0), " rows");
  if (x.size(0) == 0) return x.new_zeros({0, width}) + 0 * weight.sum();
  const at::Tensor lines =
      at::zeros({places.height, x.size(1)}, x.options()).index_copy(0, places.in, x);
  at::Tensor canvas = lines.view({1, places.height, planes.columns, channels});
  // libtorch pads alike on both sides; an even filter reaches one column farther to the right.
  if (taps % 2 == 0) canvas = at::constant_pad_nd(canvas, {0, 0, 0, 1});
  const at::Tensor sums = convolution_2d(canvas.permute({0, 3, 1, 2}), weight, bias,
                                         {.stride = planes.time_stride,
                                          .padding = 0,
                                          .stride_width = planes.column_stride,
                                          .padding_width = (taps - 1) / 2});
  return sums.permute({0, 2, 3, 1}).reshape({-1, width}).index_select(0, places.out);
}

}  // namespace stretto::kernels
