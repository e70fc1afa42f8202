#include "families/speech_synthesis/engine/synthesis_samples.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "audio/wave_writer.h"
#include "base/error.h"
#include "base/text.h"
#include "data/batch.h"
#include "families/speech_synthesis/engine/matrix_picture.h"
#include "families/speech_synthesis/engine/voice_batch.h"
#include "models/synthesis/synthesis_losses.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kSpareFrames = 20;  // beside twice a clip's

int64_t frames_in(double seconds, const experiment::SpeechSynthesisOptions& own) {
  return std::max<int64_t>(1, std::llround(seconds / own.features.hop_seconds));
}

// Samples that are equally far apart, as a batch without frames.
data::Batch shown_batch(const VoiceSet& set, int64_t count) {
  data::Batch batch{.sample_ids = {}, .columns = {data::PackedTokens{}, data::PackedTokens{}}};
  const int64_t shown = std::min(count, set.num_samples());
  for (int64_t k = 0; k < shown; ++k) {
    const int64_t i = k * set.num_samples() / shown;
    batch.sample_ids.push_back(set.samples.ids[static_cast<size_t>(i)]);
    batch.column<int64_t>(data::kUtteranceTarget).append(set.samples.targets.sequence(i));
    batch.column<int64_t>(data::kUtteranceLength).append({int64_t{0}});
  }
  return batch;
}

std::string end_text(decoding::StopReason reason) {
  switch (reason) {
    case decoding::StopReason::kStop:
      return "stopped";
    case decoding::StopReason::kSourceEnd:
      return "ended with its text";
    case decoding::StopReason::kLimit:
      return "never stopped";
  }
  return "";
}

std::string seconds_text(int64_t frames, const experiment::SpeechSynthesisOptions& own) {
  return fixed(static_cast<double>(frames) * own.features.hop_seconds, 1) + " s";
}

report::MediaSample player(const std::vector<float>& sound, int64_t rate, std::string words,
                           std::string note) {
  report::MediaSample sample;
  sample.mime = "audio/wav";
  sample.bytes = audio::wave_bytes(sound, rate);
  sample.words = std::move(words);
  sample.note = std::move(note);
  return sample;
}

/// Adds what is shown of one clip.
class ShownClips {
 public:
  ShownClips(const experiment::SpeechSynthesisOptions& own, const models::FrameParts& parts)
      : own_(own), parts_(parts), sounds_(own) {}

  void add(const std::string& text, const at::Tensor& recorded,
           const models::SynthesisedFrames& spoken) {
    const std::string length = seconds_text(spoken.frames.size(0), own_);
    auto sample = player(sound_of(spoken.frames), sounds_.rate(), "Model: " + text,
                         length + ", " + end_text(spoken.reason));
    const at::Tensor weights = spoken.attention.to(at::kCPU, at::kFloat).contiguous();
    const auto shape = models::attention_shape(
        {weights.const_data_ptr<float>(), static_cast<size_t>(weights.numel())}, weights.size(1));
    sample.rows = {{"Attention diagonality", fixed(shape.diagonality, 3)},
                   {"Monotonic steps", percent_text(shape.monotonic)}};
    samples_.emplace_back(std::move(sample));
    samples_.emplace_back(matrix_sample(seen(spoken.frames), "Frames of the model", length));
    samples_.emplace_back(
        matrix_sample(weights, "Attention: steps to the right, symbols upwards",
                      std::to_string(weights.size(0)) + " x " + std::to_string(weights.size(1))));
    samples_.emplace_back(player(sound_of(recorded), sounds_.rate(), "Recording: " + text,
                                 "through Griffin-Lim, too"));
    samples_.emplace_back(matrix_sample(seen(recorded), "Frames of the recording",
                                        seconds_text(recorded.size(0), own_)));
  }
  std::vector<report::Sample> take() { return std::move(samples_); }

 private:
  at::Tensor seen(const at::Tensor& frames) const {
    return frames.narrow(1, 0, parts_.decoder_width());
  }
  std::vector<float> sound_of(const at::Tensor& frames) const {
    return sounds_(features_of(frames), static_cast<uint64_t>(own_.decode.seed));
  }

  const experiment::SpeechSynthesisOptions& own_;
  const models::FrameParts parts_;
  const experiment::FrameSounds sounds_;
  std::vector<report::Sample> samples_;
};

}  // namespace

audio::Features features_of(const at::Tensor& frames) {
  const at::Tensor values = frames.to(at::kCPU, at::kFloat).contiguous();
  const auto* begin = values.const_data_ptr<float>();
  return {.width = values.size(1), .values = std::vector<float>(begin, begin + values.numel())};
}

decoding::FrameLimits frame_limits(const experiment::SpeechSynthesisOptions& own) {
  decoding::FrameLimits limits;
  limits.stop_threshold = own.decode.stop_threshold;
  limits.max_frames = frames_in(own.decode.max_seconds, own);
  limits.max_frames_per_row = own.decode.max_seconds_per_symbol / own.features.hop_seconds;
  limits.steps_at_end = own.decode.steps_at_end;
  return limits;
}

std::vector<report::Sample> voice_samples(models::SynthesisModel& model, const VoiceSet& set,
                                          const experiment::VoiceFrames& frames,
                                          const experiment::SpeechSynthesisOptions& own,
                                          at::Device device, int64_t count) {
  const at::NoGradGuard no_gradient;
  train::Prepared batch =
      prepare_voice_batch(shown_batch(set, count), set, frames, VoiceUse::kScoring);
  if (num_readable_clips(batch) == 0) return {};
  batch.send(device);
  const auto& counts = batch.batch().column<int64_t>(kClipFrames).values;
  auto limits = frame_limits(own);
  limits.max_frames =
      std::min(limits.max_frames, 2 * *std::ranges::max_element(counts) + kSpareFrames);
  const auto input = voice_input(batch, model, own.decode.seed);
  ShownClips shown(own, model.parts());
  std::vector<models::SynthesisedFrames> spoken;
  try {
    spoken = models::synthesise(model, input, limits);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kNumeric) throw;
    return {};  // numbers that are not finite: scores tell of them
  }
  int64_t row = 0;
  size_t next = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const at::Tensor recorded = voice_targets(batch).values.narrow(0, row, counts[i]);
    shown.add(set.text_of(batch.batch().sample_ids[i]), recorded, spoken[next++]);
    row += counts[i];
  }
  return shown.take();
}

}  // namespace stretto::tasks
