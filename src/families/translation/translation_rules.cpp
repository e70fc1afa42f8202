#include "families/translation/translation_rules.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "config/schema.h"
#include "experiment/scaled_rate.h"
#include "families/translation/head_rules.h"
#include "families/translation/heads.h"
#include "families/translation/translation_differences.h"
#include "families/translation/translation_display.h"
#include "families/translation/translation_facts.h"
#include "families/translation/translation_options.h"
#include "families/translation/translation_preflight.h"
#include "families/translation/translation_taken.h"
#include "families/translation/two_source_rules.h"
#include "models/option_conflicts.h"

namespace stretto::experiment {
namespace {

// Parts that cannot be built, or do not fit together.
void check_parts(RuleCheck& c) {
  for (const auto& conflict : models::option_conflicts(translation_of(c.e).model)) {
    c.wrong(conflict.keys, conflict.what, conflict.hint);
  }
  for (const auto& problem : head_problems(c.e)) c.wrong(problem.keys, problem.what, problem.hint);
}

// After the sum a gain of 0 leaves nothing of a layer's input; before a part it shuts a relu for
// good.
void check_zero_gamma(RuleCheck& c) {
  const auto& model = translation_of(c.e).model;
  if (!model.zero_gamma || !models::has_transformer(model) || models::parts_end_in_norm(model))
    return;
  c.wrong({"model.zero_gamma", "model.norm"},
          "a gain that starts at 0 has to stand at the end of each part, but model.norm is \"" +
              model.norm + "\"",
          "set model.norm = \"res_post\", or leave zero_gamma out");
}

void check_tokenizer_files(RuleCheck& c) {
  const auto& t = translation_of(c.e).tokenizer;
  if (t.type == "vocab") {
    if (t.src_vocab.empty() && !takes_tokenizer_of_other_run(c.e)) {
      c.wrong({"tokenizer.type", "tokenizer.src_vocab"}, "\"vocab\" needs tokenizer.src_vocab",
              "name a vocabulary file");
    }
    if (!t.model.empty() || !t.src_model.empty() || !t.tgt_model.empty()) {
      const char* key = !t.model.empty()       ? "tokenizer.model"
                        : !t.src_model.empty() ? "tokenizer.src_model"
                                               : "tokenizer.tgt_model";
      c.wrong({key, "tokenizer.type"}, "a model of raw text beside type = \"vocab\"",
              "remove it, or use type = \"sentencepiece\"");
    }
    return;
  }
  if (!t.src_vocab.empty() || !t.tgt_vocab.empty()) {
    c.wrong({t.src_vocab.empty() ? "tokenizer.tgt_vocab" : "tokenizer.src_vocab", "tokenizer.type"},
            "a vocabulary file beside type = \"" + t.type + "\"",
            "use type = \"vocab\" for text that is already split at spaces");
  }
  const bool two_models = !t.src_model.empty() || !t.tgt_model.empty();
  if (!t.model.empty() && two_models) {
    c.wrong({"tokenizer.model"}, "stands beside src_model or tgt_model",
            "give one model for both sides, or one for each");
  } else if (two_models && (t.src_model.empty() || t.tgt_model.empty())) {
    c.wrong({t.src_model.empty() ? "tokenizer.tgt_model" : "tokenizer.src_model",
             t.src_model.empty() ? "tokenizer.src_model" : "tokenizer.tgt_model"},
            "the other side's model is missing", "give both src_model and tgt_model");
  }
}

void check_subword_sampling(RuleCheck& c) {
  const std::string& type = translation_of(c.e).tokenizer.type;
  if (type == "sentencepiece" || takes_tokenizer_of_other_run(c.e)) return;
  const auto refuse = [&](double strength, const char* key) {
    if (strength <= 0) return;
    c.wrong({key, "tokenizer.type"},
            type == "vocab"
                ? "text that was split beforehand has one segmentation: none can be drawn"
                : "\"" + type + "\" has one segmentation of a text: none can be drawn",
            "set it to 0, or use tokenizer.type = \"sentencepiece\" on raw text");
  };
  refuse(translation_of(c.e).data.src_subword_sampling, "data.src_subword_sampling");
  refuse(translation_of(c.e).data.tgt_subword_sampling, "data.tgt_subword_sampling");
}

void check_ties(RuleCheck& c) {
  const auto& t = translation_of(c.e).tokenizer;
  bool joint = t.joint || !t.model.empty();
  if (!t.src_model.empty() && !t.tgt_model.empty()) joint = t.src_model == t.tgt_model;
  if (t.type == "vocab") joint = t.tgt_vocab.empty() || t.tgt_vocab == t.src_vocab;
  if (translation_of(c.e).model.tie_embeddings != "all" || joint ||
      takes_tokenizer_of_other_run(c.e))
    return;
  c.wrong({"model.tie_embeddings", "tokenizer.joint", "tokenizer.type"},
          "\"all\" needs one vocabulary for both sides",
          "use tie_embeddings = \"decoder\", or a joint tokenizer (tokenizer.joint = true)");
}

std::string number_of(size_t count, std::string_view noun) {
  return counted(static_cast<int64_t>(count), noun);
}

void check_files_of(RuleCheck& c, const std::string& src_key, const std::string& tgt_key,
                    const std::vector<std::string>& src, const std::vector<std::string>& tgt) {
  if (src.size() == tgt.size()) return;
  // A file is missing on the shorter side; where that was not given at all, the other has the line.
  const bool lacks_target = tgt.size() < src.size();
  const std::string& blamed = lacks_target ? tgt_key : src_key;
  const std::string& other = lacks_target ? src_key : tgt_key;
  c.wrong({blamed, other},
          number_of(src.size(), "source file") + " and " + number_of(tgt.size(), "target file"),
          c.origins.of(other) + " and `" + blamed + "` go together, file for file");
}

// `[data]`, or the text of one of several decoders.
template <class Text>
void check_text(RuleCheck& c, const std::string& section, const Text& d) {
  const auto key = [&](const char* leaf) { return section + "." + leaf; };
  check_files_of(c, key("train_src"), key("train_tgt"), d.train_src, d.train_tgt);
  check_files_of(c, key("valid_src"), key("valid_tgt"), d.valid_src, d.valid_tgt);
  check_files_of(c, key("test_src"), key("test_tgt"), d.test_src, d.test_tgt);
  const size_t files = d.train_src.size() + d.train_tsv.size();
  if (!d.train_weights.empty() && d.train_weights.size() != files) {
    c.wrong(
        {key("train_weights"), key("train_src"), key("train_tsv")},
        number_of(d.train_weights.size(), "weight") + " for " + number_of(files, "training file"),
        "one weight for each pair of files, then one for each TSV file");
  }
  const bool has_tsv = !d.train_tsv.empty() || !d.valid_tsv.empty() || !d.test_tsv.empty();
  if (has_tsv && d.src_column == d.tgt_column) {
    c.wrong({key("tgt_column"), key("src_column")},
            "both sides are column " + std::to_string(d.src_column) + " of the TSV files",
            "columns count from 1");
  }
}

template <class Text>
void check_training_text(RuleCheck& c, const std::string& section, const Text& d) {
  if (!d.train_src.empty() || !d.train_tgt.empty() || !d.train_tsv.empty()) return;
  const auto key = [&](const char* leaf) { return section + "." + leaf; };
  c.wrong({key("train_src"), key("train_tgt"), key("train_tsv")}, "there is no training text",
          "set " + key("train_src") + " and " + key("train_tgt") + ", or " + key("train_tsv"));
}

// `[data]`, or each of `[[data.heads]]`.
template <class Check>
void for_each_text(const Experiment& e, const Check& look) {
  const auto& data = translation_of(e).data;
  if (translation_of(e).model.heads.empty() && data.heads.empty()) look("data", data);
  for (size_t i = 0; i < data.heads.size(); ++i) {
    look("data.heads." + std::to_string(i), data.heads[i]);
  }
}

// Encoders and second sources belong together.
void check_number_of_sources(RuleCheck& c) {
  for (const auto& problem : two_source_problems(c.e)) {
    c.wrong(problem.keys, problem.what, problem.hint);
  }
}

void check_lengths(RuleCheck& c) {
  const auto& d = translation_of(c.e).data;
  const int64_t longest = std::max(d.max_src_tokens, d.max_tgt_tokens);
  if (longest > d.max_tokens) {
    c.wrong({"data.max_tokens", "data.max_src_tokens", "data.max_tgt_tokens"},
            std::to_string(d.max_tokens) + " is less than the longest sentence that is let in (" +
                std::to_string(longest) + ")",
            "raise data.max_tokens, or lower data.max_src_tokens and data.max_tgt_tokens");
  }
  if (const auto learned = models::learned_positions(translation_of(c.e).model);
      learned.tokens < longest) {
    c.wrong({learned.key, learned.choice, "data.max_src_tokens", "data.max_tgt_tokens"},
            counted(learned.tokens, "learned position") + ", sentences may have " +
                counted(longest, "token"),
            "raise it to at least " + std::to_string(longest) +
                ", or, where weights are taken that have no more, set data.max_src_tokens and "
                "data.max_tgt_tokens to " +
                std::to_string(learned.tokens));
  }
  if (d.max_ratio > 0 && d.max_ratio < 1) {
    c.wrong({"data.max_ratio"},
            "must be 0 (off) or at least 1, got " + config::number_text(d.max_ratio),
            "2.5 is usual");
  }
}

// Its rows are those of one pass over one source with one decoder.
void check_teacher(RuleCheck& c) {
  const auto& own = translation_of(c.e);
  if (!own.loss.has_teacher()) return;
  const auto refuse = [&](bool wrong, const char* key, const std::string& what) {
    if (wrong) c.wrong({"loss.teacher", key}, "does not go with " + what, "leave one of them out");
  };
  refuse(own.loss.has_r_drop(), "loss.r_drop", "two passes over each sentence (loss.r_drop)");
  refuse(!own.model.heads.empty(), "model.heads", "several decoders (model.heads)");
  refuse(models::has_two_encoders(own.model), "model.encoders", "two sources (model.encoders)");
}

void check_decoding(RuleCheck& c) {
  const auto& d = translation_of(c.e).decode;
  if (d.nbest > d.beam_size) {
    c.wrong({"decode.nbest", "decode.beam_size"},
            std::to_string(d.nbest) + " hypotheses from a beam of " + std::to_string(d.beam_size),
            "raise decode.beam_size or lower decode.nbest");
  }
  const auto decoders = models::decoders_of(translation_of(c.e).model);
  for (size_t i = 0; i < decoders.size(); ++i) {
    const bool attends_once = decoders[i]->is<models::LstmDecoderOptions>();
    const int64_t layers =
        attends_once ? 1 : decoders[i]->visit([](const auto& part) { return part.num_layers; });
    if (d.alignment_layer < layers) continue;
    const std::string section = models::decoder_section(translation_of(c.e).model, i);
    c.wrong({"decode.alignment_layer", section + ".num_layers", section + ".name"},
            attends_once ? "only layer 0 of an `lstm` decoder attends"
                         : "there is no layer " + std::to_string(d.alignment_layer) +
                               " in a decoder of " + std::to_string(layers),
            "layers count from 0; -1 is the last that attends");
    break;
  }
  if (d.max_len_a == 0 && d.min_len > d.max_len_b) {
    c.wrong({"decode.min_len", "decode.max_len_a", "decode.max_len_b"},
            "outputs must have at least " + std::to_string(d.min_len) + " and at most " +
                counted(d.max_len_b, "token"),
            "raise decode.max_len_a or decode.max_len_b");
  }
}

bool has_validation_text(const Experiment& e) {
  const auto& data = translation_of(e).data;
  if (!translation_of(e).model.heads.empty()) return has_validation(e);
  return !data.valid_src.empty() || !data.valid_tgt.empty() || !data.valid_tsv.empty();
}

// A validation without translations has no BLEU.
void check_bleu(RuleCheck& c) {
  const std::string& metric = c.e.eval.best_metric;
  if ((metric != "bleu" && !metric.ends_with(".bleu")) || translation_of(c.e).eval.bleu) return;
  c.wrong({"eval.best_metric", "eval.bleu"}, "\"" + metric + "\" needs eval.bleu = true",
          "set eval.bleu = true, or eval.best_metric = \"nll\"");
}

class TranslationRules final : public TranslationFacts {
 public:
  void check_model(RuleCheck& c) const override {
    check_parts(c);
    check_zero_gamma(c);
    check_tokenizer_files(c);
    check_subword_sampling(c);
    check_ties(c);
  }

