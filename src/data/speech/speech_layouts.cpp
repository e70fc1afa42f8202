#include "data/speech/speech_layouts.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/archives/member_names.h"
#include "data/class_folders.h"
#include "data/speech/manifest_rows.h"
#include "data/speech/name_pattern.h"
#include "data/speech/sound_names.h"
#include "data/speech/speech_commands.h"

namespace stretto::data {
namespace {

constexpr std::string_view kTransTxt = ".trans.txt";

std::string path_below(std::string_view folder, const std::string& name) {
  return folder.empty() ? name : std::string(folder) + "/" + name;
}

/// Where the text of a line ID|TEXT|NORMALISED stands.
size_t text_of_bars(const std::vector<std::string>& fields, bool is_raw) {
  return !is_raw && fields.size() > 2 && !trim(fields[2]).empty() ? 2 : 1;
}

bool takes_raw(const SpeechDataOptions& options) {
  if (options.text == "raw") return true;
  if (options.text.empty() || options.text == "normalised" || options.text == "normalized") {
    return false;
  }
  throw Error(ExitCode::kUsage,
              "data.text: `" + printable(options.text, 60) + "` is no column of LJSpeech",
              "it has \"raw\" and \"normalised\"");
}

/// The sounds of a folder or an archive by their names without endings.
class SoundNames {
 public:
  explicit SoundNames(const LayoutFiles& files) {
    for (const auto& name : files.names) {
      if (is_sound_name(name)) names_.emplace(without_sound_ending(name), name);
    }
  }
  /// Null where there is none.
  const std::string* find(const std::string& stem) const {
    const auto found = names_.find(stem);
    return found == names_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string, std::string> names_;
};

/// What all layouts share.
class LayoutReading {
 public:
  LayoutReading(const LayoutFiles& files, const SpeechDataOptions& options, BadSamples& bad)
      : files_(files), options_(options), bad_(bad) {}
  virtual ~LayoutReading() = default;

  UtteranceRows read() {
    take_all();
    return std::move(all_);
  }

 protected:
  virtual void take_all() = 0;

  /// Calls `take(line, number)` for each line that is not blank.
  template <class Take>
  void read_lines(const std::string& name, const Take& take) {
    LineReader lines = files_.open(name);
    all_.lists.push_back(files_.place_of(name));
    read_records(files_.path, bad_, [&] {
      std::string_view line;
      if (!lines.next(line)) return false;
      if (!trim(line).empty()) take(line, lines.line_number());
      return true;
    });
  }

  /// A row of the list that is being read. @param stem  of its sound
  void add(UtteranceRow row, const SoundNames& sounds, const std::string& stem) {
    const std::string* sound = sounds.find(stem);
    row.list = all_.lists.size() - 1;
    if (sound == nullptr) {
      refuse_utterance(files_.path, all_.lists.back(), row.line,
                       "there is no sound " + printable(stem, 1000) + ".wav or .flac",
                       "put the sound there, or leave the line out");
    }
    row.sound = *sound;
    all_.rows.push_back(std::move(row));
  }

  /// Takes the sounds by their names alone; SampleErrors of `row_of(name)` are bad samples.
  template <class RowOf>
  void take_sounds(const RowOf& row_of) {
    for (const auto& name : files_.names) {
      if (!is_sound_name(name)) continue;
      try {
        UtteranceRow row = row_of(name);
        row.sound = name;
        all_.rows.push_back(std::move(row));
      } catch (const SampleError& error) {
        bad_.add(SampleError::of(error, files_.path));
      }
    }
  }

  [[noreturn]] void refuse_sound(const std::string& name, const std::string& what,
                                 const std::string& advice) const {
    throw SampleError(files_.path, files_.place_of(name).substr(files_.path.size()) + ": " + what,
                      advice);
  }

  const LayoutFiles& files_;
  const SpeechDataOptions& options_;
  BadSamples& bad_;
  UtteranceRows all_;
};

class LibriSpeechReading final : public LayoutReading {
 public:
  using LayoutReading::LayoutReading;

