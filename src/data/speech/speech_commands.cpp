#include "data/speech/speech_commands.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/archives/member_names.h"
#include "data/lines.h"
#include "data/speech/sound_names.h"

namespace stretto::data {
namespace {

/// "yes/0a7c2a8d_nohash_0.wav", as the lists name a sound, wherever the folder of the words lies.
std::string listed_name_of(std::string_view name) {
  return std::string(last_of_path(folder_of_path(name))) + "/" + std::string(last_of_path(name));
}

class CommandReading {
 public:
  CommandReading(const LayoutFiles& files, const SpeechDataOptions& options, BadSamples& bad)
      : files_(files), options_(options), bad_(bad) {}

  UtteranceRows read() {
    const bool by_lists = has_lists();
    std::vector<std::string> noises;
    for (const auto& name : files_.names) {
      if (!is_sound_name(name)) continue;
      const std::string_view word = last_of_path(folder_of_path(name));
      if (word == kNoiseFolder) {
        noises.push_back(name);
      } else if (word.empty()) {
        bad_.add(SampleError(files_.path, place_behind(name) + ": lies in no folder of a word",
                             "the folder of a sound is its word"));
      } else if (!word.starts_with('_')) {
        sounds_.push_back(name);
      }
    }
    if (by_lists) {
      take_by_lists();
    } else {
      for (const auto& name : sounds_) {
        if (split_by_hash(last_of_path(name)) == files_.split) add(name);
      }
    }
    for (auto& name : noises) {
      all_.rows.push_back({.text = std::string(kNoiseFolder), .sound = std::move(name)});
    }
    return std::move(all_);
  }

 private:
  std::string place_behind(const std::string& name) const {
    return files_.place_of(name).substr(files_.path.size());
  }

  /// Whether the lists say what belongs to which set; keeps their names.
  bool has_lists() {
    if (options_.commands.split == "hash") return false;
    for (size_t i = 0; i < kCommandLists.size(); ++i) {
      const auto found = std::ranges::find_if(
          files_.names, [&](const auto& name) { return last_of_path(name) == kCommandLists[i]; });
      if (found != files_.names.end()) lists_[i] = *found;
    }
    const bool has_all = !lists_[0].empty() && !lists_[1].empty();
    const bool has_none = lists_[0].empty() && lists_[1].empty();
    if (has_all || (has_none && options_.commands.split == "auto")) return has_all;
    throw Error(ExitCode::kBadData,
                files_.path + ": has no " + std::string(kCommandLists[lists_[0].empty() ? 0 : 1]),
                "unpack it once more, or set data.commands.split = \"hash\"");
  }

  void add(const std::string& name, int64_t line = 0) {
    UtteranceRow row;
    row.text = last_of_path(folder_of_path(name));
    row.speaker = speaker_of_command(last_of_path(name));
    row.sound = name;
    row.line = line;
    all_.rows.push_back(std::move(row));
  }

  /// Calls `take(entry, line)` for each entry of a list.
  template <class Take>
  void read_list(const std::string& name, const Take& take) {
    LineReader lines = files_.open(name);
    read_records(files_.path, bad_, [&] {
      std::string_view line;
      if (!lines.next(line)) return false;
      if (const std::string entry = trim(line); !entry.empty()) take(entry, lines.line_number());
      return true;
    });
  }

  void take_by_lists() {
    if (files_.split == SpeechSplit::kTraining) {
      std::unordered_set<std::string> listed;
      for (const auto& list : lists_) {
        read_list(list, [&](const std::string& entry, int64_t /*line*/) { listed.insert(entry); });
      }
      for (const auto& name : sounds_) {
        if (!listed.contains(listed_name_of(name))) add(name);
      }
      return;
    }
    const auto& list = lists_[files_.split == SpeechSplit::kValidation ? 0 : 1];
    all_.lists.push_back(files_.place_of(list));
    std::unordered_map<std::string, const std::string*> sounds;
    for (const auto& name : sounds_) sounds.emplace(listed_name_of(name), &name);
    read_list(list, [&](const std::string& entry, int64_t line) {
      const auto found = sounds.find(entry);
      if (found == sounds.end()) {
        refuse_utterance(files_.path, all_.lists.back(), line,
                         "there is no sound " + printable(entry, 1000),
                         "unpack the data once more, or leave the line out");
      }
      add(*found->second, line);
    });
  }

  const LayoutFiles& files_;
  const SpeechDataOptions& options_;
  BadSamples& bad_;
  std::array<std::string, kCommandLists.size()> lists_;
  std::vector<std::string> sounds_;  ///< of words
  UtteranceRows all_;
};

}  // namespace

const std::vector<std::string_view>& command_words(const std::string& set) {
  static const std::vector<std::string_view> any;
  static const std::vector<std::string_view> ten{"down", "go",    "left", "no", "off",
                                                 "on",   "right", "stop", "up", "yes"};
  static const std::vector<std::string_view> thirty{
      "bed",    "bird", "cat",    "dog",   "down", "eight", "five", "four", "go",    "happy",
      "house",  "left", "marvin", "nine",  "no",   "off",   "on",   "one",  "right", "seven",
      "sheila", "six",  "stop",   "three", "tree", "two",   "up",   "wow",  "yes",   "zero"};
  static const std::vector<std::string_view> all_of_version_2 = [] {
    auto words = thirty;
    words.insert(words.end(), {"backward", "follow", "forward", "learn", "visual"});
    std::ranges::sort(words);
    return words;
  }();
  if (set == "12") return ten;
  if (set == "30") return thirty;
  return set == "35" ? all_of_version_2 : any;
}

std::string_view speaker_of_command(std::string_view file_name) {
  const size_t end = file_name.find("_nohash_");
  return end == std::string_view::npos ? std::string_view() : file_name.substr(0, end);
}

SpeechSplit split_by_hash(std::string_view file_name) {
  constexpr uint64_t kMost = (uint64_t{1} << 27) - 1;
  constexpr double kShare = 10;  // percent, of each of both
  // The remainder of the whole digest by 2^27 is that of its last 28 bits.
  const std::string digest = sha1_hex(file_name.substr(0, file_name.find("_nohash_")));
  const uint64_t number = std::stoull(digest.substr(digest.size() - 7), nullptr, 16) & kMost;
  const double percent = static_cast<double>(number) * (100.0 / static_cast<double>(kMost));
  if (percent < kShare) return SpeechSplit::kValidation;
  return percent < 2 * kShare ? SpeechSplit::kTest : SpeechSplit::kTraining;
}

UtteranceRows read_speech_commands(const LayoutFiles& files, const SpeechDataOptions& options,
                                   BadSamples& bad) {
  return CommandReading(files, options, bad).read();
}

}  // namespace stretto::data
