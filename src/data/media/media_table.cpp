#include "data/media/media_table.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "audio/audio_file.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/cache_folder.h"
#include "data/cached_inputs.h"
#include "data/listed_files.h"
#include "data/on_threads.h"
#include "image/image_file.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

/// Part of the key: a change of the rules of reading, or of the parts, makes new stores.
constexpr uint64_t kMediaVersion = 1;

/// The parts of a store.
enum MediaPart : size_t { kMediaPaths, kMediaTexts, kMediaRecords, kNumMediaParts };

/// A sample in the store.
struct MediaRecord {
  uint64_t path_end = 0, text_end = 0;  ///< in their parts
  uint64_t source = 0, line = 0;        ///< line 0: of a folder
  uint64_t stamp = 0;                   ///< a hash of the file's FileStamp
  MediaFacts facts;
};
static_assert(sizeof(MediaRecord) % sizeof(uint64_t) == 0);

/// A file that may become a sample.
struct MediaCandidate {
  size_t source = 0;
  int64_t line = 0;
  std::string path, shown;  ///< where it is, and as its manifest or folder names it
  std::string text;
  double offset = 0, duration = 0;
  uint64_t stamp = 0;
  MediaFacts facts;
  std::optional<SampleError> fault;
};

std::span<const MediaRecord> records_of(const SampleStore& store) {
  return store.array<MediaRecord>(kMediaRecords);
}

bool is_hidden(const std::string& name) {
  return name.starts_with('.') || name.find("/.") != std::string::npos;
}

/// Header facts, and the part of a sound that is meant. Throws Error(kBadData).
void look_at_media(MediaKind kind, MediaCandidate& candidate) {
  auto& facts = candidate.facts;
  if (kind == MediaKind::kPicture) {
    const auto info = image::image_info(fs::path(candidate.path));
    facts.height = info.height;
    facts.width = info.width;
    return;
  }
  const auto info = audio::audio_info(candidate.path);
  const auto range =
      audio::range_within(info, candidate.offset, candidate.duration, candidate.path);
  facts.rate = info.rate;
  facts.channels = info.channels;
  facts.begin = range.begin;
  facts.end = range.end;
}

/// A fault of a file as one of its source, which a store names it by.
SampleError fault_of(const Error& error, const MediaCandidate& candidate,
                     const std::string& source) {
  std::string what = error.what();
  if (what.starts_with(candidate.path)) {
    what = printable(candidate.shown, 1000) + what.substr(candidate.path.size());
  }
  const std::string place =
      candidate.line == 0 ? ": " : ":" + std::to_string(candidate.line) + ": ";
  return {source, place + what, error.advice()};
}

std::vector<std::string> paths_of(std::span<const DataFile> sources) {
  std::vector<std::string> paths;
  for (const auto& source : sources) paths.push_back(source.path);
  return paths;
}

/// Whether the parts belong together: reading relies on it.
bool is_sound_media(const SampleStore& store, size_t num_sources) {
  if (store.part(kMediaRecords).size() % sizeof(MediaRecord) != 0) return false;
  uint64_t path_end = 0, text_end = 0;
  for (const auto& record : records_of(store)) {
    if (record.path_end < path_end || record.text_end < text_end) return false;
    if (record.source >= num_sources || record.facts.end < record.facts.begin) return false;
    path_end = record.path_end;
    text_end = record.text_end;
  }
  return path_end == store.part(kMediaPaths).size() && text_end == store.part(kMediaTexts).size();
}

}  // namespace

/// Makes a MediaTable of one input.
class MediaTableBuild {
 public:
  MediaTableBuild(const MediaInput& input, const MediaCache& cache)
      : input_(input), cache_(cache) {}

  std::shared_ptr<const MediaTable> open() {
    std::shared_ptr<MediaTable> table;
    std::string refusal;
    if (cache_.is_used) refusal = refusal_of([&] { table = in_cache(); });
    if (!table) {
      look({});
      table = made_of(samples_in_memory(kNumMediaParts,
                                        [&](SampleStoreWriter& writer) { return build(writer); }));
    }
    table->refusal_ = refusal;
    require_within(input_.bad_samples, table->left_out_);
    return table;
  }

