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

enum class FrameUse { kTraining, kTest };

// Frames and targets of the utterances that can be used.
train::Prepared prepared_utterances(data::Batch batch, const FrameMaker& maker,
                                    const MakeFeatures& make, FrameUse use) {
  data::Ragged<float> frames;
  frames.width = maker.sounds.width();
  data::PackedTokens targets;
  std::vector<int64_t> ids;
  auto& lengths = batch.column<int64_t>(kUtteranceLength).values;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const auto at = static_cast<size_t>(i);
    const auto target = batch.column<int64_t>(kUtteranceTarget).sequence(i);
    const auto features = make(batch.sample_ids[at]);
    if (!features) {
      lengths[at] = kUnreadLength;
    } else if (use == FrameUse::kTraining && !fits(maker.own, features->num_frames(), target)) {
      lengths[at] = kTooShortLength;
    } else {
      frames.append(features->values);
      targets.append(target);
      ids.push_back(batch.sample_ids[at]);
    }
  }
  const auto* keys = use == FrameUse::kTraining ? &ids : nullptr;
  nn::PackedRows frame_rows = models::pack(frames, keys, at::kCPU);
  nn::PackedRows target_rows = models::pack(targets, keys, at::kCPU);
  train::Prepared made(std::move(batch));
  made.add(std::move(frame_rows));
  made.add(std::move(target_rows));
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
    const auto samples =
        maker.set.load(sample, maker.sounds.rate(), {.seed = maker.seed, .epoch = epoch});
    if (!samples) return std::nullopt;
    return maker.sounds.training(*samples, epoch, sample);
  };
  return prepared_utterances(std::move(batch), maker, make, FrameUse::kTraining);
}

train::Prepared prepare_test_utterances(data::Batch batch, const FrameMaker& maker) {
  const auto make = [&](int64_t sample) -> std::optional<audio::Features> {
    const auto samples = maker.set.load(sample, maker.sounds.rate());
    if (!samples) return std::nullopt;
    return maker.sounds(*samples);
  };
  return prepared_utterances(std::move(batch), maker, make, FrameUse::kTest);
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
