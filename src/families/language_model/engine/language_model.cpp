#include "families/language_model/engine/language_model.h"

#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "data/documents/lanes.h"
#include "data/documents/stream_columns.h"
#include "data/documents/stream_windows.h"
#include "data/documents/stretches.h"
#include "experiment/num_threads.h"
#include "families/language_model/engine/continued_samples.h"
#include "families/language_model/engine/generator.h"
#include "families/language_model/language_model_rules.h"
#include "families/text/engine/score_values.h"
#include "losses/sampled_softmax.h"
#include "models/registry.h"

namespace stretto::tasks {
namespace {

TextFacts facts_of(const std::string& name, const data::Documents& documents, int64_t samples) {
  const auto& counts = documents.counts();
  TextFacts facts{
      .name = name,
      .hash = mix64(documents.key(), static_cast<uint64_t>(samples)),
      .samples = samples,
      .counts = {.tokens = static_cast<int64_t>(documents.num_ids()), .unknown = counts.unknown},
      .left_out = documents.left_out()};
  facts.more.emplace_back("documents", with_thousands(counts.documents));
  facts.more.emplace_back("words", with_thousands(counts.words));
  if (counts.repaired > 0) {
    facts.more.emplace_back("lines with bytes replaced", with_thousands(counts.repaired));
  }
  facts.more.emplace_back("token cache", human_bytes(documents.cache_bytes()));
  return facts;
}

}  // namespace

LanguageModelTask::LanguageModelTask(const experiment::Experiment& experiment, Assets assets,
                                     const CommandContext& context)
    : TextTask(experiment, std::move(assets), context),
      ends_(experiment::end_tokens_of(own(), tokenizer())) {
  model_ = make_language_model(this->experiment(), tokenizer(), device());
  const auto& data = own().data;
  train_ = data::open_documents(
      data::input_of(data, data.train, "data.train", experiment::num_threads(experiment)),
      tokenizer());
  if (!data.valid.empty()) {
    valid_ = open_scored_text(this->experiment(), tokenizer(), data.valid, "data.valid");
    if (has_carry()) {
      data::require_lanes_fit("validation text", static_cast<int64_t>(valid_.documents->num_ids()),
                              experiment::eval_lanes(own()));
    }
  }
  set_train_batches(make_train_batches());
}

std::unique_ptr<data::BatchSource> LanguageModelTask::make_train_batches() {
  const auto& data = own().data;
  const auto num_ids = static_cast<int64_t>(train_->num_ids());
  const auto seed = static_cast<uint64_t>(experiment().run.seed);
  if (has_carry()) {
    data::require_lanes_fit("training text", num_ids, experiment::training_lanes(own()));
    const int64_t groups = experiment().train.update_freq;
    auto batches = data::make_lanes(train_, {.lanes = data.lanes,
                                             .groups = groups,
                                             .length = data.bptt,
                                             .deviation = data.bptt_deviation,
                                             .halved = data.bptt_halved,
                                             .seed = seed});
    num_train_samples_ = batches->num_batches() / groups * data.lanes;
    return batches;
  }
  if (data.packing == "document") {
    const data::WindowSetting setting{.length = data.max_text_tokens,
                                      .by_document = true,
                                      .max_tokens = data.max_tokens,
                                      .max_samples = data.max_samples,
                                      .shuffle = data::Shuffle::kEachEpoch,
                                      .seed = seed};
    auto windows = std::make_shared<data::StreamWindows>(train_, setting);
    num_train_samples_ = windows->size();
    return data::make_window_batches(std::move(windows), setting);
  }
  num_train_samples_ = (num_ids + data.max_text_tokens - 1) / data.max_text_tokens;
  return data::make_stretches(train_, {.length = data.max_text_tokens,
                                       .max_tokens = data.max_tokens,
                                       .max_samples = data.max_samples,
                                       .shuffle = data::Shuffle::kEachEpoch,
                                       .random_start = data.random_start,
                                       .seed = seed});
}

train::TaskWords LanguageModelTask::words() const {
  auto words = TextTask::words();
  words.sample = "sequence";
  words.samples = "sequences";
  if (has_carry()) {
    words.smaller_batches =
        "raise train.update_freq, which cuts the lanes into more micro-batches, or lower data.bptt";
  }
  return words;
}

std::vector<std::string> LanguageModelTask::notes() const {
  auto notes = TextTask::notes();
  if (auto doubt = experiment::doubt_of_groups(own()); !doubt.empty()) {
    notes.push_back(std::move(doubt));
  }
  return notes;
}

std::vector<std::pair<std::string, std::string>> LanguageModelTask::show(const data::Batch& batch,
                                                                         int64_t index) const {
  const auto ids = data::stream_next(batch).sequence(index);
  return {{"text", tokenizer().decode({ids.begin(), ids.end()})}};
}

std::vector<parallel::LaneState> LanguageModelTask::carry() const {
  std::vector<parallel::LaneState> states;
  const auto shapes = model_->carry_shapes();
  if (shapes.empty()) return states;
  const auto first = model_->first_carry(own().data.lanes);
  for (size_t i = 0; i < shapes.size(); ++i) {
    states.push_back({.name = shapes[i].name, .values = first.at(i)});
  }
  return states;
}

train::Sums LanguageModelTask::loss(const train::Prepared& batch,
                                    const train::StepContext& context) {
  std::vector<at::Tensor> carry;
  if (has_carry()) carry = context.carry_of(batch);
  auto pass = model_->forward(batch.rows(), carry, training_context(context));
  const ScoredRows scored = scored_rows(pass.rows, batch);
  const losses::SampleScope samples(context.dropout_key());
  const auto sums = model_->head().loss(scored.rows, {.labels = scored.labels});
  at::Tensor loss = sums.loss_sum;
  if (pass.regulariser.defined()) loss = loss + pass.regulariser;
  return {.losses = {loss},
          .statistics = {sums.nll_sum},
          .counts = {data::stream_next(batch).num_rows(), batch.batch().num_sequences()},
          .carry = std::move(pass.carry)};
}

std::vector<double> LanguageModelTask::weights(const data::Batch& batch) const {
  return {static_cast<double>(data::stream_next(batch).num_rows())};
}

std::vector<train::Score> LanguageModelTask::measures(const train::Totals& totals) const {
  std::vector<train::Score> scores;
  add_nll_scores(totals.statistics.at(0) / totals.weights.at(0), scores);
  return scores;
}

train::Validation LanguageModelTask::validate() {
  const TextScore score = score_text(*model_, own(), valid_, "validation text", evaluation());
  train::Validation result{.scores = scores_of(score), .counts = {{"tokens", score.tokens}}};
  if (group().is_root()) result.samples = samples();  // alone: it has the report
  return result;
}

std::vector<report::Sample> LanguageModelTask::samples() {
  const GeneratingModel model{.start =
                                  [this](int64_t sources, int64_t lanes_per_source) {
                                    return model_->start(sources, lanes_per_source);
                                  },
                              .max_length = model_->max_length(),
                              .before = tokens_before_text(own(), tokenizer()),
                              .writes_all = begins_as_tokenizer(own()),
                              .ends = ends_};
  return continued_samples(model, tokenizer(), *valid_.documents, own().decode,
                           experiment().report.samples);
}

std::vector<TextFacts> LanguageModelTask::text_facts() const {
  std::vector<TextFacts> facts{facts_of("training text", *train_, num_train_samples_)};
  if (can_validate()) {
    facts.push_back(facts_of("validation text", *valid_.documents, valid_.documents->size()));
  }
  return facts;
}

int64_t LanguageModelTask::num_parameters() const {
  return models::num_parameters(*model_);
}

}  // namespace stretto::tasks