  void check_data(RuleCheck& c) const override {
    for_each_text(
        c.e, [&](const std::string& section, const auto& text) { check_text(c, section, text); });
    check_separator(c, translation_of(c.e).data.separator);
    check_number_of_sources(c);
    check_lengths(c);
    check_teacher(c);
    check_decoding(c);
    check_bleu(c);
  }

  void check_training(RuleCheck& c) const override {
    for_each_text(c.e, [&](const std::string& section, const auto& text) {
      check_training_text(c, section, text);
    });
  }

  Preflight look_at_data(const Experiment& e, const std::vector<config::Problem>& known,
                         const PreflightOptions& how) const override {
    return translation_preflight(e, known, how);
  }

  Preflight look_at_files(const Experiment& e, const std::vector<config::Problem>& known,
                          const PreflightOptions& how) const override {
    return look_at_text_files(e, known, how);
  }

  std::vector<ScoreSpec> scores(const Experiment& e) const override {
    return tasks::translation_scores(translation_of(e).loss, tasks::scored_heads(e));
  }

  ValidationData validation_data(const Experiment& e) const override {
    if (!translation_of(e).model.heads.empty()) {
      return {.there = has_validation_text(e),
              .name = "validation text",
              .keys = {"data.heads"},
              .remedy = "give valid_src and valid_tgt, or valid_tsv, to one of [[data.heads]]"};
    }
    return {.there = has_validation_text(e),
            .name = "validation text",
            .keys = {"data.valid_src", "data.valid_tsv"},
            .remedy = "set data.valid_src and data.valid_tgt, or data.valid_tsv"};
  }

