#include "data/speech/speech_inputs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/io_error.h"
#include "base/text.h"
#include "data/archives/member_names.h"
#include "data/archives/unpacked_file.h"
#include "data/bad_samples.h"
#include "data/lines.h"
#include "data/media/media_rows.h"
#include "data/speech/kaldi_rows.h"
#include "data/speech/sound_names.h"
#include "data/speech/speech_commands.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSpeechFormatsAdvice =
    "data.format takes LibriSpeech's folders, manifests that end in .csv, .tsv or .jsonl, Kaldi's "
    "folders, LJSpeech's and M-AILABS', sounds with texts beside them, in folders of classes, or "
    "with texts in their names; and tar archives of such folders";
constexpr size_t kSpeechTarBlock = 512, kSpeechTarMark = 257;
constexpr std::array<const char*, 9> kSpeechFormats{
    "librispeech", "manifest",      "kaldi",          "ljspeech",       "m_ailabs",
    "text_files",  "class_folders", "labelled_names", "speech_commands"};

[[noreturn]] void refuse_speech(const std::string& path, const std::string& what,
                                const std::string& advice = kSpeechFormatsAdvice) {
  throw Error(ExitCode::kUsage, printable(path, 4096) + ": " + what, advice);
}

/// The ending of a name in lower case, without that of its packing.
std::string ending_of(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name = name.stem();
  std::string ending = name.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

bool is_tar_name(const std::string& path) {
  const std::string ending = ending_of(path);
  return ending == ".tar" || ending == ".tgz";
}

bool is_tar_file(const std::string& path) {
  if (is_tar_name(path)) return true;
  const auto file = open_unpacked(path);
  std::string first(kSpeechTarBlock, '\0');
  size_t done = 0;
  while (done < first.size()) {
    const size_t got = file.bytes->read(first.data() + done, first.size() - done);
    if (got == 0) break;
    done += got;
  }
  return done == first.size() && first.compare(kSpeechTarMark, 5, "ustar") == 0;
}

/// Whether the first line that is not blank has a bar. A file that cannot be read has none here.
bool is_parted_by_bars(const std::string& path) {
  try {
    LineReader lines(path);
    for (std::string_view line; lines.next(line);) {
      if (!trim(line).empty()) return line.find('|') != std::string_view::npos;
    }
  } catch (const Error&) {
  }
  return false;
}

std::optional<SpeechFormat> speech_format_named(const std::string& name) {
  const auto found = std::find(kSpeechFormats.begin(), kSpeechFormats.end(), name);
  if (found == kSpeechFormats.end()) return std::nullopt;  // auto
  return static_cast<SpeechFormat>(found - kSpeechFormats.begin());
}

/// The paths of one key, one after the other.
class ResolvingSpeech {
 public:
  ResolvingSpeech(const SpeechDataOptions& options, const std::string& key)
      : options_(options), key_(key), format_(speech_format_named(options.format)) {}

  std::vector<SpeechInput> resolve(const std::vector<std::string>& paths) {
    for (const auto& path : paths) {
      std::error_code ignored;
      const auto status = fs::status(path, ignored);
      if (!fs::exists(status)) {
        refuse_speech(path, "no such file or folder",
                      "paths in a config are relative to the config file; look for a slip in the "
                      "name");
      }
      if (fs::is_directory(status)) {
        add_folder(path);
      } else {
        add_file(path);
      }
    }
    require_once();
    return std::move(inputs_);
  }

 private:
  using Holder = SpeechInput::Holder;

  bool is(SpeechFormat format) const { return format_ == format; }

  void add(SpeechFormat format, Holder holder, const std::string& path) {
    inputs_.push_back(
        {.format = format, .holder = holder, .path = path, .split = split_of_key(key_)});
  }

  void add_folder(const std::string& path) {
    std::error_code ignored;
    const bool is_kaldi = fs::exists(fs::path(path) / kKaldiSounds, ignored);
    if (is(SpeechFormat::kKaldi) || (!format_ && is_kaldi)) {
      if (!is_kaldi) refuse_speech(path, "has no wav.scp", "name the folder that has it");
      return add(SpeechFormat::kKaldi, Holder::kFolder, path);
    }
    if (is(SpeechFormat::kManifest)) {
      refuse_speech(path, "is a folder, and data.format = \"manifest\"", "name the manifest");
    }
    const auto names = visible_names(path);
    const bool holds_archives =
        !names.empty() && std::all_of(names.begin(), names.end(), is_tar_name) &&
        std::all_of(names.begin(), names.end(),
                    [](const auto& name) { return name.find('/') == std::string::npos; });
    if (holds_archives) {
      for (const auto& name : names) add_archive((fs::path(path) / name).string());
      return;
    }
    add(format_ ? *format_ : format_of_names(options_, names, path), Holder::kFolder, path);
  }

  void add_archive(const std::string& path) {
    if (is(SpeechFormat::kManifest) || is(SpeechFormat::kKaldi)) {
      refuse_speech(path, "is an archive, and data.format = \"" + options_.format + "\"",
                    "unpack it, and name what it has");
    }
    inputs_.push_back({.format = format_.value_or(SpeechFormat::kLibriSpeech),
                       .holder = Holder::kArchive,
                       .path = path,
                       .is_undecided = !format_,
                       .split = split_of_key(key_)});
  }

  void add_file(const std::string& path) {
    if (is(SpeechFormat::kManifest)) return add_manifest(path);
    const bool is_scp = fs::path(path).filename() == kKaldiSounds;
    if (is(SpeechFormat::kKaldi) || (!format_ && is_scp)) {
      if (!is_scp) refuse_speech(path, "is no folder of Kaldi", "name the folder with wav.scp");
      const std::string folder = fs::path(path).parent_path().string();
      return add(SpeechFormat::kKaldi, Holder::kFolder, folder.empty() ? "." : folder);
    }
    if (is_tar_file(path)) return add_archive(path);
    if (is(SpeechFormat::kLjSpeech)) return add(SpeechFormat::kLjSpeech, Holder::kFile, path);
    if (format_) {
      refuse_speech(path, "is a file, and data.format = \"" + options_.format + "\"",
                    "name the folder, or a tar archive of it");
    }
    const std::string ending = ending_of(path);
    if ((ending == ".csv" || ending == ".txt") && is_parted_by_bars(path)) {
      return add(SpeechFormat::kLjSpeech, Holder::kFile, path);
    }
    if (is_sound_name(path)) {
      refuse_speech(path, "is a sound, and what is said in it is not known",
                    "name a manifest, or the folder that has sounds and texts");
    }
    add_manifest(path);
  }

  /// Refuses what is no manifest by its ending.
  void add_manifest(const std::string& path) {
    try {
      media_list_format(path);
    } catch (const Error&) {
      if (format_) throw;
      refuse_speech(path, "its content is of no format for sounds and their texts");
    }
    add(SpeechFormat::kManifest, Holder::kFile, path);
  }

  void require_once() const {
    std::set<std::string> known;
    std::error_code ignored;
    for (const auto& input : inputs_) {
      const fs::path real = fs::weakly_canonical(input.path, ignored);
      if (known.insert(real.empty() ? input.path : real.string()).second) continue;
      refuse_speech(input.path, "is named twice in " + key_, "name each path once");
    }
  }

  const SpeechDataOptions& options_;
  const std::string& key_;
  std::optional<SpeechFormat> format_;  ///< nothing: by the files
  std::vector<SpeechInput> inputs_;
};

bool has_text_beside(const std::string& sound, const std::unordered_set<std::string_view>& names) {
  const std::string stem = without_sound_ending(sound);
  return names.contains(stem + ".txt") || names.contains(stem + ".normalized.txt") ||
         names.contains(stem + ".lab");
}

}  // namespace

