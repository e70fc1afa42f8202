#include "families/masked_lm/engine/masked_lm.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "experiment/num_threads.h"
#include "families/masked_lm/engine/masked_text_view.h"
#include "families/text/engine/batch_tokens.h"
#include "families/text/engine/score_values.h"

namespace stretto::tasks {
namespace {

TextFacts facts_of(const std::string& name, const data::MaskedText& text) {
  const auto& sequences = *text.sequences;
  const auto& documents = sequences.documents();
  const auto& counts = documents.counts();
  TextFacts facts{.name = name,
                  .hash = mix64(documents.key(), static_cast<uint64_t>(sequences.num_rows())),
                  .samples = sequences.size(),
                  .counts = {.tokens = sequences.num_rows(), .unknown = counts.unknown},
                  .left_out = documents.left_out()};
  facts.more.emplace_back("documents", with_thousands(counts.documents));
  facts.more.emplace_back("words", with_thousands(counts.words));
  if (sequences.num_split() > 0) {
    facts.more.emplace_back("documents cut into several texts",
                            with_thousands(sequences.num_split()));
  }
  if (counts.repaired > 0) {
    facts.more.emplace_back("lines with bytes replaced", with_thousands(counts.repaired));
  }
  facts.more.emplace_back("token cache", human_bytes(documents.cache_bytes()));
  return facts;
}

TextHead head_while_training(const experiment::Experiment& experiment) {
  TextHead head = kMaskedTokenHead;
  const auto& loss = masked_lm_of(experiment).loss;
  if (loss.has_teacher()) {
    head.teacher = losses::TeacherWeights{.weight = loss.teacher_weight,
                                          .temperature = loss.teacher_temperature};
  }
  return head;
}

}  // namespace

const experiment::MaskedLmOptions& masked_lm_of(const experiment::Experiment& experiment) {
  return experiment.task.as<experiment::MaskedLmOptions>();
}

data::MaskedText open_masked_text(const experiment::Experiment& experiment,
                                  const text::Tokenizer& tokenizer,
                                  const std::vector<std::string>& paths, const std::string& key) {
  const auto& options = masked_lm_of(experiment).data;
  // First, since it is told at once.
  auto masker = std::make_shared<data::Masker>(tokenizer, data::mask_rules_of(options));
  auto documents = data::open_documents(
      data::input_of(options, paths, key, experiment::num_threads(experiment)), tokenizer);
  return {.sequences = std::make_shared<data::DocumentSequences>(
              std::move(documents), tokenizer, data::packing_of(options), options.max_text_tokens),
          .masker = std::move(masker)};
}

std::unique_ptr<data::BatchSource> masked_eval_batches(const experiment::Experiment& experiment,
                                                       const data::MaskedText& text,
                                                       at::Device device) {
  const auto& eval = masked_lm_of(experiment).eval;
  return data::make_masked_eval_batches(text, batch_tokens(eval.max_tokens, device),
                                        eval.max_samples,
                                        static_cast<uint64_t>(experiment.run.seed));
}

LoadedTextRun load_masked_lm(const experiment::Experiment& experiment,
                             const runs::RunFolder& folder, const std::string& checkpoint,
                             at::Device device) {
  auto run = load_text_run(
      experiment, folder, checkpoint,
      [](const experiment::Experiment&, const Assets&) { return kMaskedTokenHead; }, device);
  if (run.models.size() == 1) return run;
  throw Error(ExitCode::kUsage, "masked language models make no ensembles",
              "give one checkpoint; `stretto average` makes one of several");
}

std::vector<train::Score> masked_scores(double nll, double accuracy) {
  std::vector<train::Score> scores;
  add_nll_scores(nll, scores);
  scores.push_back({.name = score_key::kAccuracy, .value = accuracy});
  return scores;
}

MaskedLmTask::MaskedLmTask(const experiment::Experiment& experiment, Assets assets,
                           const CommandContext& context)
    : EncoderTask(experiment, std::move(assets), head_while_training(experiment), context) {
  const auto& data = masked_lm_of(this->experiment()).data;
  train_ = open_masked_text(experiment, tokenizer(), data.train, "data.train");
  if (!data.valid.empty()) {
    valid_ = open_masked_text(experiment, tokenizer(), data.valid, "data.valid");
    valid_batches_ = masked_eval_batches(experiment, valid_, device());
  }
  set_train_batches(data::make_masked_train_batches(train_, data, seed()));
  if (masked_lm_of(this->experiment()).loss.has_teacher()) {
    teacher_ = std::make_unique<MaskedTeacher>(this->experiment(), this->assets(), device());
  }
}

std::vector<std::pair<std::string, std::string>> MaskedLmTask::show(const data::Batch& batch,
                                                                    int64_t index) const {
  std::vector<std::string> hidden;
  for (const int64_t id : data::masked_labels(batch).sequence(index)) {
    hidden.push_back(token_text(tokenizer(), id));
  }
  return {{"text", masked_text(tokenizer(), batch, index)}, {"masked", join(hidden, " | ")}};
}

train::Sums MaskedLmTask::loss(const train::Prepared& batch, const train::StepContext& context) {
  const auto in_training = training_context(context);
  const MaskedSums sums = teacher_ ? teacher_->loss(text_model(), batch, in_training)
                                   : masked_loss(text_model(), batch, in_training);
  train::Sums result{.losses = {sums.loss},
                     .statistics = {sums.right},
                     .counts = {data::tokens(batch).num_rows(), batch.batch().num_sequences(),
                                data::masked_labels(batch).num_rows()}};
  if (teacher_) result.statistics.push_back(sums.nll);
  return result;
}

std::vector<double> MaskedLmTask::weights(const data::Batch& batch) const {
  return {static_cast<double>(data::masked_labels(batch).num_rows())};
}

std::vector<train::Score> MaskedLmTask::measures(const train::Totals& totals) const {
  const double tokens = totals.weights.at(0);
  if (tokens == 0) return {};
  const double nll = teacher_ ? totals.statistics.at(1) : totals.losses.at(0);
  return masked_scores(nll / tokens, totals.statistics.at(0) / tokens);
}

train::Validation MaskedLmTask::validate() {
  const MaskedScore score = score_masked(text_model(), *valid_batches_, evaluation());
  train::Validation result{.scores = masked_scores(score.nll, score.accuracy)};
  result.scores.insert(result.scores.begin(),
                       train::Score{.name = score_key::kLoss, .value = score.nll});
  result.counts = {{"tokens", score.tokens}, {"texts", valid_.sequences->size()}};
  result.samples = samples();
  return result;
}

std::vector<report::Sample> MaskedLmTask::samples() {
  const int64_t count = std::min(experiment().report.samples, valid_.sequences->size());
  std::vector<report::Sample> shown;
  for (int64_t i = 0; i < count; ++i) {
    const data::Batch batch = data::masked_eval_sample(valid_, i, seed());
    if (data::masked_rows(batch).num_rows() == 0) continue;
    std::vector<Filler> best;
    for (auto& fillers : fillers_of(text_model(), batch, 1)) {
      best.push_back(fillers.best.front());
    }
    shown.emplace_back(masked_sample(tokenizer(), batch, 0, best));
  }
  return shown;
}

std::vector<TextFacts> MaskedLmTask::text_facts() const {
  std::vector<TextFacts> facts{facts_of("training text", train_)};
  if (can_validate()) facts.push_back(facts_of("validation text", valid_));
  return facts;
}

}  // namespace stretto::tasks