  BatchBound micro_batch(const Experiment& e) const override {
    const auto& d = translation_of(e).data;
    return token_bound(d.max_tokens, d.max_samples, std::max(d.max_src_tokens, d.max_tgt_tokens));
  }

  std::vector<std::string> init_rules(const Experiment& e) const override {
    return translation_of(e).model.init;
  }

  const nn::LoraOptions* lora(const Experiment& e) const override {
    return &translation_of(e).model.lora;
  }

  const nn::AdapterOptions* adapter(const Experiment& e) const override {
    return &translation_of(e).model.adapter;
  }

  std::string teacher_run(const Experiment& e) const override {
    return translation_of(e).loss.teacher;
  }
  Experiment without_teacher(Experiment e) const override {
    translation_of(e).loss.clear_teacher();
    return e;
  }

  std::optional<text::TokenizerOptions> tokenizer_options(const Experiment& e) const override {
    return translation_of(e).tokenizer;
  }

  bool has_batch_norm(const Experiment& e) const override {
    return models::has_batch_norm(translation_of(e).model);
  }

  std::vector<ModelDifference> hidden_differences(
      const Experiment& theirs, const Experiment& own,
      const std::vector<std::string>& stored) const override {
    return translation_differences(theirs, own, stored);
  }

  std::vector<TakenValue> values_of_other_model(const OtherModel& other, const Experiment& own,
                                                const config::Origins& given) const override {
    return translation_values_of(other, own, given);
  }

  ModelWidth model_width(const Experiment& e) const override {
    return {.key = "model.d_model", .value = translation_of(e).model.d_model};
  }

  // Before there was model.embedding_scale, parts of every kind multiplied their rows.
  void complete_stored(Experiment& e, const config::Origins& given) const override {
    auto& model = translation_of(e).model;
    if (given.given("model.embedding_scale") || models::all_scale_embeddings(model)) return;
    model.embedding_scale = "sqrt";
  }
};

}  // namespace

const TaskRules& translation_rules() {
  static const TranslationRules rules;
  return rules;
}

}  // namespace stretto::experiment
