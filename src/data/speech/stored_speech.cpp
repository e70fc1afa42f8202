#include "data/speech/stored_speech.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "audio/audio_bytes.h"
#include "audio/audio_file.h"
#include "audio/resample.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/io_error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/media/known_file.h"
#include "text/code_points.h"

namespace stretto::data {
namespace {

/// Durations in manifests are rounded: a part that ends so near to the end of the file ends there.
constexpr double kRoundedEnd = 0.05;

/// A file of sound in the store.
struct SoundRecord {
  uint64_t path_end = 0;
  uint64_t stamp = 0;
  uint64_t offset = 0;  ///< in the archive, or in kSpeechBytes
  uint64_t bytes = 0, hash = 0;
  int64_t rate = 0, channels = 0;
};
static_assert(sizeof(SoundRecord) == 7 * sizeof(uint64_t));

/// An utterance in the store.
struct SpeechRecord {
  uint64_t id_end = 0, text_end = 0, speaker_end = 0;  ///< in their parts
  uint64_t sound = 0;
  uint64_t list = 0, line = 0;  ///< line 0: no file tells of it
  int64_t begin = 0, end = 0;   ///< frames of the sound
  uint64_t has_id = 0;          ///< whether its id is that of the data
};
static_assert(sizeof(SpeechRecord) == 9 * sizeof(uint64_t));

/// The words of the head: what was left out, and the lists.
struct SpeechHead {
  LeftOut left_out;
  std::vector<std::string> lists;
};

bool take_head(const SampleStore& store, const SpeechPlace& place, SpeechHead& head) {
  const auto& words = store.words();
  size_t at = 0;
  const std::vector<std::string> files{place.path};
  if (!take_left_out(words, at, files, head.left_out)) return false;
  if (at == words.size()) return false;
  const uint64_t count = words[at++];
  if (count > words.size() - at) return false;
  for (uint64_t i = 0; i < count; ++i) {
    std::string list;
    if (!take_text(words, at, list)) return false;
    head.lists.push_back(place.path + list);
  }
  return true;
}

/// Writes utterances one after the other.
class SpeechWriting {
 public:
  SpeechWriting(const UtteranceRows& rows, const SoundIndex& sounds, const SpeechPlace& place,
                BadSamples& bad, SampleStoreWriter& writer)
      : rows_(rows), sounds_(sounds), place_(place), bad_(bad), writer_(writer) {}

  std::vector<uint64_t> write() {
    for (const auto& row : rows_.rows) ++uses_[sounds_.find(row.sound)];
    for (const auto& row : rows_.rows) {
      try {
        take(row);
      } catch (const SampleError& error) {
        bad_.add(error);
      }
    }
    bad_.end_file();
    tell_of_sizes();
    tell_of_durations();
    std::vector<uint64_t> words{rows_.lists.size()};
    for (const auto& list : rows_.lists) append_text(words, list.substr(place_.path.size()));
    return words;
  }

 private:
  /// Where a row stands, behind the path of `[data]`.
  std::string place_of(const UtteranceRow& row) const {
    if (row.line != 0) {
      return rows_.lists[row.list].substr(place_.path.size()) + ":" + std::to_string(row.line);
    }
    if (place_.is_archive) return ": " + printable(row.sound, 1000);
    return (std::filesystem::path(place_.path) / row.sound).string().substr(place_.path.size());
  }

  [[noreturn]] void refuse(const UtteranceRow& row, const std::string& what,
                           const std::string& advice) const {
    throw SampleError(place_.path, place_of(row) + ": " + what, advice);
  }
  /// What is wrong with its sound.
  [[noreturn]] void refuse_sound(const UtteranceRow& row, const std::string& fault,
                                 const std::string& advice) const {
    const std::string& shown = row.shown.empty() ? row.sound : row.shown;
    refuse(row, row.line == 0 ? fault : printable(shown, 1000) + ": " + fault, advice);
  }

