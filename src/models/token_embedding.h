#pragma once

#include <torch/nn/module.h>

#include "models/embedding_options.h"
#include "models/parts.h"
#include "nn/embedding.h"
#include "nn/packed_rows.h"

namespace stretto::models {

/// Rows that have values in the place of ids: values + position, [N, D], zero where a word is
/// dropped. Throws c10::Error for values that are not D wide.
at::Tensor vectors_of_values(const nn::PackedRows& rows, const at::Tensor& position,
                             int64_t d_model);

/// What a part's rows are before its first layer: vectors of the table that it looks its tokens up
/// in, its own or another part's, with the part's factor; or the values that rows have instead of
/// ids, as they are.
///
/// Shape letters: N rows of all sequences, D model width.
class TokenEmbedding {
 public:
  /// Another part's table is registered by its owner alone, so that it has one name. A part with
  /// neither (PartSetup::rows = 0) reads rows of values alone, and has no such parameter.
  TokenEmbedding(torch::nn::Module& owner, const PartSetup& setup, const EmbeddingKind& kind);

  /// weight[ids] * scale + position; see nn::Embedding.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& position = {},
                     const at::Tensor& dropped = {}) const {
    return table_->forward(ids, position, dropped, scale_);
  }

  /// The same of the rows of a batch, in which words may be dropped; or values + position.
  /// Throws c10::Error for values that are not D wide, and for ids without a table.
  at::Tensor forward(const nn::PackedRows& rows, const at::Tensor& position = {}) const;

  /// Whose type and device the vectors of these rows have. Throws c10::Error for ids without a
  /// table.
  const at::Tensor& like(const nn::PackedRows& rows) const;

  const nn::Embedding& table() const { return table_; }  ///< null where there is none
  nn::RowScale scale() const { return scale_; }
  /// How the rows of the table start. Learned positions start alike: beside rows that no factor
  /// multiplies they are then as large as these.
  const nn::InitRule& first_rows() const { return first_rows_; }

 private:
  nn::RowScale scale_;
  nn::InitRule first_rows_;
  int64_t d_model_;
  nn::Embedding table_;
};

}  // namespace stretto::models
