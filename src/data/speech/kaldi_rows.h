#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/bad_samples.h"
#include "data/lines.h"
#include "data/speech/speech_data_options.h"
#include "data/speech/utterance_rows.h"

/// Folders of data as Kaldi has them:
///
///     wav.scp    RECORDING PATH
///     segments   UTTERANCE RECORDING BEGIN END      seconds; END -1: to the end. May be missing:
///                                                   each recording is an utterance then
///     text       UTTERANCE WORDS…
///     utt2spk    UTTERANCE SPEAKER                  may be missing
///
/// A line of wav.scp may be a command there, whose output is the sound. Such a line is refused, and
/// nothing is ever run: data are no programs.
namespace stretto::data {

/// The names of these files.
inline constexpr const char *kKaldiSounds = "wav.scp", *kKaldiSegments = "segments",
                            *kKaldiTexts = "text", *kKaldiSpeakers = "utt2spk";

/// Where they are.
struct KaldiFolder {
  std::string path;
  /// The lines of one of them, whose name begins with `path`; nothing where it is not there.
  std::function<std::optional<LineReader>(const std::string& name)> open;
};
/// On disk.
KaldiFolder kaldi_folder(const std::string& path);
/// The paths of those that are there, wav.scp first.
std::vector<std::string> kaldi_files(const std::string& path);

/// The utterances of such a folder, in the order of segments, else of wav.scp. Relative paths start
/// from data.audio_dir, else from the folder.
///
/// A bad sample is a line with too few columns or with times that are none, a second line of the
/// same name, a segment of an unknown recording, and an utterance without a line in text.
/// Throws as BadSamples; Error(kBadData) with the line for a command in wav.scp; Error(kUsage)
/// where wav.scp or text is missing.
UtteranceRows read_kaldi_rows(const KaldiFolder& folder, const SpeechDataOptions& options,
                              BadSamples& bad);

}  // namespace stretto::data
