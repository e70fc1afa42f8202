#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/text_model.h"
#include "tasks/side_by_side.h"
#include "text/encoded_text.h"

namespace stretto::tasks {

struct EmbedderOptions {
  std::string pooling = "mean";  ///< over all tokens with special ones, or "cls": the first one
  bool normalize = false;        ///< to length 1
  int64_t batch_tokens = 0;      ///< of one pass, at least one text; 0 = as fits the device
};

/// One vector for each text, without padding.
///
/// Texts are sorted by length and encoded in batches of at most `batch_tokens` tokens; vectors come
/// back in the order of the texts. On a CPU each thread encodes batches of its own. The model's
/// weights must not change while this lives: it keeps copies that are laid out for products.
class Embedder {
 public:
  Embedder(std::shared_ptr<models::TextModel> model, EmbedderOptions options);

  /// fp32 [B, D] on the CPU. The vector of a text without a single token is zero.
  at::Tensor embed(std::span<const text::EncodedText> texts);

  int64_t width() const;  ///< D
  /// Of all calls.
  int64_t num_batches() const { return num_batches_; }

 private:
  using Numbers = std::vector<size_t>;
  std::vector<Numbers> cut_into_batches(std::span<const text::EncodedText> texts) const;
  at::Tensor vectors_of(std::span<const text::EncodedText> texts, const Numbers& batch) const;

  std::shared_ptr<models::TextModel> model_;
  EmbedderOptions options_;
  SideBySide passes_;
  int64_t num_batches_ = 0;
};

}  // namespace stretto::tasks
