#include "audio/sound_features.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "audio/audio_file.h"
#include "audio/augment.h"
#include "audio/convolve.h"
#include "audio/lane_frames.h"
#include "audio/normalise.h"
#include "audio/resample.h"
#include "audio/time_stretch.h"
#include "base/error.h"
#include "base/random_streams.h"

namespace stretto::audio {
namespace {

constexpr double kPeakEpsilon = 1e-5;       // OpenSeq2Seq's normalize_signal()
constexpr double kMostImpulseSeconds = 10;  // what of an impulse response is used

/// Steps of augmentation, each with numbers of its own.
enum class Step : uint64_t {
  kSpeed = 1,
  kStretch,
  kImpulse,
  kNoiseFile,
  kNoise,
  kMasks,
  kDither,
};

/// What the steps of one sample draw from.
struct Draws {
  uint64_t seed = 0;
  int64_t epoch = 0, sample = 0;

  RandomStream of(Step step) const {
    return streams::augmentation_step(seed, epoch, sample, static_cast<uint64_t>(step));
  }
};

double uniform_between(RandomStream& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

/// A file of which parts are read when they are drawn.
struct SoundFile {
  std::string path;
  AudioInfo info;
};

std::vector<SoundFile> described(const std::vector<std::string>& paths) {
  std::vector<SoundFile> files;
  for (const std::string& path : paths) {
    SoundFile file;
    file.path = path;
    file.info = audio_info(path);
    if (file.info.frames == 0) {
      throw Error(ExitCode::kBadData, path + ": is empty", "leave it out of [augment]");
    }
    files.push_back(std::move(file));
  }
  return files;
}

/// Samples of a part of a file at this rate.
std::vector<float> part_of(const SoundFile& file, AudioRange range, int64_t rate) {
  AudioReader reader(file.path);
  range.end = std::min(range.end, reader.info().frames);
  range.begin = std::min(range.begin, range.end);
  const auto samples = reader.read(range);
  return resampled(samples, reader.info().rate, rate);
}

const SoundFile& drawn_file(const std::vector<SoundFile>& files, RandomStream& random) {
  return files[static_cast<size_t>(random.below(files.size()))];
}

FeatureOptions undithered(FeatureOptions options) {
  options.dither = 0;
  return options;
}

void divide_by_peak(std::vector<float>& samples) {
  float peak = 0;
  for (const float sample : samples) peak = std::max(peak, std::abs(sample));
  const auto scale = static_cast<float>(1 / (static_cast<double>(peak) + kPeakEpsilon));
  for (float& sample : samples) sample *= scale;
}

}  // namespace

struct SoundFeatures::State {
  State(const FeatureKeys& all_keys, const AugmentKeys& all_changes, uint64_t run_seed)
      : keys(all_keys),
        changes(all_changes),
        seed(run_seed),
        training(keys.options()),
        plain(undithered(keys.options())) {
    const auto conflicts = augment_conflicts(changes, "augment");
    if (!conflicts.empty()) {
      throw std::invalid_argument(conflicts.front().keys.front() + " " + conflicts.front().what);
    }
    if (changes.noise_file_probability > 0) noises = described(changes.noise_files);
    if (changes.impulse_probability > 0) impulses = described(changes.impulse_files);
  }

  void change_time(std::vector<float>& samples, const Draws& draws) const;
  void add_room(std::vector<float>& samples, const Draws& draws) const;
  void add_noises(std::vector<float>& samples, const Draws& draws) const;
  std::vector<float> augmented(std::span<const float> samples, const Draws& draws) const;
  void normalise_rows(Features& features) const;
  void mask_rows(Features& features, const Draws& draws) const;