 private:
  void take_all() override {
    const SoundNames sounds(files_);
    for (const auto& name : files_.names) {
      if (!name.ends_with(kTransTxt)) continue;
      const std::string_view folder = folder_of_path(name);
      read_lines(name, [&](std::string_view line, int64_t number) {
        const NamedText parts = split_name(line);
        std::string id(parts.name);
        const std::string stem = path_below(folder, id);
        std::string speaker = id.substr(0, id.find('-'));
        add({.id = std::move(id),
             .text = std::string(parts.text),
             .speaker = std::move(speaker),
             .line = number},
            sounds, stem);
      });
    }
  }
};

/// LJSpeech's, and several of these in folders.
class MetadataReading final : public LayoutReading {
 public:
  MetadataReading(const LayoutFiles& files, const SpeechDataOptions& options, BadSamples& bad,
                  bool has_speakers)
      : LayoutReading(files, options, bad),
        has_speakers_(has_speakers),
        is_raw_(takes_raw(options)) {}

 private:
  void take_all() override {
    const SoundNames sounds(files_);
    for (const auto& name : files_.names) {
      if (last_of_path(name) != "metadata.csv") continue;
      const std::string_view folder = folder_of_path(name);
      const std::string speaker(has_speakers_ ? last_of_path(folder_of_path(folder)) : "");
      read_lines(name, [&](std::string_view line, int64_t number) {
        auto fields = split(line, '|');
        if (fields.size() < 2) {
          refuse_utterance(files_.path, all_.lists.back(), number, "has no `|`",
                           "a line is ID|TEXT or ID|TEXT|NORMALISED");
        }
        std::string id = without_sound_ending(trim(fields[0]));
        const std::string stem = path_below(folder, "wavs/" + id);
        add({.id = std::move(id),
             .text = std::move(fields[text_of_bars(fields, is_raw_)]),
             .speaker = speaker,
             .line = number},
            sounds, stem);
      });
    }
  }

  bool has_speakers_, is_raw_;
};

class TextFilesReading final : public LayoutReading {
 public:
  using LayoutReading::LayoutReading;

 private:
  void take_all() override {
    const std::unordered_set<std::string_view> names(files_.names.begin(), files_.names.end());
    take_sounds([&](const std::string& name) {
      const std::string stem = without_sound_ending(name);
      for (const char* ending : {".normalized.txt", ".txt", ".lab"}) {
        if (!names.contains(stem + ending)) continue;
        return UtteranceRow{.text = whole_text(stem + ending)};
      }
      refuse_sound(name, "there is no text beside it", "NAME.txt has the text of NAME.wav");
    });
  }

  std::string whole_text(const std::string& name) const {
    LineReader lines = files_.open(name);
    std::string text;
    for (std::string_view line; lines.next(line);) {
      const std::string part = trim(line);
      if (part.empty()) continue;
      if (text.size() + part.size() > static_cast<size_t>(kMaxLineBytes)) {
        refuse_sound(name, "has more than " + with_thousands(kMaxLineBytes) + " bytes",
                     "it has what is said in one sound");
      }
      text += (text.empty() ? "" : " ") + part;
    }
    return text;
  }
};

class ClassFoldersReading final : public LayoutReading {
 public:
  using LayoutReading::LayoutReading;

 private:
  void take_all() override {
    std::set<std::string> folders;
    int64_t passed_over = 0;
    for (const auto& name : files_.names) {
      if (!is_sound_name(name)) continue;
      if (is_passed_over(name)) {
        ++passed_over;
      } else if (const auto folder = folder_of_path(name); !folder.empty()) {
        folders.emplace(folder);
      }
    }
    const size_t shared = shared_folders(folders, folders);
    std::set<std::string> classes;
    for (const auto& folder : folders) classes.emplace(folder_at(folder, shared));
    require_no_sets(classes, files_.path);
    const LabelWords words(options_.label_words);
    for (const auto& name : files_.names) take_sound(name, shared, words);
    if (passed_over > 0) {
      log::info(files_.path + ": " + counted(passed_over, "sound") +
                " in folders whose names begin with `_`: left out");
    }
  }

  void take_sound(const std::string& name, size_t shared, const LabelWords& words) {
    if (!is_sound_name(name) || is_passed_over(name)) return;
    try {
      const std::string_view folder = folder_at(folder_of_path(name), shared);
      if (folder.empty()) {
        refuse_sound(name, "lies in no folder of a text", "the folder of a sound is its text");
      }
      std::string text(folder);
      std::replace(text.begin(), text.end(), '_', ' ');
      all_.rows.push_back({.text = words.apply(text),
                           .speaker = std::string(speaker_of_command(last_of_path(name))),
                           .sound = name});
    } catch (const SampleError& error) {
      bad_.add(SampleError::of(error, files_.path));
    }
  }

