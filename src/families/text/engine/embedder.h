#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "models/text_model.h"
#include "text/encoded_text.h"

namespace stretto::tasks {

struct EmbedderOptions {
  std::string pooling = "mean";  ///< over all tokens with special ones, or "cls": the first one
  bool normalize = false;        ///< to length 1
};

/// One vector for each text, without padding.
class Embedder {
 public:
  Embedder(std::shared_ptr<models::TextModel> model, EmbedderOptions options);

  /// fp32 [B, D] on the CPU, contiguous, without a gradient: of one pass, from any thread.
  /// @param texts  [B], at least one, and each with a token
  at::Tensor embed(std::span<const text::EncodedText> texts) const;

  int64_t width() const;  ///< D

 private:
  std::shared_ptr<models::TextModel> model_;
  const EmbedderOptions options_;
};

}  // namespace stretto::tasks
