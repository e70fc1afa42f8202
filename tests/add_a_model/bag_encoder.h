#pragma once

#include <cstdint>
#include <memory>

#include "models/encoder.h"
#include "models/parts.h"
#include "models/token_embedding.h"
#include "nn/linear.h"
#include "tests/add_a_model/bag_options.h"

namespace stretto::models {

/// A linear map of the mean over a window:
///
///     row t = W mean(x_s) + b      s in the sequence of t, |s - t| <= window / 2
///     x_s = dropout(embedding of token s * sqrt(D))     as model.embedding_scale says
///
/// N rows of all sequences, D the model's width. Parameters: `out.weight` [D, D], `out.bias` [D],
/// and `embedding.weight` unless another part owns the table.
class BagEncoder : public Encoder {
 public:
  BagEncoder(const BagEncoderOptions& options, const PartSetup& setup);

  Encoded forward(const nn::PackedRows& input, const ForwardContext& context) override;
  int64_t width() const override { return d_model_; }
  double operations(double length) const override;
  nn::Embedding embedding() const override { return embedding_.table(); }

 private:
  int64_t d_model_, reach_;
  double dropout_;
  uint64_t first_site_;
  TokenEmbedding embedding_;
  nn::Linear out_{nullptr};
};

std::shared_ptr<Encoder> make_bag_encoder(const BagEncoderOptions& options, const PartSetup& setup);

}  // namespace stretto::models
