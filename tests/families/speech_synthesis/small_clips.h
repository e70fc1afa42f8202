#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "audio/wave_writer.h"
#include "tests/base/temp_dir.h"

/// Clips in which each letter of a text is a tone, for models that soon speak them.
namespace stretto::testing {

inline constexpr int64_t kClipRate = 8000;
inline constexpr double kLetterSeconds = 0.06;

/// `a` to `f` are tones of 300, 500, … Hz; a deep voice has half of that.
inline std::vector<float> tones_of(std::string_view text, bool is_deep = false) {
  std::vector<float> sound;
  const auto size = static_cast<int64_t>(kLetterSeconds * static_cast<double>(kClipRate));
  for (const char letter : text) {
    const double hz = (300.0 + 200.0 * (letter - 'a')) * (is_deep ? 0.5 : 1.0);
    for (int64_t i = 0; i < size; ++i) {
      const double angle =
          2 * std::numbers::pi * hz * static_cast<double>(i) / static_cast<double>(kClipRate);
      sound.push_back(static_cast<float>(0.4 * std::sin(angle)));
    }
  }
  return sound;
}

/// A clip of a manifest.
struct SmallClip {
  std::string text;
  std::string speaker = {};  ///< "deep" is one of two voices
};

/// Writes NAME.jsonl and NAME_0.wav and so on. @return the path of the manifest
inline std::string put_clips(const TempDir& folder, const std::string& name,
                             const std::vector<SmallClip>& clips) {
  std::string rows;
  for (size_t i = 0; i < clips.size(); ++i) {
    const std::string file = name + "_" + std::to_string(i) + ".wav";
    folder.write(file,
                 audio::wave_bytes(tones_of(clips[i].text, clips[i].speaker == "deep"), kClipRate));
    rows += "{\"audio_filepath\": \"" + file + "\", \"text\": \"" + clips[i].text + "\"";
    if (!clips[i].speaker.empty()) rows += ", \"speaker\": \"" + clips[i].speaker + "\"";
    rows += "}\n";
  }
  return folder.write(name + ".jsonl", rows);
}

/// Words of three to five letters, each with another one.
inline std::vector<SmallClip> small_words(int64_t count, int64_t first = 0) {
  std::vector<SmallClip> clips;
  for (int64_t i = first; i < first + count; ++i) {
    std::string word;
    for (int64_t k = 0; k < 3 + i % 3; ++k) {
      word += static_cast<char>('a' + (i * (k + 2) + k * k + i / 6) % 6);
    }
    clips.push_back({.text = word});
  }
  return clips;
}

}  // namespace stretto::testing
