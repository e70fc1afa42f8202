#include "examples/vowels/sounds.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/random.h"

namespace stretto::vowels {
namespace {

constexpr double kSecondsOfVowel = 0.12, kSecondsOfTone = 0.07, kSecondsOfPause = 0.11;
constexpr double kFade = 0.008;      // seconds at either end of a letter
constexpr double kLoudness = 0.25;   // peak of a letter
constexpr double kNoise = 0.004;     // standard deviation
constexpr double kPitchFall = 0.85;  // of the pitch, from beginning to end of an utterance
constexpr size_t kLeastWords = 1, kMostWords = 5;

// Peterson and Barney 1952, men; of a, e, i, o, u: the first three formants in Hz.
constexpr std::array<std::array<double, 3>, 5> kFormants{
    {{730, 1090, 2440}, {530, 1840, 2480}, {270, 2290, 3010}, {570, 840, 2410}, {300, 870, 2240}}};
constexpr std::array<double, 3> kBandwidths{80, 100, 140};  // in Hz
constexpr std::array<double, 3> kToneHz{3200, 500, 1500};   // of k, p, t

double draw_between(RandomStream& random, double least, double most) {
  return least + (most - least) * random.uniform();
}

size_t num_samples(double seconds) {
  return static_cast<size_t>(std::lround(seconds * static_cast<double>(kRate)));
}

// A resonance of a throat: two poles, with a gain of 1 at 0 Hz (Klatt 1980).
class Resonator {
 public:
  Resonator(double hz, double bandwidth) {
    const auto rate = static_cast<double>(kRate);
    const double radius = std::exp(-std::numbers::pi * bandwidth / rate);
    b_ = 2 * radius * std::cos(2 * std::numbers::pi * hz / rate);
    c_ = -radius * radius;
    a_ = 1 - b_ - c_;
  }
  double operator()(double in) {
    const double out = a_ * in + b_ * last_ + c_ * before_;
    before_ = std::exchange(last_, out);
    return out;
  }

 private:
  double a_ = 0, b_ = 0, c_ = 0, last_ = 0, before_ = 0;
};

// Fades both ends, and brings the peak to kLoudness.
void finish(std::vector<double>& letter) {
  double peak = 1e-9;
  for (const double value : letter) peak = std::max(peak, std::abs(value));
  const size_t size = letter.size();
  const double fade = kFade * static_cast<double>(kRate);
  for (size_t i = 0; i < size; ++i) {
    const double to_end = static_cast<double>(std::min(i, size - 1 - i));
    letter[i] *= kLoudness / peak * std::min(1.0, to_end / fade);
  }
}

// Pulses of the vocal cords through three resonances.
std::vector<double> vowel(size_t number, const Speaker& speaker, double pitch, double seconds) {
  std::vector<double> letter(num_samples(seconds));
  std::vector<Resonator> throat;
  for (size_t k = 0; k < kBandwidths.size(); ++k) {
    throat.emplace_back(kFormants[number][k] * speaker.formant_scale, kBandwidths[k]);
  }
  double phase = 1, pulse = 0;
  for (double& value : letter) {
    const bool opens = phase >= 1;
    if (opens) phase -= 1;
    phase += pitch / static_cast<double>(kRate);
    pulse = 0.7 * pulse + (opens ? 1 : 0);  // the cords do not close at once
    value = pulse;
    for (Resonator& resonance : throat) value = resonance(value);
  }
  finish(letter);
  return letter;
}

std::vector<double> tone(double hz, double seconds) {
  std::vector<double> letter(num_samples(seconds));
  for (size_t i = 0; i < letter.size(); ++i) {
    const double time = static_cast<double>(i) / static_cast<double>(kRate);
    letter[i] = std::sin(2 * std::numbers::pi * hz * time);
  }
  finish(letter);
  return letter;
}

std::vector<double> sound_of(char letter, const Speaker& speaker, double pitch,
                             RandomStream& random) {
  const double pace = speaker.pace * draw_between(random, 0.85, 1.15);
  if (letter == ' ') return std::vector<double>(num_samples(kSecondsOfPause * pace));
  if (const size_t at = kVowels.find(letter); at != std::string_view::npos) {
    return vowel(at, speaker, pitch * draw_between(random, 0.97, 1.03), kSecondsOfVowel * pace);
  }
  const size_t at = kTones.find(letter);
  if (at == std::string_view::npos) {
    throw std::invalid_argument(std::string("vowels: no letter \"") + letter + "\"");
  }
  return tone(kToneHz[at] * draw_between(random, 0.97, 1.03), kSecondsOfTone * pace);
}

std::string draw_text(RandomStream& random) {
  const size_t count = kLeastWords + random.below(kMostWords - kLeastWords + 1);
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += lexicon()[random.below(lexicon().size())];
  }
  return text;
}

std::vector<Utterance> speak_part(uint64_t seed, uint64_t part, size_t size) {
  std::vector<Utterance> utterances;
  std::set<std::pair<std::string, size_t>> seen;
  RandomStream random(mix64(seed, part));
  while (utterances.size() < size) {
    const size_t number = utterances.size(), speaker = number % kSpeakers.size();
    std::string text = draw_text(random);
    if (!seen.emplace(text, speaker).second) continue;
    auto samples = spoken(text, speaker, mix64(mix64(seed, part), number));
    utterances.push_back(
        {.text = std::move(text), .speaker = speaker, .samples = std::move(samples)});
  }
  return utterances;
}

}  // namespace

const std::vector<std::string>& lexicon() {
  static const std::vector<std::string> words{"ake",  "apu",  "eki", "ita",  "kapo", "ki",
                                              "kote", "o",    "opi", "pa",   "pite", "puka",
                                              "ta",   "teki", "to",  "tupa", "uka",  "upe"};
  return words;
}

std::vector<float> spoken(std::string_view text, size_t speaker, uint64_t key) {
  const Speaker& voice = kSpeakers.at(speaker);
  RandomStream random(key, 1);
  std::vector<float> samples;
  const auto add = [&samples](const std::vector<double>& sound) {
    for (const double value : sound) samples.push_back(static_cast<float>(value));
  };
  add(sound_of(' ', voice, voice.pitch, random));
  for (size_t i = 0; i < text.size(); ++i) {
    const double done = static_cast<double>(i) / static_cast<double>(text.size());
    add(sound_of(text[i], voice, voice.pitch * (1 + (kPitchFall - 1) * done), random));
  }
  add(sound_of(' ', voice, voice.pitch, random));
  for (float& value : samples) value += static_cast<float>(kNoise * random.normal());
  return samples;
}

Utterances generate(uint64_t seed, const Sizes& sizes) {
  return {.train = speak_part(seed, 0, sizes.train),
          .valid = speak_part(seed, 1, sizes.valid),
          .test = speak_part(seed, 2, sizes.test)};
}

std::string name_of(std::string_view part, size_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, digits.size() < 4 ? 4 - digits.size() : 0, '0');
  return "wavs/" + std::string(part) + "_" + digits + ".wav";
}

}  // namespace stretto::vowels