  void take(const UtteranceRow& row) {
    const int64_t number = sounds_.find(row.sound);
    if (number < 0) {
      refuse_sound(row, "is not there",
                   "put the file there, or correct the row; relative paths start from the folder "
                   "of the file that names them, or from data.audio_dir");
    }
    const SoundFile& sound = sounds_.at(number);
    if (!sound.fault.empty()) refuse_sound(row, sound.fault, sound.advice);
    const audio::AudioRange range = range_of(row, sound);
    const std::string text = trim(row.text);
    if (text.empty()) refuse(row, "has no text", "write what is said, or leave it out");
    if (!is_valid_utf8(text)) refuse(row, "its text is not UTF-8", "save the texts as UTF-8");
    if (!row.id.empty() && !ids_.insert(row.id).second) {
      refuse(row, "has the id `" + printable(row.id, 100) + "` of an earlier utterance",
             "give each utterance an id of its own");
    }
    if (row.bytes != 0 && row.bytes != sound.bytes) ++other_sizes_;
    if (range.begin == 0 && range.end < sound.frames && uses_.at(number) == 1) {
      if (cut_short_++ == 0) first_cut_short_ = place_of(row);
    }
    append(row, text, range, record_of(number));
  }

  audio::AudioRange range_of(const UtteranceRow& row, const SoundFile& sound) const {
    const audio::AudioInfo info{
        .rate = sound.rate, .channels = sound.channels, .frames = sound.frames};
    const bool ends_with_file =
        std::fabs(row.offset + row.duration - info.seconds()) <= kRoundedEnd;
    audio::AudioRange range;
    try {
      range = audio::range_within(info, row.offset, ends_with_file ? 0 : row.duration, "sound");
    } catch (const Error& error) {
      refuse_sound(row, std::string(error.what()).substr(std::string_view("sound: ").size()),
                   error.advice());
    }
    if (range.size() <= 0) refuse_sound(row, "has no samples", "leave it out");
    const double seconds = static_cast<double>(range.size()) / static_cast<double>(info.rate);
    if (seconds > kMostUtteranceSeconds) {
      refuse_sound(row,
                   "lasts " + human_duration(seconds) + ", and an utterance may last " +
                       human_duration(kMostUtteranceSeconds),
                   "cut it, or name its parts by offset and duration");
    }
    return range;
  }

  /// The number of a sound in the store, which has those that are needed.
  uint64_t record_of(int64_t number) {
    const auto [place, is_new] = written_.try_emplace(number, written_.size());
    if (is_new) {
      const SoundFile& sound = sounds_.at(number);
      writer_.append(kSpeechPaths, sound.path);
      sound_.path_end += sound.path.size();
      sound_ = {.path_end = sound_.path_end,
                .stamp = sound.stamp,
                .offset = sound.offset,
                .bytes = sound.bytes,
                .hash = sound.hash,
                .rate = sound.rate,
                .channels = sound.channels};
      writer_.append_value(kSpeechSounds, sound_);
    }
    return place->second;
  }

  void append(const UtteranceRow& row, const std::string& text, const audio::AudioRange& range,
              uint64_t sound) {
    const std::string id = text::repaired_utf8(
        id_of(row, range, sounds_.at(sounds_.find(row.sound))), text::Repair::kEachByte);
    const std::string speaker = text::repaired_utf8(row.speaker, text::Repair::kEachByte);
    writer_.append(kSpeechIds, id);
    writer_.append(kSpeechTexts, text);
    writer_.append(kSpeechSpeakers, speaker);
    record_ = {.id_end = record_.id_end + id.size(),
               .text_end = record_.text_end + text.size(),
               .speaker_end = record_.speaker_end + speaker.size(),
               .sound = sound,
               .list = row.list,
               .line = static_cast<uint64_t>(row.line),
               .begin = range.begin,
               .end = range.end,
               .has_id = row.id.empty() ? uint64_t{0} : uint64_t{1}};
    writer_.append_value(kSpeechRecords, record_);
  }

  /// That of the data, else the sound as they name it, and where a part of it begins.
  static std::string id_of(const UtteranceRow& row, const audio::AudioRange& range,
                           const SoundFile& sound) {
    if (!row.id.empty()) return row.id;
    std::string id = row.shown.empty() ? row.sound : row.shown;
    const bool is_part = range.begin > 0 || range.end < sound.frames;
    if (is_part) id += "#" + shortest(row.offset);
    return id;
  }

  void tell_of_sizes() const {
    if (other_sizes_ == 0) return;
    log::warn(place_.path + ": " + counted(other_sizes_, "file") +
              (other_sizes_ == 1 ? " has another size" : " have other sizes") +
              " than wav_filesize says: were they converted, or put in the place of others?");
  }

