#include "data/speech/command_draws.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/random.h"

namespace stretto::data {
namespace {

constexpr uint64_t kUnknownDraw = 0x756e6b6e6f776e, kSilenceDraw = 0x73696c656e6365;

RandomStream stream_of(uint64_t kind, const SampleDraw& draw, int64_t sample) {
  const uint64_t key = mix64(mix64(draw.seed, kind), static_cast<uint64_t>(draw.epoch));
  return RandomStream(mix64(key, static_cast<uint64_t>(sample)));
}

int64_t share_of(double share, int64_t count) {
  return static_cast<int64_t>(std::ceil(share * static_cast<double>(count) - 1e-9));
}

}  // namespace

void CommandDraws::set_up(const CommandOptions& options, int64_t num_utterances) {
  num_unknown_ = has_others() ? share_of(options.unknown_share, num_utterances) : 0;
  num_silence_ = has_noises() ? share_of(options.silence_share, num_utterances) : 0;
  silence_seconds_ = options.silence_seconds;
  double end = 0;
  noise_ends_.clear();
  for (const Known& noise : noises_) noise_ends_.push_back(end += noise.facts.seconds());
}

CommandDraws::Stratum CommandDraws::stratum_of(int64_t sample) const {
  const auto size = std::ssize(others_);
  const int64_t begin = sample * size / num_unknown_;
  const int64_t end = std::max(begin + 1, (sample + 1) * size / num_unknown_);
  return {static_cast<size_t>(begin), static_cast<size_t>(end)};
}

SpeechPick CommandDraws::unknown(int64_t sample, const SampleDraw& draw) const {
  const Stratum stratum = stratum_of(sample);
  RandomStream stream = stream_of(kUnknownDraw, draw, sample);
  return others_[stratum.begin + stream.below(stratum.end - stratum.begin)].pick;
}

SpeechPick CommandDraws::silence(int64_t sample, const SampleDraw& draw) const {
  RandomStream stream = stream_of(kSilenceDraw, draw, sample);
  const double place = (static_cast<double>(sample) + stream.uniform()) /
                       static_cast<double>(num_silence_) * noise_ends_.back();
  const auto found = std::ranges::upper_bound(noise_ends_, place);
  const auto at =
      static_cast<size_t>(std::min(found - noise_ends_.begin(), std::ssize(noise_ends_) - 1));
  const Known& noise = noises_[at];
  SpeechPick pick = noise.pick;
  pick.part.may_be_silent = true;
  const int64_t length = noise.facts.end - noise.facts.begin;
  const auto rate = static_cast<double>(noise.facts.rate);
  const int64_t wanted = std::max<int64_t>(1, std::llround(silence_seconds_ * rate));
  if (wanted >= length) return pick;
  const double before = noise_ends_[at] - noise.facts.seconds();
  pick.part.begin = std::clamp<int64_t>(std::llround((place - before) * rate), 0, length - wanted);
  pick.part.end = pick.part.begin + wanted;
  return pick;
}

UtteranceFacts CommandDraws::unknown_facts(int64_t sample) const {
  const Stratum stratum = stratum_of(sample);
  Xxh3Stream all;
  UtteranceFacts facts;
  for (size_t i = stratum.begin; i < stratum.end; ++i) {
    const UtteranceFacts& one = others_[i].facts;
    const uint64_t words[]{one.hash, static_cast<uint64_t>(one.begin),
                           static_cast<uint64_t>(one.end)};
    all.update(words, sizeof words);
    if (one.seconds() <= facts.seconds()) continue;
    facts = {.rate = one.rate, .channels = one.channels, .end = one.end - one.begin};
  }
  facts.hash = all.digest();
  return facts;
}

UtteranceFacts CommandDraws::silence_facts(int64_t sample) const {
  Xxh3Stream all;
  const auto number = static_cast<uint64_t>(sample);
  all.update(&number, sizeof number);
  double longest = 0;
  for (const Known& noise : noises_) {
    all.update(&noise.facts.hash, sizeof noise.facts.hash);
    longest = std::max(longest, noise.facts.seconds());
  }
  const UtteranceFacts& first = noises_.front().facts;
  const double seconds = std::min(silence_seconds_, longest);
  return {.hash = all.digest(),
          .rate = first.rate,
          .channels = first.channels,
          .end = std::max<int64_t>(1, std::llround(seconds * static_cast<double>(first.rate)))};
}

}  // namespace stretto::data
