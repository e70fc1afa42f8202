#include "families/speech_synthesis/engine/synthesis_scores.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <utility>

#include "families/speech_synthesis/engine/voice_batch.h"
#include "families/speech_synthesis/speech_synthesis_display.h"
#include "models/synthesis/synthesis_losses.h"

namespace stretto::tasks {
namespace {

std::vector<int32_t> on_cpu(const kernels::Offsets& offsets) {
  const at::Tensor values = offsets.values.to(at::kCPU, at::kInt).contiguous();
  const auto* begin = values.const_data_ptr<int32_t>();
  return {begin, begin + values.numel()};
}

/// Rows [begin, begin + size) of a batch.
struct Stretch {
  int64_t begin = 0, size = 0;

  at::Tensor of(const at::Tensor& rows) const {
    return rows.defined() ? rows.narrow(0, begin, size) : rows;
  }
  kernels::Offsets offsets(at::Device device) const {
    return {.values = at::tensor({int64_t{0}, size}, at::kLong).to(device, at::kInt),
            .max_length = size};
  }
};

Stretch stretch_of(const std::vector<int32_t>& offsets, int64_t i) {
  const auto at = static_cast<size_t>(i);
  return {.begin = offsets[at], .size = offsets[at + 1] - offsets[at]};
}

/// What a model made of the sentences of a batch, one by one.
class Sentences {
 public:
  Sentences(const models::SynthesisOutput& output, const models::SynthesisInput& input,
            const nn::PackedRows& targets)
      : output_(output),
        targets_(targets),
        device_(targets.values.device()),
        frames_(on_cpu(targets.offsets)),
        steps_(on_cpu(output.steps)),
        symbols_(on_cpu(input.text.offsets)) {
    int64_t begin = 0;
    for (int64_t i = 0; i < size(); ++i) {
      const int64_t weights = stretch_of(steps_, i).size * stretch_of(symbols_, i).size;
      blocks_.push_back({.begin = begin, .size = weights});
      begin += weights;
    }
  }

  int64_t size() const { return std::ssize(frames_) - 1; }
  int64_t num_frames(int64_t i) const { return stretch_of(frames_, i).size; }

  models::SynthesisLosses losses(int64_t i, const models::FrameParts& parts,
                                 const models::SynthesisLossOptions& options) const {
    const Stretch frames = stretch_of(frames_, i);
    models::SynthesisOutput part = output_;
    part.before = frames.of(output_.before);
    part.after = output_.after.is_same(output_.before) ? part.before : frames.of(output_.after);
    part.magnitude = frames.of(output_.magnitude);
    part.stop_logits = frames.of(output_.stop_logits);
    part.attention = blocks_[static_cast<size_t>(i)].of(output_.attention);
    part.steps = stretch_of(steps_, i).offsets(device_);
    nn::PackedRows wanted;
    wanted.values = frames.of(targets_.values);
    wanted.positions = frames.of(targets_.positions);
    wanted.offsets = frames.offsets(device_);
    return models::synthesis_losses(part, wanted, stretch_of(symbols_, i).offsets(device_), parts,
                                    options);
  }

  /// The first frame whose probability to end is above the threshold, counted from 1; 0 = none.
  int64_t first_stop(int64_t i, double threshold) const {
    const at::Tensor ends =
        stretch_of(frames_, i).of(output_.stop_logits).sigmoid().gt(threshold).to(at::kCPU);
    const at::Tensor places = ends.nonzero();
    return places.numel() == 0 ? 0 : places[0][0].item<int64_t>() + 1;
  }

  models::AttentionShape shape(int64_t i) const {
    const at::Tensor weights =
        blocks_[static_cast<size_t>(i)].of(output_.attention).to(at::kCPU, at::kFloat).contiguous();
    return models::attention_shape(
        {weights.const_data_ptr<float>(), static_cast<size_t>(weights.numel())},
        stretch_of(symbols_, i).size);
  }