  /// A file that one row alone names is usually an utterance as a whole.
  void tell_of_durations() const {
    if (cut_short_ == 0) return;
    log::warn(place_.path + ": " + counted(cut_short_, "utterance") +
              (cut_short_ == 1 ? " ends" : " end") + " before the sound does, such as " +
              place_.path + first_cut_short_ +
              ": so the duration in the row says, and no other row has the rest");
  }

  const UtteranceRows& rows_;
  const SoundIndex& sounds_;
  const SpeechPlace& place_;
  BadSamples& bad_;
  SampleStoreWriter& writer_;
  std::unordered_set<std::string> ids_;
  std::unordered_map<int64_t, uint64_t> written_;  ///< sounds, and their numbers in the store
  SoundRecord sound_;
  SpeechRecord record_;
  std::unordered_map<int64_t, int64_t> uses_;  ///< rows of a sound, by its number
  int64_t other_sizes_ = 0, cut_short_ = 0;
  std::string first_cut_short_;  ///< the place of its row
};

class StoredSpeech final : public SpeechSource {
 public:
  StoredSpeech(SampleStore store, SpeechPlace place, Descriptor archive, std::string refusal)
      : place_(std::move(place)),
        store_(std::move(store)),
        archive_(std::move(archive)),
        refusal_(std::move(refusal)) {
    take_head(store_, place_, head_);
  }

  int64_t size() const override { return std::ssize(records()); }
  UtteranceFacts facts(int64_t number) const override {
    const SpeechRecord& one = record(number);
    const SoundRecord& sound = sounds()[one.sound];
    return {.bytes = sound.bytes,
            .hash = sound.hash,
            .rate = sound.rate,
            .channels = sound.channels,
            .begin = one.begin,
            .end = one.end};
  }
  std::string_view text(int64_t number) const override {
    return text_of(kSpeechTexts, &SpeechRecord::text_end, number);
  }
  std::string_view id(int64_t number) const override {
    return text_of(kSpeechIds, &SpeechRecord::id_end, number);
  }
  bool has_own_id(int64_t number) const override { return record(number).has_id != 0; }
  std::string_view speaker(int64_t number) const override {
    return text_of(kSpeechSpeakers, &SpeechRecord::speaker_end, number);
  }
  std::string place(int64_t number) const override {
    const SpeechRecord& one = record(number);
    if (one.line == 0) return path(number);
    return head_.lists[one.list] + ":" + std::to_string(one.line);
  }
  std::string path(int64_t number) const override {
    const std::string name = name_of_sound(record(number).sound);
    if (place_.is_archive) return place_.path + ": " + printable(name, 1000);
    return name;
  }
  std::vector<float> read_part(int64_t number, int64_t rate, const SoundPart& part) const override;
  const ClippedSounds& clipped() const override { return clipped_; }
  const LeftOut& left_out() const override { return head_.left_out; }
  std::string refusal() const override { return refusal_; }

 private:
  std::span<const SpeechRecord> records() const {
    return store_.array<SpeechRecord>(kSpeechRecords);
  }
  std::span<const SoundRecord> sounds() const { return store_.array<SoundRecord>(kSpeechSounds); }
  const SpeechRecord& record(int64_t number) const {
    return records()[static_cast<size_t>(number)];
  }
  std::string_view text_of(SpeechPart part, uint64_t SpeechRecord::*end, int64_t number) const {
    const uint64_t begin = number == 0 ? 0 : record(number - 1).*end;
    return store_.part(part).substr(begin, record(number).*end - begin);
  }
  std::string name_of_sound(uint64_t sound) const {
    const uint64_t begin = sound == 0 ? 0 : sounds()[sound - 1].path_end;
    return std::string(store_.part(kSpeechPaths).substr(begin, sounds()[sound].path_end - begin));
  }
  std::string archived(const SoundRecord& sound, const std::string& name) const;
  std::vector<float> decoded(audio::AudioReader reader, int64_t number,
                             const SoundPart& part) const;

