#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/speech/command_options.h"
#include "data/speech/speech_source.h"

namespace stretto::data {

/// An utterance, or a part of one: a place among the sources of a set.
struct SpeechPick {
  uint32_t source = 0, number = 0;
  SoundPart part = {};
};

/// What random choices of samples depend on, beside the sample.
struct SampleDraw {
  uint64_t seed = 0;
  int64_t epoch = 0;
};

/// The classes `unknown` and `silence` of a set of 12 commands. Each sample of them stands for one
/// stratum: an n-th of the other words' utterances, which are sorted by words, or of the time of
/// all noises. An epoch therefore has every word evenly, and no utterance twice while there are
/// enough. Which utterance of the stratum it is, is a function of (seed, epoch, sample).
class CommandDraws {
 public:
  void add_other(SpeechPick pick, const UtteranceFacts& facts) { others_.push_back({pick, facts}); }
  void add_noise(SpeechPick pick, const UtteranceFacts& facts) { noises_.push_back({pick, facts}); }
  bool has_others() const { return !others_.empty(); }
  bool has_noises() const { return !noises_.empty(); }

  /// Says how many samples there are: the shares of so many utterances of words, rounded up.
  void set_up(const CommandOptions& options, int64_t num_utterances);
  int64_t num_unknown() const { return num_unknown_; }
  int64_t num_silence() const { return num_silence_; }

  SpeechPick unknown(int64_t sample, const SampleDraw& draw) const;
  /// A cut of data.commands.silence_seconds; of a noise that is shorter, all of it.
  SpeechPick silence(int64_t sample, const SampleDraw& draw) const;

  /// What is known of a sample whatever is drawn: it lasts as long as the longest of its stratum,
  /// and its hash is that of all that may be drawn.
  UtteranceFacts unknown_facts(int64_t sample) const;
  UtteranceFacts silence_facts(int64_t sample) const;

 private:
  struct Known {
    SpeechPick pick;
    UtteranceFacts facts;
  };
  struct Stratum {
    size_t begin, end;
  };
  Stratum stratum_of(int64_t sample) const;

  std::vector<Known> others_, noises_;
  std::vector<double> noise_ends_;  ///< in seconds, one noise behind the other
  int64_t num_unknown_ = 0, num_silence_ = 0;
  double silence_seconds_ = 1;
};

}  // namespace stretto::data
