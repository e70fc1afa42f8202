#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/speech/speech_data_options.h"

namespace stretto::data {

/// How texts stand beside sounds.
enum class SpeechFormat : uint8_t {
  kLibriSpeech,
  kManifest,
  kKaldi,
  kLjSpeech,
  kMAilabs,
  kTextFiles,
  kClassFolders,
  kLabelledNames,
  kSpeechCommands,
};
/// "librispeech", …: as data.format has it.
const char* name_of(SpeechFormat format);

/// The set that a key asks for, of a path that holds all of them.
enum class SpeechSplit : uint8_t { kTraining, kValidation, kTest };
/// That of "data.train" and of "data.valid"; of any other key, kTest.
SpeechSplit split_of_key(const std::string& key);

/// A path of `[data]` as it is read.
struct SpeechInput {
  enum class Holder : uint8_t { kFolder, kArchive, kFile };  ///< a file: a manifest, a list
  SpeechFormat format = SpeechFormat::kManifest;
  Holder holder = Holder::kFile;
  std::string path;
  /// The format of an archive follows from what is in it, and is known when that was read.
  bool is_undecided = false;
  SpeechSplit split = SpeechSplit::kTest;  ///< of kSpeechCommands
};

/// How the paths of a key are read. `data.format` decides, and with "auto" the files:
///
/// - A file: a tar archive by its content; wav.scp stands for its folder; a list of LJSpeech where
///   the first line of a .csv or .txt has a `|`; else a manifest.
/// - A folder: of Kaldi with wav.scp; whose files are tar archives, and which has no folders, these
///   archives in the order of their names; else as format_of_names() says of its files.
///
/// Throws Error(kUsage) for a path that is not there, is named twice, cannot be told or does not
/// fit `data.format`; Error(kIo).
std::vector<SpeechInput> speech_inputs(const SpeechDataOptions& options, const std::string& key,
                                       const std::vector<std::string>& paths);

/// The format of a folder or an archive, by the names of its files: NAME.trans.txt librispeech; one
/// metadata.csv ljspeech, several m_ailabs; validation_list.txt and
/// testing_list.txt speech_commands; sounds, with a data.name_pattern that is not {text},
/// labelled_names; of which most have NAME.txt, text_files; in several folders class_folders.
/// @param place  for the message. Throws Error(kUsage) where none fits.
SpeechFormat format_of_names(const SpeechDataOptions& options,
                             const std::vector<std::string>& names, const std::string& place);

/// The files below a folder by their names, sorted, without what begins with a dot.
/// Throws Error(kIo).
std::vector<std::string> visible_names(const std::string& folder);

}  // namespace stretto::data
