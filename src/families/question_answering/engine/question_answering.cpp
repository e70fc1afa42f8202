#include "families/question_answering/engine/question_answering.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/squad/code_points.h"
#include "data/text_columns.h"
#include "families/question_answering/engine/answer_scores.h"
#include "families/question_answering/engine/loaded_questions.h"
#include "families/question_answering/engine/span_pass.h"
#include "families/question_answering/question_answering_display.h"

namespace stretto::tasks {
namespace {

std::shared_ptr<const data::QuestionWindows> open_questions(
    const experiment::Experiment& experiment, const std::vector<std::string>& files,
    const text::Tokenizer& tokenizer) {
  if (files.empty()) return nullptr;
  return std::make_shared<data::QuestionWindows>(
      experiment::open_windows(experiment, files, tokenizer));
}

TextFacts facts_of(const std::string& name, const data::QuestionWindows& windows,
                   const text::Tokenizer& tokenizer) {
  TextFacts facts{.name = name,
                  .hash = windows.hash(),
                  .samples = windows.num_windows(),
                  .counts = experiment::count_window_tokens(windows, tokenizer),
                  .left_out = windows.data().bad};
  const auto& data = windows.data();
  facts.more = {{"questions", with_thousands(std::ssize(data.questions))},
                {"paragraphs", with_thousands(std::ssize(data.paragraphs))}};
  const auto add = [&](const char* what, int64_t count) {
    if (count > 0) facts.more.emplace_back(what, with_thousands(count));
  };
  add("questions without an answer",
      std::count_if(data.questions.begin(), data.questions.end(),
                    [](const auto& question) { return question.is_impossible; }));
  if (windows.num_cut_questions() > 0) {
    facts.more.emplace_back("cut", counted(windows.num_cut_questions(), "question") + ", " +
                                       counted(windows.num_cut_tokens(), "token") +
                                       " above data.max_question_tokens");
  }
  add("answers without a token", windows.num_unreachable());
  add("answers left out", data.skipped_answers);
  add("questions left out", data.skipped_questions);
  return facts;
}

}  // namespace

QuestionAnsweringTask::QuestionAnsweringTask(const experiment::Experiment& experiment,
                                             const Assets& assets, const CommandContext& context)
    : EncoderTask(experiment, assets, span_head(), context),
      options_(experiment::questions_of(this->experiment())),
      train_(open_questions(experiment, options_.data.train, tokenizer())),
      valid_(open_questions(experiment, options_.data.valid, tokenizer())),
      samples_(std::make_shared<data::WindowSamples>(train_)) {
  set_train_batches(data::make_length_batches(
      samples_, {.max_rows = {options_.data.max_tokens}, .max_samples = options_.data.max_samples},
      data::Shuffle::kEachEpoch, static_cast<uint64_t>(experiment.run.seed)));
  facts_.push_back(facts_of("training windows", *train_, tokenizer()));
  if (valid_) facts_.push_back(facts_of("validation windows", *valid_, tokenizer()));
  const bool impossible = had_impossible(assets) || experiment::has_impossible(train_->data()) ||
                          (valid_ && experiment::has_impossible(valid_->data()));
  version_ = experiment::squad_version(experiment, impossible);
}

train::TaskWords QuestionAnsweringTask::words() const {
  auto words = EncoderTask::words();
  words.sample = "window";
  words.samples = "windows";
  return words;
}

std::vector<std::pair<std::string, std::string>> QuestionAnsweringTask::show(
    const data::Batch& batch, int64_t index) const {
  const int64_t number = batch.sample_ids.at(static_cast<size_t>(index));
  const auto& window = train_->window(number);
  const auto& question = train_->question(window.question);
  const auto& places = train_->tokens_of(window.question).code_points;
  const auto text_of = [&](data::Span tokens) {
    if (tokens.size() == 0) return std::string();
    const data::CodePoints characters(train_->paragraph_of(window.question).text);
    return std::string(characters.slice(places[static_cast<size_t>(tokens.begin)].begin,
                                        places[static_cast<size_t>(tokens.end - 1)].end));
  };
  return {{"id", question.id},
          {"question", question.text},
          {"paragraph", text_of(window.tokens)},
          {"answer", text_of(window.answer)}};
}

train::Prepared QuestionAnsweringTask::prepare(data::Batch batch) const {
  return prepare_windows(std::move(batch), text_model());
}

train::Sums QuestionAnsweringTask::loss(const train::Prepared& batch,
                                        const train::StepContext& context) {
  const SpanPass pass = span_pass(text_model(), batch, training_context(context));
  const SpanTargets targets = span_targets(batch);
  return {.losses = {losses_of(pass, targets).sum()},
          .statistics = {num_right(pass, targets)},
          .counts = {data::tokens(batch).num_rows(), batch.batch().num_sequences()}};
}

std::vector<double> QuestionAnsweringTask::weights(const data::Batch& batch) const {
  return {static_cast<double>(batch.num_sequences())};
}

std::vector<train::Score> QuestionAnsweringTask::measures(const train::Totals& totals) const {
  return {{.name = score_key::kSpanAccuracy,
           .value = totals.statistics.front() / totals.weights.front()}};
}

train::Validation QuestionAnsweringTask::validate() {
  // No answer and the best one: scores weigh one against the other.
  constexpr int64_t kCandidates = 2;
  const auto found =
      find_answers({shared_model()}, *valid_,
                   {.choice = options_.decode.choice(version_ == metrics::SquadVersion::kV2),
                    .max_tokens = options_.eval.max_tokens,
                    .max_samples = options_.eval.max_samples,
                    .num_candidates = kCandidates,
                    .group = group(),
                    .loading = loading()});
  const auto score = score_found(experiment(), valid_->data(), found, version_);
  train::Validation result;
  result.scores = {{.name = score_key::kLoss, .value = found.loss()},
                   {.name = score_key::kF1, .value = score.all.f1},
                   {.name = score_key::kExactMatch, .value = score.all.exact_match}};
  result.counts = {{"windows", valid_->num_windows()}};
  result.samples = samples(found);
  return result;
}

// Spread over the questions: neighbours ask of one paragraph.
std::vector<report::Sample> QuestionAnsweringTask::samples(const FoundAnswers& found) const {
  const size_t questions = valid_->num_questions();
  const auto most = std::min(static_cast<size_t>(experiment().report.samples), questions);
  std::vector<report::Sample> shown;
  for (size_t i = 0; i < most; ++i) {
    const size_t question = i * questions / most;
    shown.emplace_back(
        answer_sample(*valid_, question, found.choices[question], experiment(), version_));
  }
  return shown;
}

void QuestionAnsweringTask::require_known_data(bool warn) const {
  if (warn) {
    warn_of_skipped(train_->data());
    if (valid_) warn_of_skipped(valid_->data());
  }
  if (samples_->size() > 0) {
    TextTask::require_known_data(warn);
    return;
  }
  throw Error(ExitCode::kBadData, "data.train: no window of the files teaches anything",
              "give questions whose answers have text that the tokenizer reads");
}

}  // namespace stretto::tasks
