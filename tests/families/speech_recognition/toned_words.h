#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "audio/wave_writer.h"
#include "base/random.h"
#include "tests/base/temp_dir.h"

/// Sounds that a small model soon reads: each letter is a tone, a space is a pause.
namespace stretto::testing {

inline constexpr int64_t kTonedRate = 8000;

/// 80 ms a letter, of "abc" and spaces, with a pause at either end.
/// @param number  of the noise in it
inline std::vector<float> toned_word(std::string_view text, uint64_t number) {
  RandomStream random(number);
  std::vector<float> samples;
  for (const char letter : " " + std::string(text) + " ") {
    const double hz = letter == 'a' ? 400 : letter == 'b' ? 1200 : letter == 'c' ? 2600 : 0;
    for (int t = 0; t < 640; ++t) {
      const double tone = 0.3 * std::sin(2 * std::numbers::pi * hz * t / kTonedRate);
      samples.push_back(static_cast<float>(tone + 0.002 * random.normal()));
    }
  }
  return samples;
}

/// Writes a WAV file; its path.
inline std::string put_toned_word(const TempDir& folder, const std::string& name,
                                  const std::string& text, uint64_t number) {
  return folder.write(name, audio::wave_bytes(toned_word(text, number), kTonedRate));
}

/// SET.csv with the columns of OpenSeq2Seq, and its sounds: texts of one or two words. Returns the
/// texts.
inline std::vector<std::string> put_toned_words(const TempDir& folder, const std::string& set,
                                                int64_t count, uint64_t first = 0) {
  constexpr const char* kWords[] = {"ab", "ca", "bca", "acb"};
  std::vector<std::string> texts;
  std::string rows = "wav_filename,transcript\n";
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t number = first + static_cast<uint64_t>(i);
    std::string text = kWords[number % 4];
    if (number % 3 == 1) text += std::string(" ") + kWords[(number / 3) % 4];
    const std::string name = set + "_" + std::to_string(i) + ".wav";
    put_toned_word(folder, name, text, number);
    rows += name + "," + text + "\n";
    texts.push_back(std::move(text));
  }
  folder.write(set + ".csv", rows);
  return texts;
}

}  // namespace stretto::testing
