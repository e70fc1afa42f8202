#pragma once

#include <torch/nn/module.h>

#include "models/embedding_options.h"
#include "models/parts.h"
#include "nn/embedding.h"

namespace stretto::models {

/// The table that a part looks its tokens up in, its own or another part's, with the part's factor
/// of looked-up rows.
///
/// Shape letters: N rows of all sequences, D model width.
class TokenEmbedding {
 public:
  /// Another part's table is registered by its owner alone, so that it has one name.
  TokenEmbedding(torch::nn::Module& owner, const PartSetup& setup, const EmbeddingKind& kind);

  /// weight[ids] * scale + position; see nn::Embedding.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& position = {},
                     const at::Tensor& dropped = {}) const {
    return table_->forward(ids, position, dropped, scale_);
  }

  const nn::Embedding& table() const { return table_; }
  nn::RowScale scale() const { return scale_; }
  /// How the rows of the table start. Learned positions start alike: beside rows that no factor
  /// multiplies they are then as large as these.
  const nn::InitRule& first_rows() const { return first_rows_; }

 private:
  nn::RowScale scale_;
  nn::InitRule first_rows_;
  nn::Embedding table_;
};

}  // namespace stretto::models
