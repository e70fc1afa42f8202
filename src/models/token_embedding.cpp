#include "models/token_embedding.h"

namespace stretto::models {

TokenEmbedding::TokenEmbedding(torch::nn::Module& owner, const PartSetup& setup,
                               const EmbeddingKind& kind)
    : scale_(kind.scales(setup.embedding_scale) ? nn::RowScale::kSqrtWidth : nn::RowScale::kOne),
      first_rows_(setup.shared_rows ? *setup.shared_rows
                                    : kind.first_rows(setup.embedding_scale, setup.d_model)),
      table_(setup.embedding) {
  if (table_) return;
  table_ =
      owner.register_module("embedding", nn::Embedding(setup.init.child("embedding"), setup.rows,
                                                       setup.d_model, setup.pad, first_rows_));
}

}  // namespace stretto::models
