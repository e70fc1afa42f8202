#include "audio/feature_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "audio/sound_features.h"
#include "base/error.h"
#include "base/random.h"

namespace stretto::audio {
namespace {

std::vector<float> hiss(size_t samples) {
  RandomStream random(11);
  std::vector<float> sound;
  for (size_t i = 0; i < samples; ++i) sound.push_back(static_cast<float>(random.uniform() - 0.5));
  return sound;
}

FeatureKeys streamed_keys() {
  FeatureKeys keys;
  keys.rate = 2000;
  keys.num_mels = 10;
  keys.normalise = "none";
  return keys;
}

using KeyChange = std::pair<const char*, std::function<void(FeatureKeys&)>>;
const std::vector<KeyChange>& key_changes() {
  static const std::vector<KeyChange> all{
      {"as it is", [](auto&) {}},
      {"snip", [](auto& k) { k.edges = "snip"; }},
      {"reflect", [](auto& k) { k.padding = "reflect"; }},
      {"symmetric", [](auto& k) { k.padding = "symmetric"; }},
      {"kaldi", [](auto& k) { k.dialect = "kaldi"; }},
      {"kaldi, snip", [](auto& k) { k.dialect = "kaldi", k.edges = "snip"; }},
      {"mfcc with energy",
       [](auto& k) {
         k.dialect = "kaldi", k.kind = "mfcc", k.num_coefficients = 5, k.use_energy = true;
       }},
      {"without tables", [](auto& k) { k.fft_size = 100; }},
      {"a transform longer than the window", [](auto& k) { k.fft_size = 256; }},
      {"a hop longer than the window", [](auto& k) { k.hop_seconds = 0.04; }},
      {"fixed", [](auto& k) { k.normalise = "fixed", k.mean = {-3}, k.std = {2}; }},
  };
  return all;
}

/// All frames of a stream that gets `piece` samples at a time.
std::vector<float> in_pieces(FeatureStream& stream, const std::vector<float>& sound, size_t piece) {
  std::vector<float> values;
  const auto keep = [&](const Features& features) {
    values.insert(values.end(), features.values.begin(), features.values.end());
  };
  for (size_t at = 0; at < sound.size(); at += piece) {
    keep(stream.push(std::span(sound).subspan(at, std::min(piece, sound.size() - at))));
  }
  keep(stream.finish());
  return values;
}

TEST(FeatureStream, PiecesMakeTheBitsOfTheWhole) {
  for (const auto& [what, change] : key_changes()) {
    FeatureKeys keys = streamed_keys();
    change(keys);
    const SoundFeatures whole(keys);
    FeatureStream stream(keys);
    EXPECT_EQ(stream.width(), whole.width()) << what;
    for (const size_t samples : {0, 1, 2, 30, 60, 173, 2000}) {
      const auto sound = hiss(samples);
      for (const size_t piece : {1, 7, 64, 1000}) {
        EXPECT_EQ(in_pieces(stream, sound, piece), whole(sound).values)
            << what << ", " << samples << " samples by " << piece;
      }
    }
  }
}

TEST(FeatureStream, AFrameComesWithItsLastSample) {
  FeatureStream stream(streamed_keys());  // windows of 50 samples, hops of 20, a transform of 64
  EXPECT_EQ(stream.push(hiss(24)).num_frames(), 0);
  // The first frame lies around sample 0: its second half has 25 samples, and one is mirrored.
  EXPECT_EQ(stream.push(hiss(2)).num_frames(), 1);
  EXPECT_EQ(stream.push(hiss(19)).num_frames(), 1);
  EXPECT_EQ(stream.push(hiss(20)).num_frames(), 1);
  EXPECT_EQ(stream.num_frames(), 3);
  EXPECT_EQ(stream.finish().num_frames(), 1 + 65 / 20 - 3);
  EXPECT_EQ(stream.num_frames(), 0) << "a new sound begins";
}

TEST(FeatureStream, WhatNeedsTheWholeSoundIsRefused) {
  const std::vector<std::pair<std::string, std::function<void(FeatureKeys&)>>> refused{
      {"normalise", [](auto& k) { k.normalise = "per_feature"; }},
      {"normalise", [](auto& k) { k.normalise = "global"; }},
      {"normalise_peak", [](auto& k) { k.normalise_peak = true; }},
      {"compression", [](auto& k) { k.compression = "decibel"; }},
  };
  for (const auto& [key, change] : refused) {
    FeatureKeys keys = streamed_keys();
    change(keys);
    EXPECT_FALSE(stream_obstacle(keys).empty()) << key;
    try {
      const FeatureStream stream(keys);
      ADD_FAILURE() << key;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_NE(error.advice().find("features." + key), std::string::npos) << error.advice();
    }
  }
  EXPECT_EQ(stream_obstacle(streamed_keys()), "");
}

}  // namespace
}  // namespace stretto::audio
