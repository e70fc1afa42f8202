#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include <memory>
#include <vector>

#include "models/encoder.h"
#include "models/recurrent_layers.h"
#include "models/token_embedding.h"
#include "nn/adapter.h"

namespace stretto::models {

/// One layer in one direction or in both; h of both stand side by side, forward first.
struct EncoderLayer {
  RecurrentLayer forward{nullptr}, backward{nullptr};  ///< backward: null in one direction
  nn::Adapter adapter{nullptr};                        ///< of h; null without one
};

/// A stack of recurrent layers, the first of them bidirectional (Wu et al. 2016, section 3):
///
///     x_0 = embedding                           (unless model.embedding_scale is "sqrt")
///     x_i+1 = recurrence_i(dropout(x_i)) (+ x_i, from layer `residual_from` on)
///
/// A bidirectional layer has `units` in each direction and gives rows of 2 units; its directions
/// read the same input, that of the whole layer below. Parameters are named like
/// `layers.0.forward.input.weight` in bidirectional layers and `layers.1.input.weight` in others.
///
/// Where `model.adapter` names a layer, recurrence_i(…) above stands for adapter(recurrence_i(…)),
/// of both directions together, and `layers.i` has a child `adapter` (nn/adapter.h).
///
/// `Encoded::state` is h and c of each layer, bottom first (of a GRU h alone), as wide as the
/// layer's rows: forward's state behind the last token, then backward's behind the first. Adapters
/// leave it as it is.
class RecurrentEncoder : public Encoder {
 public:
  /// Throws c10::Error if a residual connection joins rows of different widths.
  RecurrentEncoder(const LstmEncoderOptions& options, const PartSetup& setup);

  Encoded forward(const nn::PackedRows& input, const ForwardContext& context) override;
  int64_t width() const override { return width_; }
  double operations(double length) const override;
  nn::Embedding embedding() const override { return embedding_.table(); }

 private:
  void add_layer(torch::nn::ModuleList& list, const nn::Init& init, int64_t in, int64_t units,
                 bool bidirectional);
  /// The rows of a layer; its last state goes behind `state`.
  at::Tensor run(const EncoderLayer& layer, const at::Tensor& x, const RecurrentPass& pass,
                 int64_t number, std::vector<at::Tensor>& state) const;

  RecurrentPart part_;
  uint64_t first_site_;
  int64_t width_;
  TokenEmbedding embedding_;
  std::vector<EncoderLayer> layers_;
};

/// The encoder that `[model.encoder]` with the name `lstm` describes.
std::shared_ptr<Encoder> make_lstm_encoder(const LstmEncoderOptions& options,
                                           const PartSetup& setup);

}  // namespace stretto::models