 private:
  const models::SynthesisOutput& output_;
  const nn::PackedRows& targets_;
  const at::Device device_;
  const std::vector<int32_t> frames_, steps_, symbols_;
  std::vector<Stretch> blocks_;  ///< of attention
};

void fill_row(const Sentences& sentences, int64_t i, const models::FrameParts& parts,
              const experiment::SpeechSynthesisOptions& own, std::span<double> row) {
  const auto losses = sentences.losses(i, parts, own.loss);
  const int64_t frames = sentences.num_frames(i);
  const int64_t stop = sentences.first_stop(i, own.decode.stop_threshold);
  const double off = static_cast<double>(std::abs(frames - stop)) * own.features.hop_seconds;
  const auto shape = sentences.shape(i);
  row[kClipLoss] = losses.total.item<double>();
  row[kClipL1] = losses.mel_l1.item<double>();
  row[kClipLength] = static_cast<double>(frames);
  row[kClipStop] = static_cast<double>(stop);
  row[kClipStopsWrongly] = stop == 0 || off > kStopTolerance ? 1 : 0;
  row[kClipDiagonality] = shape.diagonality;
  row[kClipMonotonic] = shape.monotonic;
  const bool is_finite = std::isfinite(row[kClipLoss]) && std::isfinite(row[kClipL1]) &&
                         std::isfinite(shape.diagonality);
  row[kClipOverflowed] = is_finite ? 0 : 1;
}

// Clips of a prepared batch that could be read, in its order.
std::vector<int64_t> readable_clips(const data::Batch& batch) {
  std::vector<int64_t> clips;
  const auto& counts = batch.column<int64_t>(kClipFrames).values;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) clips.push_back(batch.sample_ids[i]);
  }
  return clips;
}

}  // namespace

VoiceBatches scored_batches(VoiceSet set, const experiment::SpeechSynthesisOptions& own) {
  const double seconds =
      own.eval.batch_seconds > 0 ? own.eval.batch_seconds : own.data.batch_seconds;
  auto batches = voice_batches(set, own.data, seconds, data::Shuffle::kNo, /*seed=*/0);
  return {.set = std::move(set), .batches = std::move(batches)};
}

train::ScoreTable score_voice(models::SynthesisModel& model, const VoiceBatches& spoken,
                              const experiment::VoiceFrames& frames,
                              const experiment::SpeechSynthesisOptions& own,
                              train::EvaluationSetup setup) {
  setup.prepare = [&](data::Batch batch) {
    return prepare_voice_batch(std::move(batch), spoken.set, frames, VoiceUse::kScoring);
  };
  const auto score = [&](int64_t /*part*/, std::span<const train::Prepared> read,
                         train::ScoreTable& table) {
    const train::Prepared& batch = read.front();
    const auto clips = readable_clips(batch);
    if (clips.empty()) return;
    const auto input = voice_input(batch, model, own.decode.seed);
    const auto output =
        model.forward(input, voice_targets(batch), {}, models::WantsAttention::kValues);
    const Sentences sentences(output, input, voice_targets(batch));
    for (int64_t i = 0; i < sentences.size(); ++i) {
      fill_row(sentences, i, model.parts(), own, table.row(clips[static_cast<size_t>(i)]));
    }
  };
  return train::evaluate(train::parts_of(*spoken.batches),
                         train::ScoreTable(spoken.set.clips->size(), kNumSynthesisNumbers), setup,
                         score);
}

std::vector<train::Score> scores_of_voice(const train::ScoreTable& table, const VoiceSet& set) {
  const double frames = std::max(1.0, table.sum(kClipLength));
  const auto clips = static_cast<double>(std::max<int64_t>(1, num_read_clips(table, set)));
  return {{.name = synthesis_score::kLoss, .value = table.sum(kClipLoss) / frames},
          {.name = synthesis_score::kMelL1, .value = table.sum(kClipL1) / frames},
          {.name = synthesis_score::kStopError, .value = table.sum(kClipStopsWrongly) / clips},
          {.name = synthesis_score::kDiagonality, .value = table.sum(kClipDiagonality) / clips},
          {.name = synthesis_score::kMonotonic, .value = table.sum(kClipMonotonic) / clips}};
}

int64_t num_read_clips(const train::ScoreTable& table, const VoiceSet& set) {
  return std::ranges::count_if(set.samples.ids,
                               [&](int64_t clip) { return table.row(clip)[kClipLength] > 0; });
}

}  // namespace stretto::tasks