  static bool is_passed_over(const std::string& name) {
    return name.starts_with('_') ? name.find('/') != std::string::npos : has_folder_with_mark(name);
  }
  static bool has_folder_with_mark(const std::string& name) {
    const size_t mark = name.find("/_");
    return mark != std::string::npos && name.find('/', mark + 1) != std::string::npos;
  }
};

class LabelledNamesReading final : public LayoutReading {
 public:
  using LayoutReading::LayoutReading;

 private:
  void take_all() override {
    const NamePattern pattern(options_.name_pattern);
    const LabelWords words(options_.label_words);
    take_sounds([&](const std::string& name) {
      auto parts = pattern.match(last_of_path(without_sound_ending(name)));
      if (!parts) {
        refuse_sound(name,
                     "its name does not fit data.name_pattern = \"" +
                         printable(options_.name_pattern, 100) + "\"",
                     "correct the pattern, or move the file out of the folder");
      }
      return UtteranceRow{.id = std::move(parts->id),
                          .text = words.apply(parts->text),
                          .speaker = std::move(parts->speaker)};
    });
  }
};

/// Of a list ID|TEXT: the first sound wavs/ID that is there, else wavs/ID.wav, which is missed
/// later.
std::string sound_of_id(const std::string& id, const std::string& list,
                        const SpeechDataOptions& options) {
  for (const char* ending : {".wav", ".flac", ".mp3", ".ogg", ".opus"}) {
    std::string path = sound_path("wavs/" + id + ending, list, options);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return sound_path("wavs/" + id + ".wav", list, options);
}

bool is_number_of_speaker(const std::string& text) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

UtteranceRow row_of_bars(std::vector<std::string> fields, const std::string& list, int64_t line,
                         const SpeechDataOptions& options) {
  for (auto& field : fields) field = trim(field);
  if (fields.size() < 2 || fields[0].empty()) {
    refuse_utterance(list, list, line, "is no utterance: " + printable(join(fields, "|"), 60),
                     "a line is ID|TEXT, ID|TEXT|NORMALISED or PATH|TEXT");
  }
  UtteranceRow row{.line = line};
  if (is_sound_name(fields[0])) {
    row.shown = fields[0];
    row.sound = sound_path(fields[0], list, options);
    const auto speaker = std::find_if(fields.begin() + 1, fields.end(), is_number_of_speaker);
    if (fields.size() > 2 && speaker != fields.end()) {
      row.speaker = *speaker;
      fields.erase(speaker);
    }
  } else {
    row.id = fields[0];
    row.shown = "wavs/" + row.id;
    row.sound = sound_of_id(row.id, list, options);
  }
  row.text = std::move(fields[text_of_bars(fields, takes_raw(options))]);
  return row;
}

}  // namespace

std::string LayoutFiles::place_of(const std::string& name) const {
  if (is_archive) return path + ": " + name;
  // Whatever a name begins with, it lies below the folder.
  return path.ends_with('/') ? path + name : path + "/" + name;
}

UtteranceRows read_layout(SpeechFormat format, const LayoutFiles& files,
                          const SpeechDataOptions& options, BadSamples& bad) {
  switch (format) {
    case SpeechFormat::kLibriSpeech:
      return LibriSpeechReading(files, options, bad).read();
    case SpeechFormat::kLjSpeech:
    case SpeechFormat::kMAilabs:
      return MetadataReading(files, options, bad, format == SpeechFormat::kMAilabs).read();
    case SpeechFormat::kTextFiles:
      return TextFilesReading(files, options, bad).read();
    case SpeechFormat::kClassFolders:
      return ClassFoldersReading(files, options, bad).read();
    case SpeechFormat::kLabelledNames:
      return LabelledNamesReading(files, options, bad).read();
    case SpeechFormat::kSpeechCommands:
      return read_speech_commands(files, options, bad);
    case SpeechFormat::kManifest:
    case SpeechFormat::kKaldi:
      break;
  }
  throw Error(ExitCode::kUsage,
              files.path + ": a folder or an archive cannot be read as data.format = \"" +
                  name_of(format) + "\"",
              "name the manifest, or the folder that has wav.scp");
}

UtteranceRows read_bar_list(LineReader lines, const SpeechDataOptions& options, BadSamples& bad) {
  const std::string list = lines.name();
  UtteranceRows all{.lists = {list}, .rows = {}};
  read_records(list, bad, [&] {
    std::string_view line;
    if (!lines.next(line)) return false;
    if (!trim(line).empty()) {
      all.rows.push_back(row_of_bars(split(line, '|'), list, lines.line_number(), options));
    }
    return true;
  });
  return all;
}

}  // namespace stretto::data
