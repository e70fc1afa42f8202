#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::vowels {

inline constexpr int64_t kRate = 8000;  ///< samples in a second

/// The letters: vowels by their formants, and tones. A space is a pause.
inline constexpr std::string_view kVowels = "aeiou", kTones = "kpt";

/// A voice.
struct Speaker {
  std::string_view name;
  double pitch = 0;          ///< in Hz, at the beginning of an utterance
  double formant_scale = 1;  ///< of all formants: a short throat has higher ones
  double pace = 1;           ///< seconds of a letter, beside the usual ones
};
inline constexpr std::array<Speaker, 4> kSpeakers{{{"alba", 205, 1.12, 0.95},
                                                   {"bruno", 98, 0.94, 1.1},
                                                   {"carla", 176, 1.05, 1.0},
                                                   {"dario", 124, 0.98, 0.9}}};

/// Words that are spoken.
struct Utterance {
  std::string text;  ///< "kapo ti upe"
  size_t speaker = 0;
  std::vector<float> samples;  ///< at kRate, in [-1, 1]
};

/// Utterances of each part.
struct Sizes {
  size_t train = 400, valid = 40, test = 20;
};

struct Utterances {
  std::vector<Utterance> train, valid, test;
};

/// The words that occur, in ascending order.
const std::vector<std::string>& lexicon();

/// What a speaker makes of a text of these letters and spaces, with a noise of its own: a function
/// of its arguments. Throws std::invalid_argument for another character.
std::vector<float> spoken(std::string_view text, size_t speaker, uint64_t key);

/// The utterances of a seed: a function of seed and sizes alone. Speakers take turns. An utterance
/// has one to five words; no two of a part are alike in text and speaker.
Utterances generate(uint64_t seed, const Sizes& sizes = {});

/// The name of the file of an utterance: "wavs/train_0017.wav".
std::string name_of(std::string_view part, size_t number);

}  // namespace stretto::vowels
