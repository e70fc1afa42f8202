#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/lines.h"
#include "data/speech/utterance_rows.h"
#include "tests/audio/sounds.h"
#include "tests/data/memory_stream.h"

/// Utterances for tests.
namespace stretto::data::test {

/// A WAV file of 16 bits: a saw tooth, other seeds give other samples.
inline std::string wav(double seconds, int64_t seed = 1, int rate = 8000) {
  const auto count = static_cast<int64_t>(seconds * rate);
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back((i * (37 + seed)) % 2000 - 1000);
  return audio::test::wave(rate, 1, 16, 1, audio::test::bytes_of_integers(samples, 2));
}

/// The same without a sound in it.
inline std::string silence(double seconds, int rate = 8000) {
  const std::string samples(static_cast<size_t>(seconds * rate) * 2, '\0');
  return audio::test::wave(rate, 1, 16, 1, samples);
}

inline LineReader lines_of(std::string_view text, const std::string& name) {
  return {std::make_unique<stretto::testing::MemoryStream>(text), name};
}

inline BadSamples skipping() {
  return BadSamples({.skips = true, .most = 100});
}

/// What is wrong with the samples that were left out.
inline std::vector<std::string> faults_of(const LeftOut& left_out) {
  std::vector<std::string> faults;
  for (const auto& one : left_out.first) faults.push_back(one.fault);
  return faults;
}

}  // namespace stretto::data::test
