#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/causal_recurrent_options.h"
#include "models/encoder.h"
#include "models/parts.h"
#include "models/recurrent_layers.h"
#include "models/token_embedding.h"
#include "nn/adapter.h"

namespace stretto::models {

/// A state of one lane: a vector that stands in a row of a tensor [lanes, width].
struct RecurrentStateShape {
  std::string name;  ///< "h.0", "c.0", "h.1", …; of a GRU "h.0", "h.1", …
  int64_t width = 0;
};

class CausalRecurrentSteps;

/// What a recurrent stack makes of a stretch of each lane.
struct CausalRecurrentPass {
  at::Tensor rows;                ///< [N, output width]: the row behind each token
  std::vector<at::Tensor> state;  ///< behind each lane's last token, as state_shapes() says
  /// What the rows add to the loss of training: a scalar, the sum over N; undefined = nothing.
  at::Tensor regulariser = {};
};

/// The recurrent stack of a language model: token vectors and layers over them, each lane from the
/// state that its last stretch ended in (Merity et al. 2017, arXiv:1708.02182):
///
///     x_0 = input_dropout(words(embedding))              words: embedding_dropout, see below
///     h_i = recurrence_i(x_i; weight_drop(W_i))          x_i+1 = hidden_dropout(h_i)
///     rows = output_dropout(h_last)
///
///     regulariser = alpha sum_n mean(rows_n^2)
///                 + beta sum_lanes T / (T - 1) sum_t<T mean((h_t - h_t-1)^2)
///
/// means are over the width, h_t is the last layer's before dropout, T the length of the lane's
/// stretch. Divided by N, for stretches of one length, that is what awd-lstm-lm adds to its loss.
/// What dropout does to rows never comes into a state.
///
/// All masks are functions of the seed and the update, and of nothing that depends on how lanes are
/// put into micro-batches:
///
///     embedding_dropout                        one number for each word of the vocabulary
///     input_, hidden_ and output_dropout       (sample, element); with variational = false also
///                                              the position
///     weight_drop                              the element of the matrix
///
/// Without training none of them is drawn, and the regulariser is undefined.
///
/// Parameters: `embedding.weight`, unless the table is another part's, and `layers.N.…` as in
/// RecurrentLayer. A layer may have an adapter (nn/adapter.h), through which its rows go, and not
/// its state.
///
/// Shape letters: N rows of all lanes, B lanes, H units of a layer.
class CausalRecurrent : public torch::nn::Module {
 public:
  /// @param output_width  of the last layer's rows; CausalLstmOptions::output_width
  CausalRecurrent(const CausalLstmOptions& options, const PartSetup& setup, int64_t output_width);

  /// @param input  tokens of each lane's stretch; a lane may have none
  /// @param state  [B, H] each, as state_shapes() says; empty: all zero, where texts begin
  /// Throws c10::Error for a state of other shapes.
  CausalRecurrentPass forward(const nn::PackedRows& input, const std::vector<at::Tensor>& state,
                              const ForwardContext& context);

  /// The states of a lane, bottom layer first.
  const std::vector<RecurrentStateShape>& state_shapes() const { return shapes_; }
  /// Steps from the beginning of a text, for lanes that stand together by source. Prompts of any
  /// lengths may come first (CausalRecurrentSteps::read).
  std::unique_ptr<CausalRecurrentSteps> start(int64_t sources, int64_t lanes_per_source);

  int64_t width() const { return width_; }  ///< of the rows
  /// Multiplications and additions of forward for one row; models/operations.h says what counts.
  double operations() const;
  /// The table that turns tokens into rows, for a head to share.
  nn::Embedding embedding() const { return embedding_.table(); }
  c10::Device device() const { return embedding_.table()->weight.device(); }

 private:
  friend class CausalRecurrentSteps;

  void add_layers(const nn::Init& init, int64_t d_model);
  std::vector<kernels::RecurrentState> states_of(const std::vector<at::Tensor>& given,
                                                 int64_t lanes) const;
  std::vector<at::Tensor> flat(const std::vector<kernels::RecurrentState>& states) const;
  at::Tensor words(const nn::PackedRows& input, const ForwardContext& context) const;
  /// @param h  the last layer's rows before dropout
  at::Tensor regulariser(const at::Tensor& rows, const at::Tensor& h,
                         const nn::PackedRows& input) const;

  RecurrentPart part_;
  CausalLstmOptions options_;
  uint64_t first_site_;
  int64_t width_;
  TokenEmbedding embedding_;
  std::vector<RecurrentLayer> layers_;
  std::vector<nn::Adapter> adapters_;  ///< of each layer's rows; null without one
  std::vector<RecurrentStateShape> shapes_;
};

}  // namespace stretto::models
