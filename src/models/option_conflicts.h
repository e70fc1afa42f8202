#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/bert_options.h"
#include "models/causal_options.h"
#include "models/seq2seq_options.h"

namespace stretto::models {

/// Options that contradict each other.
struct OptionConflict {
  std::vector<std::string> keys;  ///< what the rule reads; the first one is blamed
  std::string what, hint;
};

/// What keeps an encoder and a decoder from being built, or from fitting together: heads that do
/// not divide the width, rows that are too wide for who attends to them, and so on. Empty for a
/// sound model.
std::vector<OptionConflict> option_conflicts(const Seq2SeqOptions& model);

/// The same of one stack of Transformer layers in a model that is no encoder-decoder.
/// @param section  where `stack` stands, "model.decoder"; the style and `d_model` stand in [model]
std::vector<OptionConflict> option_conflicts(const StackOptions& stack, const LayerStyle& style,
                                             int64_t d_model, const std::string& section);

/// The same of a language model.
std::vector<OptionConflict> option_conflicts(const CausalModelOptions& model);

/// What keeps a sound language model from having a vocabulary of so many tokens.
std::vector<OptionConflict> vocabulary_conflicts(const CausalModelOptions& model, int64_t num_ids);

/// The same of an encoder of text: sizes that are missing, heads that do not divide the width.
std::vector<OptionConflict> option_conflicts(const BertOptions& model);

}  // namespace stretto::models
