#pragma once

#include <cstdint>

#include "base/random.h"

/// The numbers that keep streams of random numbers apart, of all rooms in one list. The key of a
/// stream is mix64(seed, number): two uses of one key draw the same numbers. A new use takes a
/// number that is free here, and none of them changes, since runs go on.
///
/// Other kinds of keys, each with one use:
///
/// | key | use |
/// |---|---|
/// | mix64(seed, epoch) | the order of data (data/length_batches.h) |
/// | mix64(seed, update) | dropout (train::StepContext), by Philox: it meets no order |
/// | mix64(seed, hash of a name) | first weights (nn/init.h) |
/// | mix64(decode.seed, sample) | sampled outputs (decoding/search.h) |
/// | mix64(seed, 1 or 2) | lines that train a tokenizer (text::sample_lines) |
namespace stretto::streams {

// mix64(seed, number), for draws from data: far from all epochs.
inline constexpr uint64_t kTrainMasks = uint64_t{1} << 60;    ///< hidden tokens of training
inline constexpr uint64_t kEvalMasks = kTrainMasks + 1;       ///< of validation
inline constexpr uint64_t kAugmentation = kTrainMasks + 2;    ///< of sounds and pictures
inline constexpr uint64_t kBatchMixes = kTrainMasks + 3;      ///< mixtures of samples of a batch
inline constexpr uint64_t kFirstFlips = kTrainMasks + 4;      ///< who is mirrored in even epochs
inline constexpr uint64_t kFirstPictures = kTrainMasks + 5;   ///< what first weights are made of
inline constexpr uint64_t kFirstPhases = kTrainMasks + 16;    ///< of a spectrogram without phases
inline constexpr uint64_t kHeads = uint64_t{1} << 61;         ///< + i: the seed of head i, from 1
inline constexpr uint64_t kSourceDraws = uint64_t{1} << 62;   ///< sampled sub-words of the source
inline constexpr uint64_t kTargetDraws = kSourceDraws + 1;    ///< of the target
inline constexpr uint64_t kSampleWeights = 0x77656967687473;  ///< pairs by data.train_weights

// mix64(mix64(seed, update), number).
inline constexpr uint64_t kGradientNoise = 0x6e6f697365;
inline constexpr uint64_t kWeightNoise = 0x776569676874;
inline constexpr uint64_t kRoundedWeights = 0x726f756e64;  ///< which groups of weights are rounded

/// What the augmentation of a sample draws from in an epoch.
inline RandomStream augmentation(uint64_t seed, int64_t epoch, int64_t sample) {
  return RandomStream(mix64(mix64(seed, kAugmentation), static_cast<uint64_t>(epoch)),
                      static_cast<uint64_t>(sample));
}
/// The same for one of several steps of it, numbered from 1: a step that is left out does not
/// change what the others draw.
inline RandomStream augmentation_step(uint64_t seed, int64_t epoch, int64_t sample, uint64_t step) {
  const uint64_t key = mix64(mix64(seed, kAugmentation), static_cast<uint64_t>(epoch));
  return RandomStream(mix64(key, step), static_cast<uint64_t>(sample));
}
/// What the mixture of a batch draws from; `batch` is its number in the epoch.
inline RandomStream batch_mix(uint64_t seed, int64_t epoch, int64_t batch) {
  return RandomStream(mix64(mix64(seed, kBatchMixes), static_cast<uint64_t>(epoch)),
                      static_cast<uint64_t>(batch));
}

}  // namespace stretto::streams
