#include "families/speech_synthesis/engine/voice_batch.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "models/packed.h"

namespace stretto::tasks {

train::Prepared prepare_voice_batch(data::Batch batch, const VoiceSet& set,
                                    const experiment::VoiceFrames& frames, VoiceUse use) {
  batch.columns.resize(kClipFrames);  // a part of a prepared batch is prepared anew
  data::PackedTokens counts, symbols;
  data::Ragged<float> rows;
  rows.width = frames.parts().width();
  std::vector<int64_t> clips, speakers;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const int64_t clip = batch.sample_ids[static_cast<size_t>(i)];
    audio::Features made;
    if (const auto samples = set.clips->load(clip, frames.rate())) {
      made = use == VoiceUse::kTraining ? frames.training(*samples, batch.epoch, clip)
                                        : frames(*samples);
    }
    counts.append({made.num_frames()});
    if (made.num_frames() == 0) continue;
    rows.append(made.values);
    symbols.append(batch.column<int64_t>(data::kUtteranceTarget).sequence(i));
    clips.push_back(clip);
    speakers.push_back(set.speaker(clip));
  }
  batch.columns.emplace_back(std::move(counts));
  train::Prepared prepared(std::move(batch));
  if (clips.empty()) return prepared;
  prepared.add(models::pack(symbols, &clips, at::kCPU));
  prepared.add(models::pack(rows, &clips, at::kCPU));
  prepared.add(at::tensor(speakers, at::kLong));
  prepared.add(models::sentence_keys(symbols, at::kCPU));
  return prepared;
}

int64_t num_readable_clips(const data::Batch& batch) {
  const auto& counts = batch.column<int64_t>(kClipFrames).values;
  return std::ranges::count_if(counts, [](int64_t frames) { return frames > 0; });
}

int64_t num_clip_frames(const data::Batch& batch) {
  const auto& counts = batch.column<int64_t>(kClipFrames).values;
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

models::SynthesisInput voice_input(const train::Prepared& batch,
                                   const models::SynthesisModel& model, int64_t seed) {
  models::SynthesisInput input;
  input.text = batch.rows(0);
  if (model.num_speakers() > 1) input.speakers = batch.tensor(0);
  if (model.has_style()) {
    input.style = voice_targets(batch);
    input.style.values = input.style.values.narrow(1, 0, model.parts().decoder_width());
  }
  input.sentence_keys = batch.tensor(1);
  input.prenet_seed = static_cast<uint64_t>(seed);
  return input;
}

}  // namespace stretto::tasks