  SpeechPlace place_;
  SampleStore store_;
  Descriptor archive_;
  std::string refusal_;
  SpeechHead head_;
  mutable ClippedSounds clipped_;
};

std::vector<float> StoredSpeech::read_part(int64_t number, int64_t rate,
                                           const SoundPart& part) const {
  const SoundRecord& sound = sounds()[record(number).sound];
  const std::string name = path(number);
  std::vector<float> samples;
  if (!place_.is_archive) {
    const KnownFile known{.stamp = sound.stamp, .bytes = sound.bytes, .hash = sound.hash};
    samples =
        decoded(audio::AudioReader(audio::AudioBytes(open_known(name, known), name)), number, part);
  } else if (archive_) {
    const std::string bytes = archived(sound, name);
    samples =
        decoded(audio::AudioReader(audio::AudioBytes(std::string_view(bytes), name)), number, part);
  } else {
    const std::string_view all = store_.part(kSpeechBytes);
    if (all.empty()) throw std::logic_error(place_.path + " was opened without the cache");
    const std::string_view bytes = all.substr(sound.offset, sound.bytes);
    samples = decoded(audio::AudioReader(audio::AudioBytes(bytes, name)), number, part);
  }
  clipped_.look(number, samples, name);
  if (rate == 0 || rate == sound.rate) return samples;
  return audio::resampled(samples, sound.rate, rate);
}

/// The bytes of a member, which have to be those of then.
std::string StoredSpeech::archived(const SoundRecord& sound, const std::string& name) const {
  std::string bytes(sound.bytes, '\0');
  for (size_t done = 0; done < bytes.size();) {
    const auto got = retried([&] {
      return ::pread(archive_.get(), bytes.data() + done, bytes.size() - done,
                     static_cast<off_t>(sound.offset + done));
    });
    if (got < 0) throw_io_error("cannot read", place_.path, errno);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  if (xxh3_64(bytes) == sound.hash) return bytes;
  throw SampleError(
      place_.path,
      name.substr(place_.path.size()) + ": the archive has changed since it was looked at",
      "put the archive of then back, or start again with --accept-data");
}

std::vector<float> StoredSpeech::decoded(audio::AudioReader reader, int64_t number,
                                         const SoundPart& part) const {
  const SpeechRecord& one = record(number);
  const int64_t end = part.end == 0 ? one.end : std::min(one.end, one.begin + part.end);
  auto samples = reader.read({.begin = one.begin + part.begin, .end = end});
  if (samples.empty()) {
    throw SampleError(reader.name(), ": has no samples although its header says so",
                      "fetch or convert it once more, or leave it out");
  }
  const auto differs = [&](float sample) { return sample != samples.front(); };
  if (!part.may_be_silent && std::none_of(samples.begin(), samples.end(), differs)) {
    throw SampleError(reader.name(),
                      ": is silent, and its text is `" + printable(text(number), 60) +
                          "`: all samples are " + shortest(samples.front()),
                      "record it again, or leave it out");
  }
  return samples;
}

}  // namespace

std::vector<uint64_t> write_speech(const UtteranceRows& rows, const SoundIndex& sounds,
                                   const SpeechPlace& place, BadSamples& bad,
                                   SampleStoreWriter& writer) {
  return SpeechWriting(rows, sounds, place, bad, writer).write();
}

bool is_sound_speech(const SampleStore& store, const SpeechPlace& place, uint64_t end) {
  if (store.part(kSpeechRecords).size() % sizeof(SpeechRecord) != 0) return false;
  if (store.part(kSpeechSounds).size() % sizeof(SoundRecord) != 0) return false;
  SpeechHead head;
  if (!take_head(store, place, head)) return false;
  uint64_t path_end = 0;
  const auto sounds = store.array<SoundRecord>(kSpeechSounds);
  for (const auto& sound : sounds) {
    if (sound.path_end < path_end || sound.rate < 1) return false;
    if (place.is_archive && (sound.offset > end || sound.bytes > end - sound.offset)) return false;
    path_end = sound.path_end;
  }
  SpeechRecord before;
  for (const auto& one : store.array<SpeechRecord>(kSpeechRecords)) {
    if (one.id_end < before.id_end || one.text_end < before.text_end ||
        one.speaker_end < before.speaker_end) {
      return false;
    }
    if (one.sound >= sounds.size() || one.begin < 0 || one.end <= one.begin) return false;
    if (one.line != 0 && one.list >= head.lists.size()) return false;
    before = one;
  }
  return path_end == store.part(kSpeechPaths).size() &&
         before.id_end == store.part(kSpeechIds).size() &&
         before.text_end == store.part(kSpeechTexts).size() &&
         before.speaker_end == store.part(kSpeechSpeakers).size();
}

std::shared_ptr<const SpeechSource> make_stored_speech(SampleStore store, SpeechPlace place,
                                                       Descriptor archive, std::string refusal) {
  return std::make_shared<StoredSpeech>(std::move(store), std::move(place), std::move(archive),
                                        std::move(refusal));
}

}  // namespace stretto::data
