#include "models/token_embedding.h"

namespace stretto::models {

TokenEmbedding::TokenEmbedding(torch::nn::Module& owner, const PartSetup& setup,
                               const EmbeddingKind& kind)
    : scale_(kind.scales(setup.embedding_scale) ? nn::RowScale::kSqrtWidth : nn::RowScale::kOne),
      first_rows_(setup.shared_rows ? *setup.shared_rows
                                    : kind.first_rows(setup.embedding_scale, setup.d_model)),
      d_model_(setup.d_model),
      table_(setup.embedding) {
  if (table_ || setup.rows == 0) return;
  table_ =
      owner.register_module("embedding", nn::Embedding(setup.init.child("embedding"), setup.rows,
                                                       setup.d_model, setup.pad, first_rows_));
}

at::Tensor TokenEmbedding::forward(const nn::PackedRows& rows, const at::Tensor& position) const {
  if (rows.values.defined()) return vectors_of_values(rows, position, d_model_);
  like(rows);
  return forward(rows.ids, position, rows.dropped_words);
}

const at::Tensor& TokenEmbedding::like(const nn::PackedRows& rows) const {
  if (rows.values.defined()) return rows.values;
  TORCH_CHECK(table_,
              "[model] the part has no table of tokens (PartSetup::rows = 0), and is given ids");
  return table_->weight;
}

at::Tensor vectors_of_values(const nn::PackedRows& rows, const at::Tensor& position,
                             int64_t d_model) {
  TORCH_CHECK(
      rows.values.dim() == 2 && rows.values.size(1) == d_model && rows.values.is_floating_point(),
      "[model] rows of values must be [N, ", d_model, "] of a floating-point type, got ",
      rows.values.sizes(), " of ", rows.values.scalar_type());
  const at::Tensor kept = rows.dropped_words.defined()
                              ? rows.values.masked_fill(rows.dropped_words.unsqueeze(1), 0)
                              : rows.values;
  return position.defined() ? kept + position.to(kept.scalar_type()) : kept;
}

}  // namespace stretto::models
