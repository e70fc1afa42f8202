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
};
/// "librispeech", …: as data.format has it.
const char* name_of(SpeechFormat format);

/// A path of `[data]` as it is read.
struct SpeechInput {
  enum class Holder : uint8_t { kFolder, kArchive, kFile };  ///< a file: a manifest, a list
  SpeechFormat format = SpeechFormat::kManifest;
  Holder holder = Holder::kFile;
  std::string path;
  /// The format follows from what is in an archive, and is known when that was read.
  bool is_open = false;
};

/// How the paths of a key are read. `data.format` decides, and with "auto" the files:
///
/// - A file: a tar archive by its content; a manifest by its ending, .csv, .tsv, .jsonl or .json; a
///   list of LJSpeech where lines of a .csv or .txt are parted by `|`; wav.scp stands for its
///   folder.
/// - A folder: of Kaldi with wav.scp; whose files are tar archives, and which has no folders, these
///   archives in the order of their names; else as format_of_names() says of its files.
///
/// Throws Error(kUsage) for a path that is not there, is named twice, cannot be told or does not
/// fit `data.format`; Error(kBadData) for a damaged archive.
std::vector<SpeechInput> speech_inputs(const SpeechDataOptions& options, const std::string& key,
                                       const std::vector<std::string>& paths);

/// The format of a folder or an archive, by the names of its files: NAME.trans.txt librispeech;
/// metadata.csv at its top ljspeech, below m_ailabs; sounds of which most have NAME.txt text_files;
/// with a data.name_pattern beside {text} labelled_names; sounds in folders class_folders.
/// @param place  for the message. Throws Error(kUsage) where none fits.
SpeechFormat format_of_names(const SpeechDataOptions& options,
                             const std::vector<std::string>& names, const std::string& place);

/// Whether a name ends as one of a sound: .wav, .flac, .mp3, .ogg, .oga, .opus, .aif, .aiff, .sph
/// is none. What the file is, its bytes say.
bool is_sound_name(const std::string& name);

}  // namespace stretto::data
