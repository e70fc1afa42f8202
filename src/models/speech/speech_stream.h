#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace stretto::models {

/// One utterance that comes in pieces, and what is made of its rows; in evaluation, without
/// gradients. All pieces together give what the whole utterance gives in one, to the rounding of
/// products of other sizes. It refers to the model that made it.
///
/// F width of what comes in, D width of what goes out.
class RowStream {
 public:
  RowStream() = default;
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;
  virtual ~RowStream() = default;

  /// @param rows  [n, F], the next ones, n >= 0
  /// @return      [m, D]: all rows that nothing later can change; m may be 0
  virtual at::Tensor push(const at::Tensor& rows) = 0;
  /// The rows that are left, [m, D], once the utterance is over. Nothing may be pushed after it.
  virtual at::Tensor finish() = 0;
};

}  // namespace stretto::models
