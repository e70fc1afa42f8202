#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/bad_samples.h"
#include "data/lines.h"
#include "data/speech/speech_data_options.h"
#include "data/speech/speech_inputs.h"
#include "data/speech/utterance_rows.h"

namespace stretto::data {

/// The files of a folder or of an archive.
struct LayoutFiles {
  std::string path;  ///< of `[data]`
  /// Names below it, sorted, without those that begin with a dot, or lie in such a folder.
  std::vector<std::string> names;
  /// The lines of one of them, whose name is place_of().
  std::function<LineReader(const std::string& name)> open;
  bool is_archive = false;
  SpeechSplit split = SpeechSplit::kTest;  ///< of kSpeechCommands

  /// "DIR/a/b.txt", "a.tar: a/b.txt"
  std::string place_of(const std::string& name) const;
};

/// The utterances of a folder or of an archive in one of the layouts: all but kManifest and kKaldi.
/// `sound` is a name among those of the files.
///
/// - kLibriSpeech: lines `ID TEXT` of NAME.trans.txt, with the sound ID beside it; the speaker is
///   what an ID has in front of its first `-`.
/// - kLjSpeech, kMAilabs: lines `ID|TEXT|NORMALISED` of metadata.csv, with the sound wavs/ID beside
///   it. The normalised text counts, unless there is none or data.text = "raw". Of kMAilabs, the
///   speaker is the folder above that of the book.
/// - kTextFiles: each sound with NAME.normalized.txt, NAME.txt or NAME.lab beside it, whose lines
///   are joined.
/// - kClassFolders: the text is the folder of the sound: the first one that not all sounds share.
///   Folders that begin with `_` are left out. Of NAME_nohash_N the speaker is NAME, as Speech
///   Commands has it.
/// - kLabelledNames: as data.name_pattern says.
/// - kSpeechCommands: one set of three (data/speech/speech_commands.h).
///
/// A bad sample is a line without a sound, a sound without a text, and a name that does not fit.
/// Throws as BadSamples, NamePattern, LabelWords and require_no_sets() do; Error(kUsage) for an
/// unknown data.text of kLjSpeech.
UtteranceRows read_layout(SpeechFormat format, const LayoutFiles& files,
                          const SpeechDataOptions& options, BadSamples& bad);

/// A list of LJSpeech's kind that is a file of its own: `ID|TEXT|NORMALISED` with wavs/ID beside
/// it, or `PATH|TEXT`. With a path, one of the columns behind it may be the number of a speaker,
/// which is digits alone. Throws as read_layout().
/// @param lines  of the list, whose name is its path
UtteranceRows read_bar_list(LineReader lines, const SpeechDataOptions& options, BadSamples& bad);

}  // namespace stretto::data
