#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"
#include "data/documents/causal_text_options.h"
#include "decoding/generation_options.h"
#include "families/text/text_eval_options.h"
#include "losses/next_token_loss_options.h"
#include "models/causal_options.h"
#include "text/text_tokenizer_options.h"

namespace stretto::experiment {

/// What `[eval]` has for language models, beside experiment/eval_options.h: what a token is
/// predicted from, and what is counted.
struct LanguageEvalOptions : TextEvalOptions {
  using Inherited = TextEvalOptions;

  int64_t window = 0;
  int64_t stride = 0;
  std::string window_begin = "before";
  int64_t lanes = 1;
  bool count_ends = true;

  static auto fields() {
    using namespace config;
    using O = LanguageEvalOptions;
    const Meta scoring{.change = Change::kScoring};
    const Meta tokens{.unit = "tokens", .change = Change::kScoring};
    const std::string model = "model.name";
    return Fields{
        field(&O::window, "window",
              "tokens of a window, in which each is predicted from those before it; 0 = "
              "data.max_text_tokens",
              between(0, 1000000), tokens)
            .also_called({"context", "max_length", "eval_context", "context_length"})
            .read_with_key(model, {"transformer"}),
        field(&O::stride, "stride",
              "tokens from the begin of a window to that of the next, which scores what no window "
              "before it has; 0 = window: disjoint blocks",
              between(0, 1000000), tokens)
            .also_called({"eval_stride", "sliding_stride"})
            .read_with_key(model, {"transformer"}),
        field(&O::window_begin, "window_begin",
              "what the first token of a window is predicted from: before = the token before it in "
              "the text; separator = the token that stands in front of a text",
              one_of({"before", "separator"}), scoring)
            .also_called({"add_bos", "add_bos_token", "prefix_token"}, "= \"separator\"")
            .value_also_called("separator", {"bos", "eos", "beginning"})
            .read_with_key(model, {"transformer"}),
        field(&O::lanes, "lanes",
              "of a recurrent model, whose state goes on through the whole text: parts of the text "
              "that are read side by side, each from a state of zero. 1 is exact; more are faster",
              between(1, 100000), scoring)
            .also_called({"eval_batch_size", "eval_lanes"})
            .read_with_key(model, {"lstm"}),
        field(&O::count_ends, "count_ends",
              "the end of a line or a document is a token that is scored, and a word; false: it is "
              "read, and not scored",
              any(), scoring)
            .also_called({"count_eos", "score_eos"}),
    }
        .with(TextEvalOptions::fields());
  }
};

/// The sections of a configuration with `task.name = "language_model"`, beside those that every
/// experiment has.
struct LanguageModelOptions {
  static constexpr const char* kName = "language_model";

  data::CausalTextOptions data;
  text::TextTokenizerOptions tokenizer = byte_level();
  models::CausalModelOptions model;
  losses::NextTokenLossOptions loss;
  decoding::GenerationOptions decode;
  LanguageEvalOptions eval;

  /// A text must come back as it was.
  static text::TextTokenizerOptions byte_level() {
    text::TextTokenizerOptions options;
    options.type = "byte_bpe";
    return options;
  }

  static auto fields() {
    using config::field;
    using O = LanguageModelOptions;
    return config::Fields{
        field(&O::data, "data", "text, read in place")
            .also_called({"dataset", "corpus", "datasets"}),
        field(&O::tokenizer, "tokenizer", "from text to ids and back")
            .also_called({"vocab", "vocabulary"}),
        models::with_causal_names_elsewhere(field(&O::model, "model", "the network"))
            .also_called({"network", "architecture"}),
        field(&O::loss, "loss", "what training minimises").also_called({"criterion", "objective"}),
        field(&O::decode, "decode", "how a prompt is continued")
            .also_called({"generation", "generate", "inference"}),
        field(&O::eval, "eval", "validation while training"),
    };
  }
};

}  // namespace stretto::experiment
