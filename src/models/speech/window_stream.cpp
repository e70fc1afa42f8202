#include "models/speech/window_stream.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace stretto::models {

WindowStream::WindowStream(const RowWindow& window, Layer layer, const at::Tensor& none)
    : window_(window), layer_(std::move(layer)), kept_(none) {}

at::Tensor WindowStream::push(const at::Tensor& rows) {
  TORCH_CHECK(rows.dim() == 2 && rows.size(1) == kept_.size(1), "[stream] rows must be [n, ",
              kept_.size(1), "], got ", rows.sizes());
  kept_ = at::cat({kept_, rows});
  seen_ += rows.size(0);
  // Row t is certain when row t * stride + right is there.
  const int64_t last = seen_ - 1 - window_.right;
  return take(last < 0 ? 0 : last / window_.stride + 1);
}

at::Tensor WindowStream::finish() {
  return take((seen_ + window_.stride - 1) / window_.stride);
}

at::Tensor WindowStream::take(int64_t end) {
  if (end <= next_) return layer_(kept_.narrow(0, 0, 0));
  const at::Tensor taken =
      layer_(kept_).narrow(0, next_ - first_ / window_.stride, end - next_).clone();
  next_ = end;
  const int64_t needed = std::clamp<int64_t>(next_ * window_.stride - window_.left, 0, seen_);
  const int64_t first = needed / window_.stride * window_.stride;
  if (first > first_) {
    kept_ = kept_.narrow(0, first - first_, seen_ - first).clone();
    first_ = first;
  }
  return taken;
}

}  // namespace stretto::models
