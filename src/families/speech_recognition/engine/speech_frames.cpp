#include "families/speech_recognition/engine/speech_frames.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "data/speech/speech_batches.h"
#include "data/speech/transcripts.h"
#include "models/packed.h"
#include "models/speech/speech_model_options.h"

namespace stretto::tasks {
namespace {

using data::kUtteranceLength, data::kUtteranceTarget;

/// The features of an utterance; nothing where it cannot be read.
using MakeFeatures = std::function<std::optional<audio::Features>(int64_t sample)>;

enum class Keys { kNone, kOfSamples };

// Frames of each utterance, and the targets of those that have some.
train::Prepared prepared(data::Batch batch, const FrameMaker& maker, const MakeFeatures& make,
                         Keys keys) {
  data::Ragged<float> frames;
  frames.width = maker.sounds.width();
  data::PackedTokens targets;
  auto& lengths = batch.column<int64_t>(kUtteranceLength).values;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const auto at = static_cast<size_t>(i);
    const auto target = batch.column<int64_t>(kUtteranceTarget).sequence(i);
    const auto features = make(batch.sample_ids[at]);
    const bool trains = keys == Keys::kOfSamples;
    if (!features) {
      lengths[at] = kUnreadLength;
    } else if (trains && !fits(maker.own, features->num_frames(), target)) {
      lengths[at] = kTooShortLength;
    }
    const bool is_usable = lengths[at] >= 0;
    if (is_usable) {
      frames.values.insert(frames.values.end(), features->values.begin(), features->values.end());
    }
    frames.close_sequence();
    targets.append(is_usable ? target : std::span<const int64_t>());
  }
  const auto* ids = keys == Keys::kOfSamples ? &batch.sample_ids : nullptr;
  nn::PackedRows frame_rows = models::pack(frames, ids, at::kCPU);
  nn::PackedRows target_rows = models::pack(targets, ids, at::kCPU);
  train::Prepared made(std::move(batch));
  made.add(std::move(frame_rows));
  made.add(std::move(target_rows));
  made.add(made.column(kUtteranceLength));
  return made;
}

}  // namespace

bool fits(const experiment::SpeechRecognitionOptions& own, int64_t num_frames,
          std::span<const int64_t> target) {
  const int64_t rows = models::output_length(own.model, num_frames);
  return rows >= (own.has_label() ? 1 : std::max<int64_t>(1, data::ctc_frames(target)));
}

train::Prepared prepare_training_utterances(data::Batch batch, const FrameMaker& maker) {
  const int64_t epoch = batch.epoch;
  const auto make = [&](int64_t sample) -> std::optional<audio::Features> {
    const auto samples = maker.set.load(sample, maker.sounds.rate());
    if (!samples) return std::nullopt;
    return maker.sounds.training(*samples, epoch, sample);
  };
  return prepared(std::move(batch), maker, make, Keys::kOfSamples);
}

train::Prepared prepare_test_utterances(data::Batch batch, const FrameMaker& maker) {
  const auto make = [&](int64_t sample) -> std::optional<audio::Features> {
    const auto samples = maker.set.load(sample, maker.sounds.rate());
    if (!samples) return std::nullopt;
    return maker.sounds(*samples);
  };
  return prepared(std::move(batch), maker, make, Keys::kNone);
}

int64_t count_lengths(const data::Batch& batch, int64_t value) {
  return std::ranges::count(batch.column<int64_t>(kUtteranceLength).values, value);
}

UsableCounts usable_counts(const data::Batch& batch) {
  UsableCounts counts;
  const auto& lengths = batch.column<int64_t>(kUtteranceLength).values;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    if (lengths[static_cast<size_t>(i)] < 0) continue;
    ++counts.utterances;
    counts.ids += batch.column<int64_t>(kUtteranceTarget).length(i);
  }
  return counts;
}

}  // namespace stretto::tasks