 private:
  /// Null where nothing can be told apart; then the files say what is wrong with them.
  std::shared_ptr<MediaTable> in_cache() {
    std::vector<std::string> manifests;
    for (const auto& source : input_.sources) {
      if (source.kind == DataKind::kManifest) manifests.push_back(source.path);
    }
    const auto inputs = open_cached_inputs(cache_.dir, manifests);
    if (!inputs) return nullptr;
    look(inputs->root / "hashes");
    const StorePlace place{.root = inputs->root,
                           .kind = "media",
                           .key = key_of(*inputs),
                           .num_parts = kNumMediaParts,
                           .threads = cache_.threads,
                           .is_sound = [this](const SampleStore& store) {
                             LeftOut left_out;
                             return is_sound_media(store, input_.sources.size()) &&
                                    takes_left_out(store, left_out);
                           }};
    return made_of(open_samples(place, [&](SampleStoreWriter& writer) {
      auto words = build(writer);
      inputs->files.check_unchanged();
      return words;
    }));
  }

  /// Lists all files and hashes them.
  void look(const fs::path& memory_dir) {
    lists_.clear();
    for (const auto& source : input_.sources) {
      lists_.emplace_back(source, cache_.threads);
      lists_.back().hash({.memory_dir = memory_dir, .threads = cache_.threads});
    }
  }

  uint64_t key_of(const CachedInputs& inputs) const {
    std::string text = "media " + std::to_string(kMediaVersion) + " " +
                       std::to_string(static_cast<int>(input_.kind));
    const auto& columns = input_.columns;
    for (const auto& name : {columns.path, columns.text, columns.offset, columns.duration}) {
      text += sized(name);
    }
    text += input_.bad_samples.skips ? " skip" : "";
    for (size_t i = 0; i < lists_.size(); ++i) {
      text += "\n" + sized(input_.sources[i].path) + hex64(lists_[i].stamp());
    }
    for (const auto& content : inputs.contents) text += "\n" + content;
    return xxh3_64(text);
  }

  bool takes_left_out(const SampleStore& store, LeftOut& left_out) const {
    size_t at = 0;
    return take_left_out(store.words(), at, paths_of(input_.sources), left_out);
  }

  static MediaCandidate candidate_of(size_t source, const ListedFile& file,
                                     const std::string& path) {
    MediaCandidate candidate{.source = source, .path = path, .stamp = stamp_hash(file.stamp)};
    candidate.facts.bytes = file.size;
    candidate.facts.hash = file.hash;
    return candidate;
  }

  void take_folder(size_t number, BadSamples& bad, std::vector<MediaCandidate>& all) const {
    const auto& source = input_.sources[number];
    int64_t hidden = 0;
    for (const auto& file : lists_[number].files()) {
      if (is_hidden(file.name)) {
        ++hidden;
        continue;
      }
      const size_t end = file.name.find('/');
      if (end == std::string::npos) {
        bad.add({source.path, ": " + printable(file.name, 1000) + ": lies in no folder of a class",
                 "each class has a folder with its files"});
        continue;
      }
      auto& candidate = all.emplace_back(
          candidate_of(number, file, (fs::path(source.path) / file.name).string()));
      candidate.shown = file.name;
      candidate.text = file.name.substr(0, end);
    }
    bad.end_file();
    if (hidden > 0) {
      log::info(source.path + ": " + counted(hidden, "file") +
                " whose name, or that of a folder, begins with a dot: left out");
    }
  }

  void take_manifest(size_t number, BadSamples& bad, std::vector<MediaCandidate>& all) const {
    const auto& source = input_.sources[number];
    const auto& files = lists_[number].files();
    size_t at = 0;
    read_media_rows(source.path, input_.columns, bad, [&](MediaRow row) {
      if (at == files.size() || files[at].line != row.line) throw_changed_manifest(source.path);
      const auto& file = files[at++];
      auto& candidate =
          all.emplace_back(candidate_of(number, file, parse_input_path(file.name).file.string()));
      candidate.line = row.line;
      candidate.shown = std::move(row.path);
      candidate.text = std::move(row.text);
      candidate.offset = row.offset;
      candidate.duration = row.duration;
    });
    if (at != files.size()) throw_changed_manifest(source.path);
  }

  [[noreturn]] static void throw_changed_manifest(const std::string& path) {
    throw Error(ExitCode::kBadData, path + ": changed while it was being read",
                "start again when nothing writes to it any more");
  }

