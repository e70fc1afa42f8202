#include "families/speech_recognition/engine/speech_recognition.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/speech/speech_batches.h"
#include "experiment/num_threads.h"
#include "experiment/scaled_rate.h"
#include "families/speech_recognition/engine/speech_samples.h"
#include "families/speech_recognition/speech_recognition_display.h"
#include "models/heads/label.h"
#include "models/registry.h"
#include "nn/batch_norm.h"
#include "tasks/left_out.h"
#include "tasks/taken_tokenizer.h"

namespace stretto::tasks {
namespace {

// "24: a, e, i, k, …"
std::string units_text(const SpeechUnits& units) {
  constexpr int64_t kMost = 40;
  std::vector<std::string> names;
  for (int64_t i = 0; i < std::min(units.size(), kMost); ++i) {
    names.push_back(
        printable(units.tokenizer ? units.tokenizer->piece(i) : units.labels->name(i), 30));
  }
  if (units.size() > kMost) names.push_back("…");
  return with_thousands(units.size()) + ": " + join(names, " ");
}

std::string features_text(const audio::FeatureKeys& keys) {
  return std::to_string(keys.width()) + " a frame (" + keys.kind + ", " + keys.dialect +
         "), a frame every " + shortest(1000 * keys.hop_seconds) + " ms, at " +
         with_thousands(keys.rate) + " Hz";
}

std::string amount_text(const SpokenSet& spoken) {
  return counted(std::ssize(spoken.used), "utterance") + ", " + human_duration(spoken.seconds);
}

// A loss of no utterance: 0, and gradients of 0.
at::Tensor zero_loss(torch::nn::Module& model) {
  // Batch norms over all processes (dist.batch_norm) await this one.
  const at::Tensor norms = nn::pass_without_rows(model);
  for (const at::Tensor& parameter : model.parameters()) {
    if (!parameter.requires_grad()) continue;
    const at::Tensor zero = parameter.flatten().narrow(0, 0, 1).sum() * 0;
    return norms.defined() ? norms + zero : zero;
  }
  return at::zeros({});
}

}  // namespace

std::vector<std::string> speech_output_parts() {
  return {"head.*", "ctc.*", "decoder.*"};
}

SpeechRecognitionTask::SpeechRecognitionTask(const experiment::Experiment& experiment,
                                             const Assets& assets, const CommandContext& context)
    : experiment_(experiment),
      own_(experiment::speech_of(experiment)),
      assets_(assets),
      context_(context),
      units_(units_of(experiment, assets)),
      sounds_(own_.features, own_.augment, static_cast<uint64_t>(experiment.run.seed)),
      model_(make_speech_network(experiment, units_.size(), context.device, FirstWeights::kDrawn)),
      train_(open("data.train", own_.data.train, /*is_training=*/true)) {
  if (!own_.data.valid.empty()) {
    valid_ = open("data.valid", own_.data.valid, /*is_training=*/false);
    reader_.emplace(std::vector{model_}, units_, own_);
  }
  if (context.group.is_root()) tell_of_data();
}

SpokenSet SpeechRecognitionTask::open(const std::string& key, const std::vector<std::string>& paths,
                                      bool is_training) const {
  return open_spoken_set(own_, units_, sounds_,
                         {.key = key,
                          .paths = paths,
                          .is_training = is_training,
                          .seed = static_cast<uint64_t>(experiment_.run.seed),
                          .threads = experiment::num_threads(experiment_),
                          .tells = context_.group.is_root()});
}

void SpeechRecognitionTask::tell_of_data() const {
  const auto tell = [](const std::string& key, const SpokenSet& spoken) {
    for (const auto& remark : spoken.remarks) log::warn(key + ": " + remark);
  };
  tell("data.train", train_);
  if (!valid_.set) return;
  tell("data.valid", valid_);
  const std::string shared = data::shared_sounds_text(*train_.set, *valid_.set);
  if (!shared.empty()) log::warn("data.valid: " + shared + "; " + data::kSharedSoundsAdvice);
}

std::vector<std::string> SpeechRecognitionTask::replaceable_parts() const {
  return speech_output_parts();
}

std::vector<std::string> SpeechRecognitionTask::statistics() const {
  if (own_.has_label()) return {"right"};
  return {};
}

std::vector<std::string> SpeechRecognitionTask::counters() const {
  return {kHeardFrames, kUtterances, kWantedLabels, kUnreadUtterances, kTooShortUtterances};
}

train::TaskWords SpeechRecognitionTask::words() const {
  return {.sample = "utterance",
          .samples = "utterances",
          .smaller_batches =
              "lower data.batch_seconds (raise train.update_freq by the same factor to keep the "
              "batch), or data.max_seconds",
          .odd_samples = "data.max_seconds leaves long ones out",
          .stabilising_setting = {}};
}

std::vector<std::pair<std::string, std::string>> SpeechRecognitionTask::show(
    const data::Batch& batch, int64_t index) const {
  const int64_t sample = batch.sample_ids.at(static_cast<size_t>(index));
  return {{"utterance", train_.set->place(sample)},
          {own_.has_label() ? "label" : "text", train_.references[static_cast<size_t>(sample)]}};
}

train::Prepared SpeechRecognitionTask::prepare(data::Batch batch) const {
  return prepare_training_utterances(std::move(batch),
                                     {.set = *train_.set,
                                      .sounds = sounds_,
                                      .own = own_,
                                      .seed = static_cast<uint64_t>(experiment_.run.seed)});
}

std::vector<int64_t> SpeechRecognitionTask::counts_of(const train::Prepared& batch) const {
  const data::Batch& utterances = batch;
  return {batch.rows(kFrameRows).num_rows(), utterances.num_sequences(),
          batch.rows(kTargetRows).num_rows(), count_lengths(utterances, kUnreadLength),
          count_lengths(utterances, kTooShortLength)};
}

train::Sums SpeechRecognitionTask::loss(const train::Prepared& batch,
                                        const train::StepContext& context) {
  if (own_.has_label()) return label_loss(batch, context);
  const auto& frames = batch.rows(kFrameRows);
  if (frames.num_rows() == 0) return {.losses = {zero_loss(*model_)}, .counts = counts_of(batch)};
  const models::ForwardContext pass{.training = true, .dropout_key = context.dropout_key()};
  const auto encoded = model_->encode(frames, pass);
  const auto losses = model_->losses(encoded, batch.rows(kTargetRows), pass);
  return {.losses = {losses.each.sum()}, .counts = counts_of(batch)};
}

train::Sums SpeechRecognitionTask::label_loss(const train::Prepared& batch,
                                              const train::StepContext& context) {
  const auto& frames = batch.rows(kFrameRows);
  if (frames.num_rows() == 0) {
    return {.losses = {zero_loss(*model_)},
            .statistics = {at::zeros({}, frames.positions.options().dtype(at::kFloat))},
            .counts = counts_of(batch)};
  }
  const models::ForwardContext pass{.training = true, .dropout_key = context.dropout_key()};
  const at::Tensor logits = model_->label_logits(model_->encode(frames, pass));
  const at::Tensor& labels = batch.rows(kTargetRows).ids;  // one of each utterance
  train::Sums sums;
  sums.losses = {models::label_cross_entropy(logits, labels).each.sum()};
  sums.statistics = {models::is_in_top(logits.detach(), labels, 1).to(at::kFloat).sum()};
  sums.counts = counts_of(batch);
  return sums;
}

std::vector<double> SpeechRecognitionTask::weights(const data::Batch& batch) const {
  const auto counts = usable_counts(batch);
  return {static_cast<double>(own_.is_per_utterance() ? counts.utterances : counts.ids)};
}

std::vector<train::Score> SpeechRecognitionTask::measures(const train::Totals& totals) const {
  if (!own_.has_label()) return {};
  return {{.name = speech_score::kAccuracy,
           .value = totals.statistics.front() / std::max(1.0, totals.weights.front())}};
}

train::Validation SpeechRecognitionTask::validate() {
  const auto found = evaluate_spoken_set(
      *reader_, valid_, sounds_, own_,
      {.device = context_.device, .group = context_.group, .loading = loading()});
  train::Validation validation;
  validation.scores = scores_of_speech(found, own_.has_label());
  const auto faults = faults_of(found, valid_);
  validation.counts = {{kUtterances, std::ssize(valid_.used)},
                       {kUnreadUtterances, faults.unread},
                       {kTooShortUtterances, faults.too_short}};
  if (context_.group.is_root()) {
    validation.samples = speech_samples(found, valid_, own_, units_, experiment_.report.samples);
  }
  return validation;
}

std::vector<distributed::Fact> SpeechRecognitionTask::data_facts() const {
  const auto of = [](const SpokenSet& spoken) {
    return hex64(spoken.set->hash()) + " of " + counted(std::ssize(spoken.used), "utterance");
  };
  std::vector<distributed::Fact> facts{{"training speech", of(train_)}};
  if (valid_.set) facts.push_back({"validation speech", of(valid_)});
  facts.push_back({"micro-batches an epoch", std::to_string(train_.batches->num_batches())});
  return facts;
}

std::vector<std::pair<std::string, std::string>> SpeechRecognitionTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts{
      {"parameters", with_thousands(models::num_parameters(*model_))},
      {own_.has_label() ? "labels" : "tokens", units_text(units_)},
      {"features", features_text(own_.features)}};
  const auto add = [&](const std::string& name, const SpokenSet& spoken) {
    facts.emplace_back(name, amount_text(spoken));
    if (const auto left_out = spoken.set->left_out(); left_out.count > 0) {
      facts.emplace_back(name + ", left out", left_out.text());
    }
    const std::string outside = spoken.set->outside_limits().text(own_.data);
    if (!outside.empty()) facts.emplace_back(name + ", not trained on", outside);
    for (const auto& remark : spoken.remarks) facts.emplace_back(name + ", texts", remark);
  };
  add("training speech", train_);
  if (valid_.set) add("validation speech", valid_);
  facts.emplace_back("micro-batches an epoch", with_thousands(train_.batches->num_batches()));
  return facts;
}

std::vector<std::string> SpeechRecognitionTask::notes() const {
  std::vector<std::string> notes;
  add_note_of_left_out("training speech", train_.set->left_out(), notes);
  if (valid_.set) add_note_of_left_out("validation speech", valid_.set->left_out(), notes);
  for (const auto& remark : train_.remarks) notes.push_back("training speech: " + remark);
  return notes;
}

data::Loading SpeechRecognitionTask::loading() const {
  return data::speech_loading(own_.data, experiment::num_threads(experiment_));
}

int64_t SpeechRecognitionTask::update_bound() const {
  return std::llround(experiment::ScaledRate(experiment_).batch);
}

std::vector<runs::MatchedTable> SpeechRecognitionTask::matched_tables(
    const runs::InitialRun& run) const {
  if (own_.has_label()) return {};
  require_pieces(run);
  const auto before = text::load_tokenizers({}, run.tokenizer);
  auto rows = matched_rows(*units_.tokenizer, *before.src, "");
  rows.push_back(before.src->size());  // the frame without a label
  return {{"ctc.output.weight", rows}, {"ctc.output.bias", rows}};
}

}  // namespace stretto::tasks
