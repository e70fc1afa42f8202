#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "data/sample_store.h"
#include "data/speech/sound_index.h"
#include "data/speech/speech_source.h"
#include "data/speech/utterance_rows.h"

/// Utterances as a store holds them.
namespace stretto::data {

/// The parts of a store.
enum SpeechPart : size_t {
  kSpeechIds,
  kSpeechTexts,
  kSpeechSpeakers,
  kSpeechPaths,  ///< of sounds
  kSpeechSounds,
  kSpeechRecords,
  kSpeechBytes,  ///< of sounds, where the archive is packed
  kNumSpeechParts
};

/// Part of the key: a change of the rules of reading, or of the parts, makes new stores.
inline constexpr uint64_t kSpeechVersion = 2;
/// The most seconds of an utterance.
inline constexpr double kMostUtteranceSeconds = 3600;

/// Where and what the data are.
struct SpeechPlace {
  std::string path;  ///< of `[data]`
  bool is_archive = false;
  bool is_packed = false;
};

/// Writes the rows whose sounds and texts are good, and the sounds that they need; the others are
/// bad samples. @return the words of the store's head, without what was left out
std::vector<uint64_t> write_speech(const UtteranceRows& rows, const SoundIndex& sounds,
                                   const SpeechPlace& place, BadSamples& bad,
                                   SampleStoreWriter& writer);

/// Whether the parts and the words belong together: reading relies on it.
/// @param end  of the bytes that hold the sounds of an archive
bool is_sound_speech(const SampleStore& store, const SpeechPlace& place, uint64_t end);

/// @param store    that is_sound_speech()
/// @param archive  an archive that is not packed, open
std::shared_ptr<const SpeechSource> make_stored_speech(SampleStore store, SpeechPlace place,
                                                       Descriptor archive, std::string refusal);

}  // namespace stretto::data
