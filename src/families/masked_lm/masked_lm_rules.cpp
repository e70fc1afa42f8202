#include "families/masked_lm/masked_lm_rules.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/schema.h"
#include "data/documents/document_lines.h"
#include "data/documents/documents_build.h"
#include "data/documents/documents_count.h"
#include "data/documents/json_documents.h"
#include "data/documents/masked_batches.h"
#include "data/text_lines.h"
#include "experiment/preflight.h"
#include "families/masked_lm/masked_lm_display.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/text/document_preflight.h"
#include "families/text/encoder_rules.h"
#include "families/text/text_size.h"

namespace stretto::experiment {
namespace {

const MaskedLmOptions& masked_sections(const Experiment& experiment) {
  return experiment.task.as<MaskedLmOptions>();
}

void check_shares(RuleCheck& c, const data::MaskedTextOptions& data) {
  const double sum = data.mask_replace + data.mask_random + data.mask_keep;
  if (std::abs(sum - 1) < 1e-6) return;
  c.wrong({"data.mask_replace", "data.mask_random", "data.mask_keep"},
          "the shares of chosen tokens add up to " + config::number_text(sum),
          "they must add up to 1: 0.8, 0.1 and 0.1 are those of BERT");
}

// What is trained has none but for these two types.
void check_mask_token(RuleCheck& c, const text::TextTokenizerOptions& tokenizer) {
  if (tokenizer.type == "wordpiece" || tokenizer.type == "byte_bpe") return;
  c.wrong({"tokenizer.type"}, "\"" + tokenizer.type + "\" has no mask token",
          "use tokenizer.type = \"wordpiece\" or \"byte_bpe\"");
}

// Relations are those of a teacher's rows.
void check_masked_teacher(RuleCheck& c, const losses::MaskedTokenLossOptions& loss) {
  if (loss.has_teacher()) return;
  const auto refuse = [&](const char* key) {
    c.wrong({key, "loss.teacher"}, "there is no teacher to learn from",
            "set loss.teacher, or leave it out");
  };
  if (loss.teacher_hidden > 0) refuse("loss.teacher_hidden");
  if (loss.teacher_attention > 0) refuse("loss.teacher_attention");
}

// Keys and brackets would be read as text.
void require_no_json(const std::vector<std::string>& paths) {
  const auto json = std::ranges::find_if(paths, &data::is_named_json_lines);
  if (json == paths.end()) return;
  throw Error(ExitCode::kUsage,
              printable(*json, 400) + " is called like JSON lines, and masked_lm reads plain text",
              "write its texts to a file, each with a blank line behind it: `jq -r '.text, \"\"'` "
              "does so; or rename a file of plain text");
}

class MaskedLmRules final : public EncoderRules {
 public:
  void check_model(RuleCheck& check) const override {
    EncoderRules::check_model(check);
    check_mask_token(check, masked_sections(check.e).tokenizer);
  }

  void check_data(RuleCheck& check) const override {
    EncoderRules::check_data(check);
    check_shares(check, masked_sections(check.e).data);
    check_masked_teacher(check, masked_sections(check.e).loss);
  }

  std::string teacher_run(const Experiment& experiment) const override {
    return masked_sections(experiment).loss.teacher;
  }
  Experiment without_teacher(Experiment experiment) const override {
    experiment.task.as<MaskedLmOptions>().loss.clear_teacher();
    return experiment;
  }

  EncoderSections encoder_sections(const Experiment& experiment) const override {
    return encoder_sections_of(masked_sections(experiment));
  }
  bool predicts_masked_tokens() const override { return true; }

  std::unique_ptr<text::LineSource> training_text(const Experiment& experiment) const override {
    const auto& data = masked_sections(experiment).data;
    return data::open_lines(data.train, data::bad_sample_rule(data));
  }

  Preflight look_at_texts(const Experiment& experiment, const std::vector<config::Problem>& known,
                          const PreflightOptions& how) const override {
    const auto& data = masked_sections(experiment).data;
    const auto end =
        data.documents == "line" ? data::DocumentEnd::kLine : data::DocumentEnd::kBlankLine;
    Preflight found = look_at_documents(
        data, known, how,
        [end](const std::string& path, auto& bad) { return data::DocumentLines(path, end, &bad); });
    // A look, and no rule: a run that was begun with such a file goes on.
    note_stop(found, Stage::kTraining, "data.train", [&] { require_no_json(data.train); });
    note_stop(found, Stage::kValidation, "data.valid", [&] { require_no_json(data.valid); });
    return found;
  }

  SeenTokens count_tokens(const Experiment& experiment, const std::string& key,
                          const std::vector<std::string>& files, const text::Tokenizer& tokenizer,
                          const PreflightTimer& time) const override {
    const auto& data = masked_sections(experiment).data;
    auto seen = data::count_document_tokens(
        data::input_of(data, files, key, /*threads=*/1), tokenizer,
        data::SequenceRows(tokenizer, data::packing_of(data), data.max_text_tokens),
        [&time] { return time.is_left(); });
    return {.counts = {.tokens = seen.rows, .unknown = seen.unknown},
            .unread = std::move(seen.unread),
            .samples = seen.sequences};
  }

  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return tasks::masked_lm_scores();
  }

  // Scores are those of masked tokens.
  FileSizes file_sizes(const Experiment& experiment) const override {
    FileSizes sizes = TextRules::file_sizes(experiment);
    const auto& data = masked_sections(experiment).data;
    const int64_t tokens = tokens_in(plain_bytes(data.valid).value_or(0));
    const double masked = std::ceil(static_cast<double>(tokens) * data.mask_probability);
    sizes.validation = static_cast<int64_t>(std::min<double>(masked, kCountedSamples));
    return sizes;
  }

  ScoredSamples scored_samples(const Experiment& /*experiment*/,
                               const FileSizes& files) const override {
    return {
        .count = files.validation, .is_guess = true, .unit = "masked token", .key = "data.valid"};
  }

  std::optional<TiedEmbedding> tied_embedding(const Experiment& experiment) const override {
    if (!masked_sections(experiment).model.tie_embeddings) return std::nullopt;
    return TiedEmbedding{.setting = "model.tie_embeddings = true",
                         .others = "model.tie_embeddings = false"};
  }
};

}  // namespace

const TaskRules& masked_lm_rules() {
  static const MaskedLmRules rules;
  return rules;
}

}  // namespace stretto::experiment
