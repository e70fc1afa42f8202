#include "data/speech/sound_index.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <unordered_set>
#include <utility>

#include "audio/audio_bytes.h"
#include "audio/audio_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/archives/member_names.h"
#include "data/on_threads.h"
#include "data/speech/sound_names.h"

namespace stretto::data {
namespace {

constexpr uint64_t kMostSoundBytes = uint64_t{1} << 31, kMostTextBytes = uint64_t{1} << 26,
                   kMostBytesOfTexts = uint64_t{1} << 30;
constexpr size_t kMostShownOfMember = 1000;

/// What the header says, or what is wrong with it.
void look_at_sound(audio::AudioBytes bytes, SoundFile& sound) {
  const audio::AudioReader reader(std::move(bytes));
  sound.rate = reader.info().rate;
  sound.channels = reader.info().channels;
  sound.frames = reader.info().frames;
}

/// The same with an Error(kBadData) as the fault of the sound.
template <class Open>
void look_or_note(const Open& open, const std::string& name, SoundFile& sound) {
  try {
    look_at_sound(open(), sound);
  } catch (const Error& error) {
    // kUsage: it is not there any more.
    if (error.code() != ExitCode::kBadData && error.code() != ExitCode::kUsage) throw;
    const std::string what = error.what();
    const std::string prefix = name + ": ";
    sound.fault = what.starts_with(prefix) ? what.substr(prefix.size()) : what;
    sound.advice = error.advice();
  }
}

bool is_text_name(const std::string& name) {
  constexpr std::array<std::string_view, 3> kEndings{".txt", ".csv", ".lab"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

class SoundArchiveReading {
 public:
  SoundArchiveReading(TarReader& archive, const std::string& name,
                      const std::function<uint64_t(std::string_view bytes)>& keep, BadSamples& bad)
      : archive_(archive), name_(name), keep_(keep), bad_(bad) {}

  SoundArchive read() {
    TarMember member;
    while (archive_.next(member)) {
      try {
        take(member);
      } catch (const SampleError& error) {
        bad_.add(error);
      }
    }
    std::sort(all_.names.begin(), all_.names.end());
    return std::move(all_);
  }

 private:
  [[noreturn]] void refuse(const std::string& member, const std::string& what) const {
    throw SampleError(name_, ": " + printable(member, kMostShownOfMember) + ": " + what,
                      "pack the files as regular ones with relative names, each once");
  }

  void take(const TarMember& member) {
    if (member.kind == TarMember::Kind::kFolder) return;
    std::string fault;
    std::string path = member_path(member.name, fault);
    if (!fault.empty()) refuse(member.name, fault);
    if (is_hidden_path(path)) {
      ++all_.hidden;
      return;
    }
    if (member.kind == TarMember::Kind::kOther) refuse(path, "is " + member.other);
    if (!known_.insert(path).second) refuse(path, "comes twice in the archive");
    if (is_sound_name(path)) {
      take_sound(member, path);
    } else if (is_text_name(path)) {
      take_text(member, path);
    }
    all_.names.push_back(std::move(path));
  }

  void take_sound(const TarMember& member, const std::string& path) {
    if (member.size > kMostSoundBytes) {
      refuse(path, "is larger than " + human_bytes(kMostSoundBytes));
    }
    const std::string bytes = archive_.read_all(member);
    SoundFile sound{.path = path, .bytes = bytes.size(), .hash = xxh3_64(bytes)};
    const std::string name = name_ + ": " + path;
    look_or_note([&] { return audio::AudioBytes(std::string_view(bytes), name); }, name, sound);
    sound.offset = keep_ && sound.fault.empty() ? keep_(bytes) : member.offset;
    all_.sounds.add(path, std::move(sound));
  }

  void take_text(const TarMember& member, const std::string& path) {
    if (member.size > kMostTextBytes) {
      refuse(path, "is larger than " + human_bytes(kMostTextBytes));
    }
    text_bytes_ += member.size;
    if (text_bytes_ > kMostBytesOfTexts) {
      throw Error(ExitCode::kBadData,
                  name_ + ": its texts have more than " + human_bytes(kMostBytesOfTexts),
                  "unpack the archive, and name the folder");
    }
    all_.texts[path] = archive_.read_all(member);
  }

  TarReader& archive_;
  const std::string& name_;
  const std::function<uint64_t(std::string_view bytes)>& keep_;
  BadSamples& bad_;
  std::unordered_set<std::string> known_;
  uint64_t text_bytes_ = 0;
  SoundArchive all_;
};

}  // namespace

void SoundIndex::add(const std::string& name, SoundFile sound) {
  if (places_.emplace(name, std::ssize(sounds_)).second) sounds_.push_back(std::move(sound));
}

int64_t SoundIndex::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? -1 : found->second;
}

void SoundIndex::look(int64_t threads) {
  for_each_on_threads(sounds_.size(), threads, [&](size_t i) {
    SoundFile& sound = sounds_[i];
    look_or_note([&] { return audio::AudioBytes(std::filesystem::path(sound.path)); }, sound.path,
                 sound);
  });
}

SoundArchive read_sound_archive(TarReader& archive, const std::string& name,
                                const std::function<uint64_t(std::string_view bytes)>& keep,
                                BadSamples& bad) {
  return SoundArchiveReading(archive, name, keep, bad).read();
}

}  // namespace stretto::data