  FeatureKeys keys;
  AugmentKeys changes;
  uint64_t seed;
  FeatureExtractor training, plain;
  std::vector<SoundFile> noises, impulses;
};

void SoundFeatures::State::change_time(std::vector<float>& samples, const Draws& draws) const {
  double speed = 1;
  RandomStream speeds = draws.of(Step::kSpeed);
  if (!changes.speeds.empty()) {
    speed = changes.speeds[static_cast<size_t>(speeds.below(changes.speeds.size()))];
  } else if (changes.speed_range > 0) {
    speed = uniform_between(speeds, 1 - changes.speed_range, 1 + changes.speed_range);
  }
  if (speed != 1) samples = at_speed(samples, keys.rate, speed);
  if (changes.stretch_range <= 0) return;
  RandomStream tempi = draws.of(Step::kStretch);
  samples = stretched(samples, keys.rate,
                      uniform_between(tempi, 1 - changes.stretch_range, 1 + changes.stretch_range));
}

void SoundFeatures::State::add_room(std::vector<float>& samples, const Draws& draws) const {
  RandomStream random = draws.of(Step::kImpulse);
  if (impulses.empty() || random.uniform() >= changes.impulse_probability) return;
  const SoundFile& file = drawn_file(impulses, random);
  const auto most = static_cast<int64_t>(kMostImpulseSeconds * static_cast<double>(file.info.rate));
  const auto impulse =
      part_of(file, {.begin = 0, .end = std::min(file.info.frames, most)}, keys.rate);
  if (std::all_of(impulse.begin(), impulse.end(), [](float sample) { return sample == 0; })) {
    throw Error(ExitCode::kBadData, file.path + ": is silent, and no impulse response",
                "leave it out of augment.impulse_files");
  }
  samples = reverberated(samples, impulse);
}

void SoundFeatures::State::add_noises(std::vector<float>& samples, const Draws& draws) const {
  RandomStream files = draws.of(Step::kNoiseFile);
  if (!noises.empty() && files.uniform() < changes.noise_file_probability) {
    const SoundFile& file = drawn_file(noises, files);
    const double decibels = uniform_between(files, changes.min_snr, changes.max_snr);
    // As long as the sound, and anywhere in the file; a shorter file is repeated.
    const int64_t wanted = 1 + static_cast<int64_t>(samples.size()) * file.info.rate / keys.rate;
    const int64_t room = std::max<int64_t>(file.info.frames - wanted, 0);
    const auto begin = static_cast<int64_t>(files.below(static_cast<uint64_t>(room) + 1));
    const auto noise = part_of(
        file, {.begin = begin, .end = std::min(begin + wanted, file.info.frames)}, keys.rate);
    add_sound(samples, noise, 0, decibels);
  }
  RandomStream white = draws.of(Step::kNoise);
  if (changes.noise_probability > 0 && white.uniform() < changes.noise_probability) {
    const double level = uniform_between(white, changes.min_noise_level, changes.max_noise_level);
    add_noise(samples, level, white);
  }
}

std::vector<float> SoundFeatures::State::augmented(std::span<const float> samples,
                                                   const Draws& draws) const {
  std::vector<float> sound(samples.begin(), samples.end());
  if (sound.empty()) return sound;
  if (keys.normalise_peak) divide_by_peak(sound);
  change_time(sound, draws);
  add_room(sound, draws);
  add_noises(sound, draws);
  return sound;
}

void SoundFeatures::State::normalise_rows(Features& features) const {
  if (keys.normalise == "per_feature") normalise(features, {.over = NormaliseOver::kFrames});
  if (keys.normalise == "global") normalise(features, {.over = NormaliseOver::kAll});
  if (keys.normalise == "fixed") normalise_by(features, keys.mean, keys.std);
}

void SoundFeatures::State::mask_rows(Features& features, const Draws& draws) const {
  if (changes.feature_masks == 0 && changes.time_masks == 0) return;
  // Normalised features have the mean 0; of others it is that of the sound.
  float value = 0;
  if (keys.normalise == "none" && !features.values.empty()) {
    const double sum = std::accumulate(features.values.begin(), features.values.end(), 0.0);
    value = static_cast<float>(sum / static_cast<double>(features.values.size()));
  }
  RandomStream random = draws.of(Step::kMasks);
  mask(features,
       {.num_feature_masks = changes.feature_masks,
        .most_features = changes.feature_mask_width,
        .num_frame_masks = changes.time_masks,
        .most_frames = changes.time_mask_frames,
        .most_frame_share = changes.time_mask_share,
        .value = value},
       random);
}

SoundFeatures::SoundFeatures(const FeatureKeys& keys) : SoundFeatures(keys, AugmentKeys{}, 0) {}
SoundFeatures::SoundFeatures(const FeatureKeys& keys, const AugmentKeys& augment, uint64_t seed)
    : state_(std::make_unique<const State>(keys, augment, seed)) {}
SoundFeatures::~SoundFeatures() = default;
SoundFeatures::SoundFeatures(SoundFeatures&&) noexcept = default;
SoundFeatures& SoundFeatures::operator=(SoundFeatures&&) noexcept = default;

const FeatureKeys& SoundFeatures::keys() const {
  return state_->keys;
}

int64_t SoundFeatures::width() const {
  return state_->plain.width();
}

int64_t SoundFeatures::num_frames(int64_t num_samples) const {
  return state_->plain.num_frames(num_samples);
}

int64_t SoundFeatures::fewest_frames(int64_t num_samples) const {
  const double most = state_->changes.most_speed();
  if (most <= 1) return num_frames(num_samples);
  // Speeds are rounded to whole Hz, and lengths to whole samples.
  const double rounding = 1 - 1 / static_cast<double>(rate());
  const double samples = static_cast<double>(num_samples) / most * rounding - 2;
  return num_frames(static_cast<int64_t>(std::max(samples, 0.0)));
}

double SoundFeatures::seconds_at(int64_t frame) const {
  const LaneFrames& frames = state_->plain.frames();
  const double middle =
      static_cast<double>(frames.begin_of(frame)) + static_cast<double>(frames.frame_samples()) / 2;
  return middle / static_cast<double>(rate());
}

Features SoundFeatures::operator()(std::span<const float> samples) const {
  std::vector<float> sound;
  if (state_->keys.normalise_peak) {
    sound.assign(samples.begin(), samples.end());
    divide_by_peak(sound);
    samples = sound;
  }
  Features features = state_->plain(samples);
  state_->normalise_rows(features);
  return features;
}

Features SoundFeatures::training(std::span<const float> samples, int64_t epoch,
                                 int64_t sample) const {
  const Draws draws{.seed = state_->seed, .epoch = epoch, .sample = sample};
  const auto sound = state_->augmented(samples, draws);
  Features features = state_->training(sound, draws.of(Step::kDither).next64());
  state_->normalise_rows(features);
  state_->mask_rows(features, draws);
  return features;
}

std::vector<float> SoundFeatures::training_sound(std::span<const float> samples, int64_t epoch,
                                                 int64_t sample) const {
  return state_->augmented(samples, {.seed = state_->seed, .epoch = epoch, .sample = sample});
}

}  // namespace stretto::audio
