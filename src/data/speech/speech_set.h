#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/bad_samples.h"
#include "data/cache_use.h"
#include "data/media/media_table.h"
#include "data/speech/command_draws.h"
#include "data/speech/speech_data_options.h"
#include "data/speech/speech_files.h"  // part of this interface
#include "data/speech/speech_source.h"

namespace stretto::data {

/// Utterances that the limits of training have left out. They are no bad samples.
struct OutsideLimits {
  int64_t too_short = 0, too_long = 0;
  double seconds_too_short = 0, seconds_too_long = 0;

  int64_t count() const { return too_short + too_long; }
  /// "3 utterances (1m 02s) longer than data.max_seconds = 16.7"; empty without any.
  std::string text(const SpeechDataOptions& options) const;
};

/// The utterances of the paths of one key, one path after the other: sounds, or parts of them, and
/// what is said. A sample has a number, from 0, which depends on the content of the paths and the
/// limits alone. Files stay where they are and are decoded when a sample is read. Safe to use from
/// several threads.
///
/// With data.commands.set = "12" its last samples are those of the classes `unknown` and `silence`.
/// Of "data.train" each stands for other sounds in each epoch (data/speech/command_draws.h): it has
/// an id and a place that say so, and is as long as the longest of them. Of other keys they are
/// always the same, those that seed 0 draws in epoch 0.
class SpeechSet {
 public:
  int64_t size() const { return std::ssize(kept_); }
  /// How long the sample is, by the header of its file.
  double seconds(int64_t sample) const;
  /// As it stands in the data, without white space at its ends; never empty.
  std::string_view text(int64_t sample) const;
  /// The name of the utterance: that of the data where they have names; else the path of the sound,
  /// as the data name it, and behind `#` where the part begins; such names may be equal in two
  /// paths.
  std::string_view id(int64_t sample) const;
  std::string_view speaker(int64_t sample) const;  ///< empty where it is not known
  /// Where it comes from, for messages and reports: "train.csv:17", "84-1.trans.txt:3", or the path
  /// of a file.
  std::string place(int64_t sample) const;
  /// The path of its sound; of an archive "a.tar: wavs/1.wav". Not unique: of a long file, several
  /// samples may be parts.
  std::string path(int64_t sample) const;
  /// Sampling rate and channels of its file.
  int64_t rate(int64_t sample) const;
  int64_t channels(int64_t sample) const;
  UtteranceFacts facts(int64_t sample) const;

  /// Its samples, one channel at `rate` samples a second; 0 = that of the file.
  /// Throws a SampleError where the file has vanished or changed; Error(kBadData) where it cannot
  /// be decoded, or is silent although something is said in it: all samples are one value.
  /// @param draw  what a sample for training that stands for several sounds is now
  std::vector<float> read(int64_t sample, int64_t rate, const SampleDraw& draw = {}) const;
  /// The same; nothing for one that is skipped as `data.bad_samples` says: it is counted once, and
  /// named in a warning. Throws as MediaFaults::take().
  std::optional<std::vector<float>> load(int64_t sample, int64_t rate,
                                         const SampleDraw& draw = {}) const;

  double total_seconds() const { return total_seconds_; }
  /// Bad samples of all kinds so far, those that load() has skipped included.
  LeftOut left_out() const { return faults_->left_out(); }
  /// What was found of clipped sounds so far, in words; empty = nothing. They are no bad samples.
  std::string clipped() const;
  const OutsideLimits& outside_limits() const { return outside_; }
  /// The same for equal sounds and texts in their order, wherever they lie.
  uint64_t hash() const;
  /// Why the cache could not be written; empty where it was.
  std::string refusal() const;

 private:
  friend std::shared_ptr<const SpeechSet> open_speech(const SpeechDataOptions& options,
                                                      const std::string& key,
                                                      const std::vector<std::string>& paths,
                                                      CacheUse use);
  /// What the text of a sample is.
  using FirstOfIds = std::unordered_map<std::string_view, SpeechPick>;
  enum class Label : uint8_t { kOwn, kUnknown, kSilence };
  struct Kept {
    SpeechPick pick;
    Label label = Label::kOwn;
  };
  struct AddedAs {
    bool is_training = false;   ///< limits hold
    bool has_commands = false;  ///< data.commands.set holds
  };
  /// @param first_of_ids  utterances of earlier paths by their own ids; null: there is one path
  void add(std::shared_ptr<const SpeechSource> source, const SpeechDataOptions& options,
           const AddedAs& as, FirstOfIds* first_of_ids, BadSamples& bad);
  bool is_outside(double seconds, const SpeechDataOptions& options);
  /// Adds the classes that are drawn from what `where` has.
  void add_drawn(const SpeechDataOptions& options, const std::string& where, bool is_training);
  SpeechPick pick_of(int64_t sample, const SampleDraw& draw) const;
  const SpeechSource& source_of(int64_t sample) const;
  int64_t number_of(int64_t sample) const;
  /// The sample among those that are drawn, or -1.
  int64_t drawn_of(int64_t sample) const {
    return kept_[static_cast<size_t>(sample)].label == Label::kOwn ? -1 : sample - num_own_;
  }
  /// Whether it stands for other sounds in each epoch.
  bool is_drawn_anew(int64_t sample) const { return draws_anew_ && drawn_of(sample) >= 0; }

  std::vector<std::shared_ptr<const SpeechSource>> sources_;
  std::vector<Kept> kept_;  ///< num_own_ of words, then the unknown ones, then silence
  int64_t num_own_ = 0, num_of_other_words_ = 0;
  CommandDraws draws_;
  bool draws_anew_ = false;               ///< for training
  std::vector<std::string> drawn_names_;  ///< ids of those that are drawn; empty: of the utterance
  std::string where_;                     ///< the path of those that are drawn anew
  OutsideLimits outside_;
  double total_seconds_ = 0;
  std::unique_ptr<MediaFaults> faults_;
};

/// Opens the utterances of a key. Headers, texts and hashes are looked at once and kept in the
/// cache; nothing is decoded. Those of "data.train" are held to data.min_seconds and
/// data.max_seconds, and those of other keys are not.
///
/// Left out and counted as `data.bad_samples` says: a sound that is missing, cannot be read, is
/// empty, or longer than an hour; a part that is not within its file; a text that is empty or not
/// UTF-8; the second of two utterances with one id. With data.commands.set, utterances
/// of other words are left out too, or are the class `unknown`; they are no bad samples.
///
/// @param key    "data.train", for messages and the limits
/// @param paths  of that key; `eval` may have others than the options
/// Throws as speech_inputs() does (data/speech/speech_inputs.h), as BadSamples does;
/// Error(kBadData) where there is no utterance at all, and for training none of a word of
/// data.commands.set, nothing to draw `unknown` from, or no noise.
std::shared_ptr<const SpeechSet> open_speech(const SpeechDataOptions& options,
                                             const std::string& key,
                                             const std::vector<std::string>& paths,
                                             CacheUse use = CacheUse::kKeeps);

/// Utterances of another set whose sound is that of one for training.
struct SharedSounds {
  int64_t count = 0;
  int64_t first = 0, first_in_training = 0;  ///< where there are any
};
SharedSounds shared_sounds(const SpeechSet& training, const SpeechSet& other);
/// The same in words; empty where there are none.
std::string shared_sounds_text(const SpeechSet& training, const SpeechSet& other);
inline constexpr const char* kSharedSoundsAdvice =
    "scores on them say nothing of other sounds: take them out of one of the sets";

}  // namespace stretto::data
