#include "audio/feature_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "audio/lane_frames.h"
#include "audio/normalise.h"
#include "base/error.h"

namespace stretto::audio {
namespace {

FeatureOptions without_dither(const FeatureKeys& keys) {
  FeatureOptions options = keys.options();
  options.dither = 0;
  return options;
}

}  // namespace

std::string stream_obstacle(const FeatureKeys& keys) {
  if (keys.normalise == "per_feature" || keys.normalise == "global") {
    return "features are normalised over the whole sound: train with features.normalise = "
           "\"fixed\" or \"none\" for streams";
  }
  if (keys.normalise_peak) {
    return "samples are divided by the peak of the whole sound: train with "
           "features.normalise_peak = false for streams";
  }
  if (keys.compression == "decibel") {
    return "decibels are cut at a range below the largest number of the whole sound: train with "
           "features.compression = \"log\" for streams";
  }
  return "";
}

struct FeatureStream::State {
  explicit State(const FeatureKeys& all) : keys(all), extractor(without_dither(all)) {}

  /// Frames that no later sample changes.
  int64_t certain_frames() const {
    const LaneFrames& frames = extractor.frames();
    const int64_t most = extractor.num_frames(size);
    int64_t count = next;
    while (count < most) {
      const int64_t begin = frames.begin_of(count);
      if (begin + frames.frame_samples() > size || -begin >= size) break;
      ++count;
    }
    return count;
  }

  /// Features of the frames up to `end`; forgets samples that no later frame needs.
  Features take_to(int64_t end) {
    std::vector<float> log_energies;
    const KnownSound sound{.samples = samples, .first = first, .size = size};
    Features energies =
        extractor.energies(sound, next, std::max<int64_t>(end - next, 0), log_energies);
    Features result = extractor.finished(std::move(energies), log_energies);
    if (keys.normalise == "fixed") normalise_by(result, keys.mean, keys.std);
    next = std::max(next, end);
    // Padding mirrors at most a frame's part of the last samples.
    const FeatureOptions& options = extractor.options();
    const int64_t needed =
        std::min(extractor.frames().begin_of(next), size) - options.fft_size - options.hop_samples;
    const int64_t gone = std::clamp<int64_t>(needed - first, 0, std::ssize(samples));
    samples.erase(samples.begin(), samples.begin() + gone);
    first += gone;
    return result;
  }

  FeatureKeys keys;
  FeatureExtractor extractor;
  std::vector<float> samples;  ///< prepared, those from `first` on
  int64_t first = 0, size = 0, next = 0;
  float last = 0;  ///< the last sample before pre-emphasis
};

FeatureStream::FeatureStream(const FeatureKeys& keys) {
  const std::string obstacle = stream_obstacle(keys);
  if (!obstacle.empty()) {
    const auto colon = obstacle.find(": ");
    throw Error(ExitCode::kUsage, "features of a stream: " + obstacle.substr(0, colon),
                obstacle.substr(colon + 2));
  }
  state_ = std::make_unique<State>(keys);
}
FeatureStream::~FeatureStream() = default;
FeatureStream::FeatureStream(FeatureStream&&) noexcept = default;
FeatureStream& FeatureStream::operator=(FeatureStream&&) noexcept = default;

int64_t FeatureStream::width() const {
  return state_->extractor.width();
}

int64_t FeatureStream::num_frames() const {
  return state_->next;
}

Features FeatureStream::push(std::span<const float> samples) {
  State& state = *state_;
  const auto before = std::ssize(state.samples);
  state.samples.insert(state.samples.end(), samples.begin(), samples.end());
  const std::span<float> added =
      std::span<float>(state.samples).subspan(static_cast<size_t>(before));
  state.last = state.extractor.prepare(added, /*dither_key=*/0, state.last);
  state.size += std::ssize(samples);
  return state.take_to(state.certain_frames());
}

Features FeatureStream::finish() {
  State& state = *state_;
  Features rest = state.take_to(state.extractor.num_frames(state.size));
  state.samples.clear();
  state.first = state.size = state.next = 0;
  state.last = 0;
  return rest;
}

}  // namespace stretto::audio
