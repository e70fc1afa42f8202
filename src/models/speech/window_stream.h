#pragma once

#include <cstdint>
#include <functional>

#include "models/speech/speech_stream.h"

namespace stretto::models {

/// Which rows an output row of a layer sees: row t sees rows t * stride - left to t * stride +
/// right of what the layer reads, and zeroes beyond the ends.
struct RowWindow {
  int64_t left = 0, right = 0;
  int64_t stride = 1;
};

/// A layer that sees a window of rows, as a stream: it keeps the rows that windows to come will
/// see, and no more. A row is certain once the last row of its window is there.
class WindowStream : public RowStream {
 public:
  /// What the layer makes of a whole sequence: rows [n, F] -> [ceil(n / stride), D].
  using Layer = std::function<at::Tensor(const at::Tensor& rows)>;

  /// @param none  no rows, [0, F], in the type and on the device of those that will come
  WindowStream(const RowWindow& window, Layer layer, const at::Tensor& none);

  at::Tensor push(const at::Tensor& rows) override;
  at::Tensor finish() override;

 private:
  /// Rows next_ to `end` - 1, and forgets what no later row sees.
  at::Tensor take(int64_t end);

  RowWindow window_;
  Layer layer_;
  at::Tensor kept_;    // rows first_ and on, [n, F]
  int64_t first_ = 0;  // a multiple of the stride
  int64_t seen_ = 0;   // rows that came in
  int64_t next_ = 0;   // the row that goes out next
};

}  // namespace stretto::models