  /// Reads the headers of all files, and writes the samples of those that are good.
  std::vector<uint64_t> build(SampleStoreWriter& writer) const {
    BadSamples bad(input_.bad_samples);
    std::vector<MediaCandidate> all;
    for (size_t i = 0; i < input_.sources.size(); ++i) {
      if (input_.sources[i].kind == DataKind::kTree) {
        take_folder(i, bad, all);
      } else {
        take_manifest(i, bad, all);
      }
    }
    for_each_on_threads(all.size(), cache_.threads, [&](size_t i) {
      auto& candidate = all[i];
      try {
        look_at_media(input_.kind, candidate);
      } catch (const Error& error) {
        if (error.code() != ExitCode::kBadData) throw;
        candidate.fault = fault_of(error, candidate, input_.sources[candidate.source].path);
      }
    });
    MediaRecord record;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& candidate = all[i];
      if (i > 0 && candidate.source != all[i - 1].source) bad.end_file();
      if (candidate.fault) {
        bad.add(*candidate.fault);
        continue;
      }
      record = {.path_end = record.path_end + candidate.path.size(),
                .text_end = record.text_end + candidate.text.size(),
                .source = candidate.source,
                .line = static_cast<uint64_t>(candidate.line),
                .stamp = candidate.stamp,
                .facts = candidate.facts};
      writer.append(kMediaPaths, candidate.path);
      writer.append(kMediaTexts, candidate.text);
      writer.append_value(kMediaRecords, record);
    }
    bad.end_file();
    std::vector<uint64_t> words;
    append_left_out(words, bad.left_out(), paths_of(input_.sources));
    return words;
  }

  std::shared_ptr<MediaTable> made_of(SampleStore store) const {
    auto table = std::make_shared<MediaTable>();
    takes_left_out(store, table->left_out_);
    table->sources_ = input_.sources;
    table->store_ = std::move(store);
    return table;
  }

  const MediaInput& input_;
  const MediaCache& cache_;
  std::vector<ListedFiles> lists_;  ///< of the sources
};

int64_t MediaTable::size() const {
  return static_cast<int64_t>(records_of(store_).size());
}

std::string MediaTable::path(int64_t sample) const {
  const auto records = records_of(store_);
  const auto at = static_cast<size_t>(sample);
  const uint64_t begin = at == 0 ? 0 : records[at - 1].path_end;
  return std::string(store_.part(kMediaPaths).substr(begin, records[at].path_end - begin));
}

std::string_view MediaTable::text(int64_t sample) const {
  const auto records = records_of(store_);
  const auto at = static_cast<size_t>(sample);
  const uint64_t begin = at == 0 ? 0 : records[at - 1].text_end;
  return store_.part(kMediaTexts).substr(begin, records[at].text_end - begin);
}

const MediaFacts& MediaTable::facts(int64_t sample) const {
  return records_of(store_)[static_cast<size_t>(sample)].facts;
}

std::string MediaTable::place(int64_t sample) const {
  const auto& record = records_of(store_)[static_cast<size_t>(sample)];
  if (record.line == 0) return path(sample);
  return sources_.at(record.source).path + ":" + std::to_string(record.line);
}

KnownFile MediaTable::known(int64_t sample) const {
  const auto& record = records_of(store_)[static_cast<size_t>(sample)];
  return {.stamp = record.stamp, .bytes = record.facts.bytes, .hash = record.facts.hash};
}

Descriptor MediaTable::open(int64_t sample) const {
  return open_known(path(sample), known(sample));
}

std::string MediaTable::read(int64_t sample) const {
  return read_known(path(sample), known(sample));
}

std::shared_ptr<const MediaTable> open_media(const MediaInput& input, const MediaCache& cache) {
  return MediaTableBuild(input, cache).open();
}

LeftOut MediaFaults::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

void MediaFaults::leave_out(int64_t sample, const SampleError& error) {
  const std::lock_guard lock(mutex_);
  if (!samples_.insert(sample).second) return;
  ++left_out_.count;
  if (left_out_.first.size() < kNamedBadSamples) {
    left_out_.first.push_back({.file = error.file(), .fault = error.fault()});
    log::warn(std::string(error.what()) + "; it is left out");
  }
  require_within(rule_, left_out_);
}

}  // namespace stretto::data
