#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/choice.h"
#include "config/field.h"
#include "models/bert_options.h"
#include "models/causal_options.h"
#include "nn/adapter_options.h"
#include "nn/lora_options.h"

namespace stretto::models {

/// How labels are read from the rows of a stack in which each row has seen the tokens before it
/// alone.
struct CausalPool {
  std::string pooling = "last";
  double head_dropout = 0.1;
  int64_t head_units = 0;
  std::string head_norm = "none";
  double head_units_dropout = -1;

  static auto fields() {
    using namespace config;
    using O = CausalPool;
    return Fields{
        field(
            &O::pooling, "pooling",
            "the one row of a text. last: that of its last token, which has seen all others. max, "
            "mean: of all rows. concat: last, max and mean side by side (ULMFiT; Howard and Ruder "
            "2018). state: what an LSTM's top layer ends in, its hidden and its cell state side by "
            "side",
            one_of({"last", "max", "mean", "concat", "state"}))
            .also_called({"pooler", "pool", "classifier_pooling", "pooling_mode"})
            .also_called({"use_cell_state"}, "= \"state\"")
            .value_also_called("last", {"last_token", "last_hidden", "eos"})
            .value_also_called("mean", {"average", "avg", "mean_tokens"})
            .value_also_called("concat", {"concat_pooling", "pool_concat"})
            .value_also_called("state", {"last_state", "cell_state", "use_cell_state"}),
        field(&O::head_dropout, "head_dropout",
              "on the pooled rows that labels are read from, and on the hidden layer of the head "
              "where head_units_dropout says nothing else",
              fraction())
            .also_called({"classifier_dropout", "pooler_dropout", "seq_classif_dropout"}),
        field(&O::head_units, "head_units",
              "units of a layer with relu between the pooled row and the labels; 0 = none",
              between(0, 65536))
            .also_called({"lin_ftrs", "classifier_hidden_dim", "head_hidden_dim"}),
        field(&O::head_norm, "head_norm",
              "of the pooled row and of the head's hidden layer, in front of their dropouts. "
              "batch_norm: each column over the texts of a micro-batch in training, by running "
              "statistics elsewhere, as fastai's ULMFiT",
              one_of({"none", "batch_norm"}))
            .also_called({"use_bn", "head_batch_norm"}, "= \"batch_norm\"")
            .value_also_called("batch_norm", {"bn", "batch", "batch_norm_1d"}),
        field(&O::head_units_dropout, "head_units_dropout",
              "on the hidden layer of the head; below 0: as head_dropout",
              {.min = -1, .max = 1, .max_open = true, .choices = {}})
            .also_called({"lin_dropout"})
            .read_unless_zero("head_units"),
    };
  }

  bool has_batch_norm() const { return head_norm == "batch_norm"; }
  /// What is dropped of the hidden layer.
  double dropout_of_units() const {
    return head_units_dropout < 0 ? head_dropout : head_units_dropout;
  }
};

/// `[model]` of a classifier on a causal stack: the keys of the stack, as a language model has
/// them, and those of the head. What such a model predicts tokens with is not there: tie_embeddings
/// says how wide the last layer of an `lstm` is, and output_bias, adaptive_softmax, logit_softcap,
/// activation_reg and temporal_reg are not read.
template <class Stack>
struct LabelStackOptions : Stack, CausalPool {
  using Inherited = config::Bases<Stack, CausalPool>;

  static auto fields() { return Stack::fields().with(CausalPool::fields()); }
};

using LabelTransformerOptions = LabelStackOptions<CausalTransformerOptions>;
using LabelLstmOptions = LabelStackOptions<CausalLstmModelOptions>;

/// `[model]` of labels of texts, as `model.name` says: an encoder that sees all of a text from
/// each of its tokens, or the stack of a language model.
using LabelModelOptions = config::Choice<BertOptions, LabelTransformerOptions, LabelLstmOptions>;

/// The stack of a classifier that is no encoder. Throws std::bad_variant_access for BERT's.
inline CausalModelOptions causal_stack_of(const LabelModelOptions& options) {
  if (options.is<LabelTransformerOptions>()) {
    return static_cast<const CausalTransformerOptions&>(options.as<LabelTransformerOptions>());
  }
  return static_cast<const CausalLstmModelOptions&>(options.as<LabelLstmOptions>());
}

/// How such a classifier pools rows; the defaults for BERT's.
inline CausalPool causal_pool_of(const LabelModelOptions& options) {
  return options.visit([](const auto& kind) -> CausalPool {
    if constexpr (std::is_convertible_v<decltype(kind), const CausalPool&>) {
      return kind;
    } else {
      return {};
    }
  });
}

inline const std::vector<std::string>& init_of(const LabelModelOptions& options) {
  return options.visit(
      [](const auto& kind) -> const std::vector<std::string>& { return kind.init; });
}
inline const nn::LoraOptions& lora_of(const LabelModelOptions& options) {
  return options.visit([](const auto& kind) -> const nn::LoraOptions& { return kind.lora; });
}
inline const nn::AdapterOptions& adapter_of(const LabelModelOptions& options) {
  return options.visit([](const auto& kind) -> const nn::AdapterOptions& { return kind.adapter; });
}

/// The declaration of such a `[model]`, with what its names are called elsewhere.
template <class Declared>
Declared with_label_names_elsewhere(Declared model) {
  const char* published =
      "preset gives its sizes; to fine-tune a published model, download its folder and set "
      "train.init_from to it";
  return with_causal_names_elsewhere(std::move(model))
      .value_also_called("bert", {"encoder", "roberta", "distilbert"}, published)
      .value_also_called("bert",
                         {"bert_base_uncased", "bert_base_cased", "bert_large_uncased",
                          "bert_large_cased", "roberta_base", "roberta_large"},
                         published)
      .value_also_called("transformer", {"decoder", "causal"})
      .value_also_called("lstm", {"ulmfit"});
}

}  // namespace stretto::models
