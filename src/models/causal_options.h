#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "config/choice.h"
#include "config/field.h"
#include "models/causal_recurrent_options.h"
#include "models/causal_transformer_options.h"
#include "models/heads/adaptive_options.h"
#include "nn/adapter_options.h"
#include "nn/init_options.h"
#include "nn/lora_options.h"

namespace stretto::models {

/// `[model]` of a language model with the name `lstm`: a recurrent stack, with what all kinds have.
struct CausalLstmModelOptions : CausalLstmOptions {
  using Inherited = CausalLstmOptions;

  int64_t d_model = 400;
  bool tie_embeddings = true;
  bool output_bias = true;
  AdaptiveOptions adaptive_softmax;
  std::vector<std::string> init;
  nn::LoraOptions lora;
  nn::AdapterOptions adapter;

  static auto fields() {
    using namespace config;
    using O = CausalLstmModelOptions;
    return Fields{field(&O::d_model, "d_model", "width of token vectors", between(1, 65536))
                      .also_called({"emsize", "emb_size", "embedding_dim", "embedding_size",
                                    "embed_dim", "dim", "width"})}
        .with(CausalLstmOptions::fields())
        .with(Fields{
            field(&O::tie_embeddings, "tie_embeddings",
                  "the output projection is the table of tokens; the last layer then has d_model "
                  "units",
                  any())
                .also_called({"tied", "tie_weights", "tie_word_embeddings", "share_embeddings",
                              "weight_tied"}),
            field(&O::output_bias, "output_bias",
                  "whether the output projection adds a learned number for each token; starts at "
                  "zero",
                  any())
                .also_called({"out_bias", "decoder_bias"}),
            field(&O::adaptive_softmax, "adaptive_softmax", kAdaptiveHelp),
            nn::init_field(&O::init),
            field(&O::lora, "lora", "low-rank adaptation of linear maps, for fine-tuning")
                .also_called({"peft"}),
            field(&O::adapter, "adapter", "bottleneck adapters behind layers, for fine-tuning")
                .also_called({"adapters", "bottleneck_adapter"}),
        });
  }

  /// Width of the rows that leave the stack.
  int64_t rows_width() const { return output_width(d_model, tie_embeddings); }
};

/// `[model]` of families of language models, as `model.name` says: one list of keys for each kind.
/// All kinds have d_model, tie_embeddings, output_bias, adaptive_softmax, init, lora and adapter.
///
/// A further kind is one more alternative here, and an overload in models/causal_bodies.cpp and in
/// models/option_conflicts.cpp.
using CausalModelOptions = config::Choice<CausalTransformerOptions, CausalLstmModelOptions>;

/// The declaration of `[model]`, with what its names are called elsewhere.
template <class Declared>
Declared with_causal_names_elsewhere(Declared model) {
  return std::move(model)
      .value_also_called("transformer",
                         {"gpt", "gpt2", "nanogpt", "decoder_only", "transformer_lm"})
      .value_also_called("transformer", {"llama", "mistral", "qwen2", "qwen3"},
                         "norm_layer, activation, biases and positions give its form")
      .value_also_called("lstm", {"rnn", "recurrent", "awd_lstm", "awdlstm", "lstm_lm", "rnn_lm"})
      .value_also_called("lstm", {"gru"}, "with cell = \"gru\"");
}

/// Width of token vectors.
inline int64_t d_model_of(const CausalTransformerOptions& options) {
  return sizes_of(options).d_model;
}
inline int64_t d_model_of(const CausalLstmModelOptions& options) {
  return options.d_model;
}
inline int64_t d_model_of(const CausalModelOptions& options) {
  return options.visit([](const auto& kind) { return d_model_of(kind); });
}

/// The longest sequence that there are positions for, in tokens that the model reads. A recurrent
/// model reads texts of any length.
inline int64_t max_length_of(const CausalModelOptions& options) {
  return options.visit([](const auto& kind) {
    if constexpr (requires { kind.max_length(); }) return kind.max_length();
    return std::numeric_limits<int64_t>::max();
  });
}

/// Whether the model has a state that goes on from one stretch of a text to the next
/// (CausalModel::carry_shapes). Without one each sequence begins anew.
inline bool carries_state(const CausalModelOptions& options) {
  return options.is<CausalLstmModelOptions>();
}

/// What bends the logits of the next token; 0 = nothing.
inline double logit_softcap_of(const CausalModelOptions& options) {
  return options.is<CausalTransformerOptions>()
             ? options.as<CausalTransformerOptions>().logit_softcap
             : 0;
}

/// Whether the output projection adds a learned number for each token.
inline bool has_output_bias(const CausalModelOptions& options) {
  return options.visit([](const auto& kind) { return kind.output_bias; });
}
/// Whether the output projection is the table of tokens.
inline bool ties_output(const CausalModelOptions& options) {
  return options.visit([](const auto& kind) { return kind.tie_embeddings; });
}
/// How the output projection is divided.
inline const AdaptiveOptions& adaptive_softmax_of(const CausalModelOptions& options) {
  return options.visit(
      [](const auto& kind) -> const AdaptiveOptions& { return kind.adaptive_softmax; });
}
inline const std::vector<std::string>& init_of(const CausalModelOptions& options) {
  return options.visit(
      [](const auto& kind) -> const std::vector<std::string>& { return kind.init; });
}
inline const nn::LoraOptions& lora_of(const CausalModelOptions& options) {
  return options.visit([](const auto& kind) -> const nn::LoraOptions& { return kind.lora; });
}
inline const nn::AdapterOptions& adapter_of(const CausalModelOptions& options) {
  return options.visit([](const auto& kind) -> const nn::AdapterOptions& { return kind.adapter; });
}

}  // namespace stretto::models
