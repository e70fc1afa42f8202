#include "families/speech_synthesis/engine/speech_synthesis.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/speech/speech_files.h"
#include "experiment/num_threads.h"
#include "experiment/scaled_rate.h"
#include "families/speech_synthesis/engine/synthesis_samples.h"
#include "families/speech_synthesis/engine/voice_batch.h"
#include "families/speech_synthesis/speech_synthesis_display.h"
#include "models/registry.h"
#include "models/synthesis/synthesis_losses.h"
#include "nn/batch_norm.h"
#include "runs/initial_weights.h"
#include "tasks/left_out.h"
#include "tasks/taken_tokenizer.h"

namespace stretto::tasks {
namespace {

// The tensor that has a row for each symbol: of Tacotron 2, and of CENTAUR.
constexpr std::array<const char*, 2> kSymbolTables{"encoder.embedding.weight", "embedding.weight"};

// "4: alba, bruno, carla, dario"
std::string speakers_text(const data::Labels& speakers) {
  constexpr size_t kMost = 20;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(speakers.names().size(), kMost); ++i) {
    names.push_back(printable(speakers.names()[i], 60));
  }
  if (speakers.names().size() > kMost) names.push_back("…");
  return with_thousands(speakers.size()) + ": " + join(names, ", ");
}

std::string frames_text(const experiment::SpeechSynthesisOptions& own,
                        const models::FrameParts& parts) {
  std::vector<std::string> kinds;
  if (parts.num_mels > 0) kinds.push_back(std::to_string(parts.num_mels) + " mel bands");
  if (parts.num_bins > 0) kinds.push_back(std::to_string(parts.num_bins) + " magnitudes");
  return join(kinds, " and ") + ", every " + fixed(own.features.hop_seconds * 1000, 2) + " ms at " +
         with_thousands(own.features.rate) + " Hz";
}

// A loss of nothing, in which every parameter has a gradient of zeros: reducers await them all. So
// do batch norms over all processes (dist.batch_norm).
at::Tensor loss_of_nothing(torch::nn::Module& model) {
  at::Tensor sum = nn::pass_without_rows(model);
  for (const auto& parameter : model.parameters()) {
    if (!parameter.requires_grad()) continue;
    const at::Tensor zero = parameter.flatten().narrow(0, 0, 1).sum() * 0;
    sum = sum.defined() ? sum + zero : zero;
  }
  return sum;
}

}  // namespace

std::vector<std::string> synthesis_replaceable_parts() {
  return {"voice.speakers.*"};
}

SpeechSynthesisTask::SpeechSynthesisTask(const experiment::Experiment& experiment,
                                         const Assets& assets, const CommandContext& context)
    : experiment_(experiment),
      options_(experiment::synthesis_of(experiment)),
      assets_(assets),
      context_(context),
      voice_(voice_of(experiment, assets)),
      text_(options_.tokenizer, voice_.tokenizer),
      frames_(options_, static_cast<uint64_t>(experiment.run.seed)),
      model_(make_synthesis_network(experiment, voice_, context.device, FirstWeights::kDrawn)),
      train_(open_voice_set(options_, "data.train", options_.data.train, text_, voice_.speakers,
                            experiment::num_threads(experiment), context.group.is_root())) {
  const auto& data = options_.data;
  train_batches_ = voice_batches(train_, data, data.batch_seconds, data::Shuffle::kEachEpoch,
                                 static_cast<uint64_t>(experiment.run.seed));
  if (data.valid.empty()) return;
  valid_ =
      scored_batches(open_voice_set(options_, "data.valid", data.valid, text_, voice_.speakers,
                                    experiment::num_threads(experiment), context.group.is_root()),
                     options_);
  warn_of_shared_clips();
}

void SpeechSynthesisTask::warn_of_shared_clips() const {
  if (!context_.group.is_root()) return;
  const std::string shared = data::shared_sounds_text(*train_.clips, *valid_.set.clips);
  if (!shared.empty()) log::warn("data.valid: " + shared + "; " + data::kSharedSoundsAdvice);
}

std::vector<std::string> SpeechSynthesisTask::replaceable_parts() const {
  return voice_.speakers ? synthesis_replaceable_parts() : std::vector<std::string>{};
}

std::vector<std::string> SpeechSynthesisTask::counters() const {
  return {synthesis_count::kFrames, synthesis_count::kClips, synthesis_count::kUnreadable};
}

train::TaskWords SpeechSynthesisTask::words() const {
  return {.sample = "clip",
          .samples = "clips",
          .smaller_batches =
              "lower data.batch_seconds (raise train.update_freq by the same factor to keep the "
              "batch), or data.max_seconds",
          .odd_samples = {},
          .stabilising_setting = {}};
}

std::vector<std::pair<std::string, std::string>> SpeechSynthesisTask::show(const data::Batch& batch,
                                                                           int64_t index) const {
  const int64_t clip = batch.sample_ids.at(static_cast<size_t>(index));
  return {{"text", train_.text_of(clip)}, {"clip", train_.clips->place(clip)}};
}

train::Prepared SpeechSynthesisTask::prepare(data::Batch batch) const {
  return prepare_voice_batch(std::move(batch), train_, frames_, VoiceUse::kTraining);
}

