#include "families/question_answering/question_answering_rules.h"

#include <iterator>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "data/squad/squad_file.h"
#include "experiment/preflight.h"
#include "families/question_answering/question_answering_display.h"
#include "families/question_answering/question_data.h"
#include "families/text/encoder_rules.h"
#include "families/text/text_size.h"

namespace stretto::experiment {
namespace {

// The longer of BERT's and RoBERTa's templates: <s> question </s></s> paragraph </s>.
constexpr int64_t kMostSpecials = 4;

// An answer is a stretch of the paragraph's text, so each token needs a place there
// (text::Tokenizer::fills_places).
constexpr const char* kEmptyPlaces =
    " gives some pieces an empty place in the text, where it replaces one character by several, "
    "and an answer is a stretch of the paragraph";

void check_offsets(RuleCheck& c) {
  if (questions_of(c.e).tokenizer.type != "sentencepiece") return;
  c.wrong({"tokenizer.type"}, std::string("\"sentencepiece\"") + kEmptyPlaces,
          "use \"wordpiece\" or \"byte_bpe\"");
}

void check_windows(RuleCheck& c) {
  const auto& d = questions_of(c.e).data;
  const int64_t room = d.max_text_tokens - d.max_question_tokens - kMostSpecials;
  if (room < 1) {
    c.wrong({"data.max_question_tokens", "data.max_text_tokens"},
            "a question of " + counted(d.max_question_tokens, "token") +
                " leaves no room for its paragraph in " + std::to_string(d.max_text_tokens),
            "lower it, or raise data.max_text_tokens");
    return;
  }
  if (d.stride > room) {
    c.wrong(
        {"data.stride", "data.max_text_tokens", "data.max_question_tokens"},
        "windows would begin " + counted(d.stride, "token") +
            " apart, and behind the longest "
            "question have room for " +
            std::to_string(room) + " alone",
        "lower it to " + std::to_string(room / 2 > 0 ? room / 2 : 1) + ", so that windows overlap");
  }
}

class QuestionAnsweringRules final : public EncoderRules {
 public:
  void check_model(RuleCheck& c) const override {
    EncoderRules::check_model(c);
    check_offsets(c);
  }

  void check_data(RuleCheck& c) const override {
    EncoderRules::check_data(c);
    check_windows(c);
  }

  Preflight look_at_texts(const Experiment& experiment, const std::vector<config::Problem>& known,
                          const PreflightOptions& how) const override {
    return question_preflight(experiment, known, how);
  }

  SeenTokens count_tokens(const Experiment& experiment, const std::string& /*key*/,
                          const std::vector<std::string>& files, const text::Tokenizer& tokenizer,
                          const PreflightTimer& time) const override {
    return count_question_tokens(experiment, files, tokenizer, time);
  }
  void require_tokenizer(const Experiment& /*experiment*/,
                         const text::Tokenizer& tokenizer) const override {
    if (tokenizer.fills_places()) return;
    throw Error(ExitCode::kUsage,
                std::string("the tokenizer is a SentencePiece model, which") + kEmptyPlaces,
                "name a tokenizer of WordPiece or byte-level BPE, or let training make one: "
                "tokenizer.type = \"wordpiece\"");
  }
  void prepare_data(const Experiment& experiment) const override { prepare_questions(experiment); }
  bool reads_pairs(const Experiment& /*experiment*/) const override { return true; }
  std::string name_of_samples() const override { return "windows"; }

  EncoderSections encoder_sections(const Experiment& experiment) const override {
    return encoder_sections_of(questions_of(experiment));
  }

  std::unique_ptr<text::LineSource> training_text(const Experiment& experiment) const override {
    return std::make_unique<QuestionText>([experiment] {
      return data::StoredQuestions{
          .data = std::make_shared<const data::SquadData>(read_training_text(experiment))};
    });
  }

  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return tasks::question_answering_scores();
  }

  ValidationData validation_data(const Experiment& experiment) const override {
    auto data = TextRules::validation_data(experiment);
    data.name = "validation questions";
    return data;
  }

  // Long files are not read: nothing counts their questions but a reader of all of them.
  FileSizes file_sizes(const Experiment& experiment) const override {
    FileSizes sizes = TextRules::file_sizes(experiment);
    const auto& files = questions_of(experiment).data.valid;
    const auto bytes = plain_bytes(files);
    if (files.empty() || !bytes || *bytes > kFewBytes) return sizes;
    sizes.validation =
        known_count([&] { return std::ssize(read_questions(experiment, files).questions); });
    return sizes;
  }

  ScoredSamples scored_samples(const Experiment& /*experiment*/,
                               const FileSizes& files) const override {
    return {.count = files.validation, .unit = "question", .key = "data.valid"};
  }
};

}  // namespace

const TaskRules& question_answering_rules() {
  static const QuestionAnsweringRules rules;
  return rules;
}

}  // namespace stretto::experiment
