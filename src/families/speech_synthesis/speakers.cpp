#include "families/speech_synthesis/speakers.h"

#include <functional>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/first_names.h"
#include "base/text.h"

namespace stretto::experiment {
namespace {

constexpr size_t kMostNamed = 10, kMostBytes = 60;

constexpr const char* kSpeakerAdvice =
    "data.speaker names the column of a manifest that says who speaks";

[[noreturn]] void throw_without_speaker(const data::SpeechSet& clips, int64_t clip,
                                        const std::string& others) {
  throw Error(ExitCode::kBadData, clips.place(clip) + ": no speaker is named, " + others,
              kSpeakerAdvice);
}

}  // namespace

std::optional<data::Labels> speakers_in(const data::SpeechSet& clips) {
  std::set<std::string, std::less<>> names;
  int64_t nameless = -1;
  for (int64_t i = 0; i < clips.size(); ++i) {
    const std::string_view name = clips.speaker(i);
    if (name.empty()) {
      if (nameless < 0) nameless = i;
    } else if (!names.contains(name)) {
      names.emplace(name);
    }
  }
  if (!names.empty() && nameless >= 0) {
    throw_without_speaker(clips, nameless, "and other clips have one");
  }
  if (names.size() < 2) return std::nullopt;
  return data::Labels::given({names.begin(), names.end()});
}

std::vector<int64_t> speaker_numbers(const data::SpeechSet& clips,
                                     const std::optional<data::Labels>& known) {
  if (!known) return {};
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<size_t>(clips.size()));
  for (int64_t i = 0; i < clips.size(); ++i) {
    const std::string name(clips.speaker(i));
    if (name.empty()) throw_without_speaker(clips, i, "and the run has several");
    const auto number = known->find(name);
    if (!number) {
      throw Error(ExitCode::kBadData,
                  clips.place(i) + ": speaker `" + printable(name, kMostBytes) +
                      "` has no clip for training",
                  "known: " + first_names(known->names(), kMostNamed, kMostBytes));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace stretto::experiment
