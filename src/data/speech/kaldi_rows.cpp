#include "data/speech/kaldi_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/speech/manifest_rows.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

/// What stands behind a name, and where.
struct KaldiEntry {
  std::string text;
  int64_t line = 0;
};
using KaldiTable = std::unordered_map<std::string, KaldiEntry>;

/// One number behind another.
bool take_seconds(std::string_view text, double& seconds) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(seconds);
}

class KaldiRows {
 public:
  KaldiRows(const KaldiFolder& folder, const SpeechDataOptions& options, BadSamples& bad)
      : folder_(folder), options_(options), bad_(bad) {}

  UtteranceRows read() {
    read_sounds();
    require_file(kKaldiTexts, read_table(kKaldiTexts, texts_));
    read_table(kKaldiSpeakers, speakers_);
    if (!read_segments()) {
      const size_t list = list_of(kKaldiSounds);
      for (const auto& [name, line] : recordings_) {
        add({.id = name, .sound = sounds_.at(name).text, .list = list, .line = line});
      }
    }
    return std::move(all_);
  }

 private:
  std::string path_of(const std::string& name) const {
    return (fs::path(folder_.path) / name).string();
  }

  size_t list_of(const std::string& name) {
    all_.lists.push_back(path_of(name));
    return all_.lists.size() - 1;
  }

  [[noreturn]] void refuse(const std::string& file, int64_t line, const std::string& what,
                           const std::string& advice) const {
    refuse_utterance(folder_.path, path_of(file), line, what, advice);
  }

  void require_file(const std::string& name, bool is_there) const {
    if (is_there) return;
    throw Error(ExitCode::kUsage, path_of(name) + ": is missing",
                "a folder of Kaldi has wav.scp and text, and maybe segments and utt2spk");
  }

  /// Calls `take(name, text, line)` for each line that is not blank. @return whether there is a
  /// file
  template <class Take>
  bool read_lines(const std::string& file, const Take& take) {
    auto lines = folder_.open(file);
    if (!lines) return false;
    read_records(folder_.path, bad_, [&] {
      std::string_view line;
      if (!lines->next(line)) return false;
      const auto [name, text] = split_name(line);
      if (!name.empty()) take(std::string(name), std::string(text), lines->line_number());
      return true;
    });
    return true;
  }

  void keep(KaldiTable& table, const std::string& file, const std::string& name, std::string text,
            int64_t line) const {
    const auto [place, is_new] = table.try_emplace(name, KaldiEntry{std::move(text), line});
    if (is_new) return;
    refuse(file, line,
           "`" + printable(name, 100) + "` stands in line " + std::to_string(place->second.line) +
               " already",
           "each name is another one");
  }

  bool read_table(const std::string& file, KaldiTable& table) {
    return read_lines(file, [&](const std::string& name, std::string text, int64_t line) {
      keep(table, file, name, std::move(text), line);
    });
  }

  void read_sounds() {
    const auto take = [&](const std::string& name, std::string text, int64_t line) {
      if (text.empty()) refuse(kKaldiSounds, line, "names no sound", "a line is NAME PATH");
      if (text.front() == '|' || text.back() == '|') throw_command(text, line);
      keep(sounds_, kKaldiSounds, name, std::move(text), line);
      recordings_.emplace_back(name, line);
    };
    require_file(kKaldiSounds, read_lines(kKaldiSounds, take));
  }

  [[noreturn]] void throw_command(const std::string& command, int64_t line) const {
    throw Error(ExitCode::kBadData,
                path_of(kKaldiSounds) + ":" + std::to_string(line) + ": is a command, `" +
                    printable(command, 100) + "`; a command in data is never run",
                "write the sounds into files once, such as WAV or FLAC, and name these");
  }

  bool read_segments() {
    if (!folder_.open(kKaldiSegments)) return false;
    const size_t list = list_of(kKaldiSegments);
    KaldiTable known;
    return read_lines(kKaldiSegments,
                      [&](const std::string& name, const std::string& text, int64_t line) {
                        keep(known, kKaldiSegments, name, "", line);
                        add_segment(name, text, list, line);
                      });
  }

  void add_segment(const std::string& name, const std::string& text, size_t list, int64_t line) {
    std::string spaced = text;
    std::replace(spaced.begin(), spaced.end(), '\t', ' ');
    const auto fields = split_words(spaced);
    double begin = 0, end = 0;
    const bool is_whole = fields.size() >= 3 && take_seconds(fields[1], begin) &&
                          take_seconds(fields[2], end) && begin >= 0;
    const bool is_to_the_end = end == -1;
    if (!is_whole || (!is_to_the_end && end <= begin)) {
      refuse(kKaldiSegments, line, "is no segment: " + printable(text, 60),
             "a line is UTTERANCE RECORDING BEGIN END, in seconds; an END of -1 is that of the "
             "recording");
    }
    const auto sound = sounds_.find(fields[0]);
    if (sound == sounds_.end()) {
      refuse(kKaldiSegments, line,
             "is of recording `" + printable(fields[0], 100) + "`, which wav.scp does not have",
             "add the recording to wav.scp, or leave the segment out");
    }
    add({.id = name,
         .sound = sound->second.text,
         .offset = begin,
         .duration = is_to_the_end ? 0 : end - begin,
         .list = list,
         .line = line});
  }

  /// @param row  with the sound as wav.scp names it
  void add(UtteranceRow row) {
    try {
      const auto text = texts_.find(row.id);
      if (text == texts_.end()) {
        throw SampleError(folder_.path,
                          all_.lists[row.list].substr(folder_.path.size()) + ":" +
                              std::to_string(row.line) + ": text has no line of `" +
                              printable(row.id, 100) + "`",
                          "each utterance has a line in text");
      }
      row.text = text->second.text;
    } catch (const SampleError& error) {
      bad_.add(error);
      return;
    }
    if (const auto speaker = speakers_.find(row.id); speaker != speakers_.end()) {
      row.speaker = speaker->second.text;
    }
    row.shown = row.sound;
    row.sound = sound_path(row.sound, path_of(kKaldiSounds), options_);
    all_.rows.push_back(std::move(row));
  }

  const KaldiFolder& folder_;
  const SpeechDataOptions& options_;
  BadSamples& bad_;
  KaldiTable sounds_, texts_, speakers_;
  std::vector<std::pair<std::string, int64_t>> recordings_;  ///< and their lines, in order
  UtteranceRows all_;
};

}  // namespace

KaldiFolder kaldi_folder(const std::string& path) {
  return {.path = path, .open = [path](const std::string& name) -> std::optional<LineReader> {
            const fs::path file = fs::path(path) / name;
            std::error_code ignored;
            if (!fs::exists(file, ignored)) return std::nullopt;
            return LineReader(file.string());
          }};
}

std::vector<std::string> kaldi_files(const std::string& path) {
  std::vector<std::string> files;
  for (const char* name : {kKaldiSounds, kKaldiSegments, kKaldiTexts, kKaldiSpeakers}) {
    const fs::path file = fs::path(path) / name;
    std::error_code ignored;
    if (fs::exists(file, ignored)) files.push_back(file.string());
  }
  return files;
}

UtteranceRows read_kaldi_rows(const KaldiFolder& folder, const SpeechDataOptions& options,
                              BadSamples& bad) {
  return KaldiRows(folder, options, bad).read();
}

}  // namespace stretto::data
