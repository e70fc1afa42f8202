#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/recurrent/attentive.h"
#include "models/decoder.h"
#include "models/recurrent_layers.h"
#include "models/token_embedding.h"
#include "nn/adapter.h"

namespace stretto::models {

/// How the first layer looks at the memory. M is the memory's width, A that of queries and keys.
/// Parameters: `key.weight` [A, M]; of Bahdanau's scores `query.weight` [A, H] and `score` (v)
/// [A]; of the normed one also `query.bias` (b) [A]; of it and of scaled Luong `gain` (g) [1],
/// which starts at A^-0.5 or at 1. Values are the memory's rows themselves.
class RecurrentAttentionImpl : public torch::nn::Module {
 public:
  struct Widths {
    int64_t state, keys, memory;  ///< H, A, M
  };
  RecurrentAttentionImpl(const nn::Init& init, const LstmDecoderOptions& options,
                         const Widths& widths);

  /// Keys of all rows at once.
  kernels::Memory memory(const Encoded& encoded) const;
  kernels::Score kind() const { return kind_; }

  nn::Linear key{nullptr}, query{nullptr};
  at::Tensor score, gain;

 private:
  kernels::Score kind_;
};
TORCH_MODULE(RecurrentAttention);

/// A stack of recurrent layers, the first of which attends to the memory while it runs:
///
///     h_t   = first(dropout(x_t), context_t-1)         x_t = embedding of token t
///     context_t = attention(h_t)
///     layer i reads dropout(x), or dropout([x, context]) of this step (gnmt_v2) or of the step
///     before (gnmt), and adds x to its output from layer `residual_from` on
///     row t = top, or tanh(W [top, context_t])          `output`: state, attended
///
/// With model.embedding_scale = "sqrt", x_t is multiplied by the root of d_model. Dropout of the
/// first layer is on its token alone, not on its context. Rows are d_model wide: a top layer of
/// another width is projected, without tanh and bias. An encoder may be of any kind and width; see
/// `initial_state` for where its last state or mean goes.
///
/// Where `model.adapter` names a layer, its output goes through an adapter (nn/adapter.h) before x
/// is added: `layers.0.adapter`. Its state stays the recurrence's own, and so does the query of
/// attention.
///
/// Parameters: `layers.N.…` as in RecurrentLayer, `layers.0.context.weight` [G H, M],
/// `attention.…`, and, where they are wanted, `initial.{weight,bias}` [num_layers H, M] and
/// `output.weight` [d_model, H or H + M].
class RecurrentDecoder : public Decoder {
 public:
  /// Throws c10::Error if a residual connection joins rows of different widths, or Luong's scores
  /// get an attention_width other than the state's.
  RecurrentDecoder(const LstmDecoderOptions& options, const PartSetup& setup);

  /// Throws c10::Error if the initial state is to be an encoder's last one and there is none of
  /// this decoder's layers and widths.
  at::Tensor forward(const nn::PackedRows& input, const Encoded& memory,
                     const ForwardContext& context) override;
  std::unique_ptr<StepDecoder> start(const Encoded& memory, int64_t lanes_per_source) override;
  /// On a CPU.
  std::unique_ptr<StreamDecoder> start_stream() override;
  /// The first layer is the one that attends: `layer` is 0 or -1.
  std::vector<at::Tensor> attention(const nn::PackedRows& input, const Encoded& memory,
                                    int64_t layer) override;
  int64_t width() const override { return d_model_; }
  double operations(double length, double memory_length) const override;
  double memory_operations() const override;
  nn::Embedding embedding() const override { return embedding_.table(); }

 private:
  friend class RecurrentLanes;
  /// How layers above the first are run, over whole sequences or one step.
  struct UpperLayers {
    std::function<at::Tensor(const at::Tensor& x, int64_t layer)> drop;
    std::function<at::Tensor(const at::Tensor& x, int64_t layer)> run;
  };

  void add_layers(const nn::Init& init);
  kernels::AttentiveWeights attentive_weights() const;
  /// The same, whose matrices may stand for codes: for kernels::AttentiveStep.
  kernels::AttentiveWeights attentive_weights_or_codes() const;
  /// State of each layer before the first step, [B, H].
  std::vector<kernels::RecurrentState> initial_states(const Encoded& memory) const;
  std::vector<kernels::RecurrentState> states_of_encoder(const Encoded& memory) const;
  /// The first layer over whole sequences.
  kernels::AttentiveOutput attend(const at::Tensor& embedded, const Encoded& memory,
                                  const RecurrentPass& pass, const kernels::RecurrentState& initial,
                                  bool wants_weights) const;
  /// From the first layer's input and h to the rows behind the top one, through all adapters.
  /// `context` is what this step attended to, `given` what upper layers read of it; neither is
  /// dropped from.
  at::Tensor run_upper_layers(const at::Tensor& embedded, const at::Tensor& h,
                              const at::Tensor& context, const at::Tensor& given,
                              const UpperLayers& upper) const;
  at::Tensor finish(const at::Tensor& top, const at::Tensor& context) const;

  RecurrentPart part_;
  int64_t d_model_, units_, memory_width_;
  uint64_t first_site_;
  bool context_above_, context_is_new_, output_attends_, starts_at_encoder_;
  TokenEmbedding embedding_;
  std::vector<RecurrentLayer> layers_;
  std::vector<nn::Adapter> adapters_;  ///< of each layer's output; null without one
  nn::Linear context_{nullptr};        ///< of the first layer
  RecurrentAttention attention_{nullptr};
  nn::Linear initial_{nullptr};  ///< null unless the initial state is the mean
  nn::Linear output_{nullptr};   ///< null where the top layer's rows are the decoder's
};

/// The decoder that `[model.decoder]` with the name `lstm` describes.
std::shared_ptr<Decoder> make_lstm_decoder(const LstmDecoderOptions& options,
                                           const PartSetup& setup);

}  // namespace stretto::models
