#include "families/text/text_rules.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "config/schema.h"
#include "data/length_batches.h"
#include "data/tokenizer_store.h"
#include "experiment/preflight_child.h"
#include "experiment/scaled_rate.h"
#include "families/text/text_size.h"
#include "models/causal_options.h"
#include "models/recurrent_options.h"

namespace stretto::experiment {
namespace {

void check_text_tokenizer(RuleCheck& c, const text::TextTokenizerOptions& tokenizer) {
  if (!tokenizer.merges.empty() && tokenizer.model.empty()) {
    c.wrong({"tokenizer.merges", "tokenizer.model"}, "merges belong to a vocab.json",
            "name the vocab.json as tokenizer.model");
  }
}

void check_text_lengths(RuleCheck& c, const TextSections& text) {
  if (text.max_text_tokens > text.max_tokens) {
    c.wrong({"data.max_tokens", "data.max_text_tokens"},
            std::to_string(text.max_tokens) + " is less than the longest text that is let in (" +
                std::to_string(text.max_text_tokens) + ")",
            "raise data.max_tokens, or lower data.max_text_tokens");
  }
}

// Loads the tokenizer that is named, or trains one. Empty where training would stop.
text::TokenizerPair try_tokenizer(const TextRules& rules, const Experiment& e, bool named,
                                  Preflight& found) {
  text::TokenizerPair tokenizers;
  note_stop(found, Stage::kTokenizer, named ? "tokenizer.model" : "tokenizer.vocab_size", [&] {
    const TextSections sections = text_sections(e);
    const auto lines = named ? nullptr : rules.training_text(e);
    tokenizers =
        data::open_tokenizers(sections.tokenizer->tokenizer_options(),
                              static_cast<uint64_t>(e.run.seed), lines.get(), sections.cache_dir);
    rules.require_tokenizer(e, *tokenizers.src);
    tokenizers.src = rules.tokenizer_of_model(e, std::move(tokenizers.src));
  });
  return tokenizers;
}

// Whether there are tokens to count: text, and sound keys that say what becomes of it.
bool counts_unknown(const Experiment& e, const std::vector<config::Problem>& known) {
  const TextSections text = text_sections(e);
  const auto is_sound = [&](const char* key, const std::vector<std::string>& files) {
    return !files.empty() && !config::is_unreliable(known, key);
  };
  if (text.max_unknown >= 1) return false;
  if (!is_sound("data.train", *text.train) && !is_sound("data.valid", *text.valid)) return false;
  return std::none_of(known.begin(), known.end(), [](const auto& problem) {
    const std::string& key = problem.key;
    return key.starts_with("data") && key != "data.train" && key != "data.valid" &&
           key != "data.test";
  });
}

}  // namespace

int64_t most_batches(const TextSections& text, int64_t samples) {
  return data::most_batches(samples, text.max_text_tokens,
                            {.max_rows = {text.max_tokens}, .max_samples = text.max_samples});
}

void TextRules::check_model(RuleCheck& check) const {
  check_text_tokenizer(check, *sections(check.e).tokenizer);
}

void TextRules::check_data(RuleCheck& check) const {
  check_text_lengths(check, sections(check.e));
}

void TextRules::check_training(RuleCheck& check) const {
  const TextSections text = sections(check.e);
  if (text.train->empty()) {
    check.wrong({"data.train"}, "there is no training text", "name files");
  }
}

// The share of unknown tokens is reported only for files that were read whole.
void TextRules::look_at_unknown(const Experiment& experiment,
                                const std::vector<config::Problem>& known,
                                const text::Tokenizer& tokenizer, const PreflightTimer& time,
                                Preflight& found) const {
  const TextSections text = sections(experiment);
  if (text.max_unknown >= 1) return;
  const auto look = [&](Stage stage, const std::string& key, const std::string& name,
                        const std::vector<std::string>& files) {
    if (files.empty() || config::is_unreliable(known, key)) return;
    note_stop(found, stage, key, [&] {
      const SeenTokens seen = count_tokens(experiment, key, files, tokenizer, time);
      if (!seen.unread.empty()) {
        found.unread.push_back({"data.max_unknown", "the tokens of " + seen.unread});
        return;
      }
      if (stage == Stage::kTraining && seen.samples > 0) {
        found.most_batches = most_batches(text, seen.samples);
      }
      require_known(name + " " + name_of_samples(), seen.counts, experiment, /*warn=*/false);
    });
  };
  // The text for validation is the shorter one.
  look(Stage::kValidation, "data.valid", "validation", *text.valid);
  look(Stage::kTraining, "data.train", "training", *text.train);
}

Preflight TextRules::look_at_data(const Experiment& experiment,
                                  const std::vector<config::Problem>& known,
                                  const PreflightOptions& how) const {
  const PreflightTimer time(how);
  Preflight found = look_at_texts(experiment, known, how);
  const auto options = sections(experiment).tokenizer->tokenizer_options();
  const bool named = text::names_tokenizer(options);
  const bool in_doubt = std::any_of(known.begin(), known.end(), [&](const auto& problem) {
    return problem.key.starts_with("tokenizer") || (!named && problem.key.starts_with("data"));
  });
  if (in_doubt || takes_tokenizer_of_other_run(experiment)) return found;
  if (!named && !found.stops.empty()) return found;
  if (!named && !how.full) {
    const std::string& type = sections(experiment).tokenizer->type;
    if (type == "char" || type == "word") {  // of which there may be fewer than vocab_size
      found.unread.push_back({"data.max_unknown", "how many of the tokens are unknown"});
    } else {
      found.unread.push_back({"tokenizer.vocab_size",
                              "whether the text allows for so many pieces: training a tokenizer "
                              "takes longer"});
    }
    return found;
  }
  const auto tokenizers = try_tokenizer(*this, experiment, named, found);
  // The shares do not matter for text that training would stop at anyway.
  if (!found.stops.empty() || !counts_unknown(experiment, known)) return found;
  const auto look = [&](Preflight& seen) {
    look_at_unknown(experiment, known, *tokenizers.src, time, seen);
  };
  if (how.full) {
    look(found);
  } else if (!look_in_child(time.left(), look, found)) {
    found.unread.push_back({"data.max_unknown", "how many of the tokens are unknown"});
  }
  return found;
}

Preflight TextRules::look_at_files(const Experiment& experiment,
                                   const std::vector<config::Problem>& known,
                                   const PreflightOptions& how) const {
  Preflight found = look_at_texts(experiment, known, how);
  const auto options = sections(experiment).tokenizer->tokenizer_options();
  const bool in_doubt = std::any_of(known.begin(), known.end(), [](const auto& problem) {
    return problem.key.starts_with("tokenizer");
  });
  if (text::names_tokenizer(options) && !in_doubt) {
    try_tokenizer(*this, experiment, /*named=*/true, found);
  }
  return found;
}

ValidationData TextRules::validation_data(const Experiment& experiment) const {
  return {.there = !sections(experiment).valid->empty(),
          .name = "validation text",
          .keys = {"data.valid"},
          .remedy = "set data.valid"};
}

BatchBound TextRules::micro_batch(const Experiment& experiment) const {
  const TextSections text = sections(experiment);
  return token_bound(text.max_tokens, text.max_samples, text.max_text_tokens);
}

std::optional<text::TokenizerOptions> TextRules::tokenizer_options(
    const Experiment& experiment) const {
  return sections(experiment).tokenizer->tokenizer_options();
}

std::vector<NormedUnits> TextRules::normed_units(const Experiment& experiment) const {
  const auto stack = causal_stack(experiment);
  if (!stack || !stack->is<models::CausalLstmModelOptions>()) return {};
  const auto& lstm = stack->as<models::CausalLstmModelOptions>();
  if (!models::norms_units(lstm.cell)) return {};
  const char* key = lstm.hidden_dim > 0 ? "model.hidden_dim" : "model.d_model";
  const int64_t top = lstm.units(lstm.d_model, lstm.num_layers - 1, lstm.rows_width());
  if (lstm.num_layers == 1) return {{lstm.tie_embeddings ? "model.d_model" : key, top}};
  const int64_t below = lstm.units(lstm.d_model, 0, lstm.rows_width());
  if (top < below) return {{"model.d_model", top}};
  return {{key, below}};
}

FileSizes TextRules::file_sizes(const Experiment& experiment) const {
  const auto bytes = plain_bytes(*sections(experiment).train);
  return {.epoch = tokens_in(bytes.value_or(0))};
}

std::optional<models::CausalModelOptions> find_causal_stack(const Experiment& experiment) {
  const auto* rules = dynamic_cast<const TextRules*>(find_task_rules(experiment));
  return rules == nullptr ? std::nullopt : rules->causal_stack(experiment);
}

const TextRules& text_rules_of(const Experiment& experiment) {
  return dynamic_cast<const TextRules&>(*find_task_rules(experiment));
}

}  // namespace stretto::experiment