const char* name_of(SpeechFormat format) {
  return kSpeechFormats.at(static_cast<size_t>(format));
}

SpeechSplit split_of_key(const std::string& key) {
  if (key == "data.train") return SpeechSplit::kTraining;
  return key == "data.valid" ? SpeechSplit::kValidation : SpeechSplit::kTest;
}

std::vector<SpeechInput> speech_inputs(const SpeechDataOptions& options, const std::string& key,
                                       const std::vector<std::string>& paths) {
  return ResolvingSpeech(options, key).resolve(paths);
}

SpeechFormat format_of_names(const SpeechDataOptions& options,
                             const std::vector<std::string>& names, const std::string& place) {
  size_t num_metadata = 0, num_sounds = 0, with_text = 0, num_splits = 0;
  const std::unordered_set<std::string_view> known(names.begin(), names.end());
  std::set<std::string_view> folders;
  for (const auto& name : names) {
    if (name.ends_with(".trans.txt")) return SpeechFormat::kLibriSpeech;
    if (name == "metadata.csv" || name.ends_with("/metadata.csv")) ++num_metadata;
    if (std::ranges::count(kCommandLists, last_of_path(name)) > 0) ++num_splits;
    if (!is_sound_name(name)) continue;
    ++num_sounds;
    if (has_text_beside(name, known)) ++with_text;
    folders.insert(folder_of_path(name));
  }
  if (num_sounds == 0) refuse_speech(place, "has no sounds");
  if (num_metadata > 0) {
    return num_metadata == 1 ? SpeechFormat::kLjSpeech : SpeechFormat::kMAilabs;
  }
  if (num_splits == 2) return SpeechFormat::kSpeechCommands;
  if (options.name_pattern != "{text}") return SpeechFormat::kLabelledNames;
  if (2 * with_text >= num_sounds) return SpeechFormat::kTextFiles;
  if (folders.size() > 1) return SpeechFormat::kClassFolders;
  refuse_speech(place, "has sounds, and no texts that could be told from the names of its files",
                std::string("where names have the texts, set data.format = \"labelled_names\"; ") +
                    kSpeechFormatsAdvice);
}

std::vector<std::string> visible_names(const std::string& folder) {
  std::vector<std::string> names;
  const size_t begin = (fs::path(folder) / "").native().size();
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().native().starts_with('.')) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_directory(error)) names.push_back(entry->path().native().substr(begin));
    if (error) break;
  }
  if (error) throw_io_error("cannot read", folder, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace stretto::data