train::Sums SpeechSynthesisTask::loss(const train::Prepared& batch,
                                      const train::StepContext& context) {
  const int64_t clips = batch.batch().num_sequences(), readable = num_readable_clips(batch);
  train::Sums sums;
  sums.counts = {num_clip_frames(batch), clips, clips - readable};
  if (readable == 0) {
    sums.losses = {loss_of_nothing(*model_)};
    sums.statistics = {at::zeros({}, at::TensorOptions(context_.device))};
    return sums;
  }
  const auto input = voice_input(batch, *model_, options_.decode.seed);
  const auto& targets = voice_targets(batch);
  const auto output =
      model_->forward(input, targets, {.training = true, .dropout_key = context.dropout_key()},
                      models::attention_for(options_.loss));
  const auto losses =
      models::synthesis_losses(output, targets, input.text.offsets, model_->parts(), options_.loss);
  sums.losses = {losses.total};
  sums.statistics = {losses.mel_l1};
  return sums;
}

std::vector<double> SpeechSynthesisTask::weights(const data::Batch& batch) const {
  if (batch.columns.size() > kClipFrames) {
    return {static_cast<double>(num_clip_frames(batch))};
  }
  double seconds = 0;
  for (const int64_t clip : batch.sample_ids) seconds += train_.clips->seconds(clip);
  return {std::round(seconds / options_.features.hop_seconds)};
}

std::vector<train::Score> SpeechSynthesisTask::measures(const train::Totals& totals) const {
  return {{.name = synthesis_score::kMelL1,
           .value = totals.statistics.front() / std::max(1.0, totals.weights.front())}};
}

train::Validation SpeechSynthesisTask::validate() {
  const auto table =
      score_voice(*model_, valid_, frames_, options_,
                  {.device = context_.device, .group = context_.group, .loading = loading()});
  train::Validation validation;
  validation.scores = scores_of_voice(table, valid_.set);
  const int64_t samples = valid_.set.num_samples();
  validation.counts = {{synthesis_count::kFrames, std::llround(table.sum(kClipLength))},
                       {synthesis_count::kClips, samples},
                       {synthesis_count::kUnreadable, samples - num_read_clips(table, valid_.set)}};
  const int64_t shown = experiment_.report.samples;
  if (shown > 0 && context_.group.is_root()) {
    validation.samples =
        voice_samples(*model_, valid_.set, frames_, options_, context_.device, shown);
  }
  return validation;
}

std::vector<distributed::Fact> SpeechSynthesisTask::data_facts() const {
  const auto of = [](const VoiceSet& set) {
    return hex64(set.hash()) + " of " + counted(set.num_samples(), "clip");
  };
  std::vector<distributed::Fact> facts{{"training clips", of(train_)}};
  if (can_validate()) facts.push_back({"validation clips", of(valid_.set)});
  facts.push_back({"micro-batches an epoch", std::to_string(train_batches_->num_batches())});
  return facts;
}

std::vector<std::pair<std::string, std::string>> SpeechSynthesisTask::facts() const {
  std::vector<std::pair<std::string, std::string>> facts{
      {"parameters", with_thousands(models::num_parameters(*model_))},
      {"symbols", with_thousands(voice_.tokenizer->size())},
      {"speakers", voice_.speakers ? speakers_text(*voice_.speakers) : "1"},
      {"frames", frames_text(options_, model_->parts())}};
  const auto add = [&](const std::string& name, const VoiceSet& set) {
    facts.emplace_back(name, with_thousands(set.num_samples()) + ", " +
                                 human_duration(set.clips->total_seconds()));
    if (const auto left_out = set.clips->left_out(); left_out.count > 0) {
      facts.emplace_back(name + ", left out", left_out.text());
    }
    if (const auto& outside = set.clips->outside_limits(); outside.count() > 0) {
      facts.emplace_back(name + ", outside the limits", outside.text(options_.data));
    }
    for (const auto& remark : set.remarks) facts.emplace_back(name + ", texts", remark);
  };
  add("training clips", train_);
  if (can_validate()) add("validation clips", valid_.set);
  facts.emplace_back("micro-batches an epoch", with_thousands(train_batches_->num_batches()));
  return facts;
}

std::vector<std::string> SpeechSynthesisTask::notes() const {
  std::vector<std::string> notes;
  add_note_of_left_out("training clips", train_.clips->left_out(), notes);
  if (can_validate()) add_note_of_left_out("validation clips", valid_.set.clips->left_out(), notes);
  return notes;
}

std::vector<runs::MatchedTable> SpeechSynthesisTask::matched_tables(
    const runs::InitialRun& run) const {
  require_pieces(run);
  const auto before = text::load_tokenizers({}, run.tokenizer);
  const auto parameters = model_->named_parameters();
  const auto table = std::ranges::find_if(
      kSymbolTables, [&](const char* name) { return parameters.contains(name); });
  runs::MatchedTable matched;
  matched.parameter = *table;
  matched.rows = matched_rows(*voice_.tokenizer, *before.src, "");
  return {matched};
}

data::Loading SpeechSynthesisTask::loading() const {
  return data::speech_loading(options_.data, experiment::num_threads(experiment_));
}

int64_t SpeechSynthesisTask::update_bound() const {
  return std::llround(experiment::ScaledRate(experiment_).batch);
}

}  // namespace stretto::tasks
