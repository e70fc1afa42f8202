#include "data/speech/speech_source.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/archives/member_names.h"
#include "data/archives/unpacked_file.h"
#include "data/byte_stream.h"
#include "data/cache_folder.h"
#include "data/cached_inputs.h"
#include "data/lines.h"
#include "data/listed_files.h"
#include "data/media/known_file.h"
#include "data/speech/kaldi_rows.h"
#include "data/speech/manifest_rows.h"
#include "data/speech/sound_index.h"
#include "data/speech/speech_layouts.h"
#include "data/speech/stored_speech.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using Holder = SpeechInput::Holder;

constexpr uintmax_t kLongArchive = uintmax_t{1} << 30;

/// All keys that shape what is read.
std::string key_of_reading(const SpeechInput& input, const SpeechDataOptions& options) {
  std::string text = "speech " + std::to_string(kSpeechVersion) + " " + options.format + " " +
                     name_of(input.format) + " " + std::to_string(static_cast<int>(input.holder));
  for (const auto& one : {options.path, options.text, options.offset, options.duration, options.id,
                          options.speaker, options.audio_dir, options.name_pattern}) {
    text += sized(one);
  }
  for (const auto& words : options.label_words) text += sized(words);
  if (input.format == SpeechFormat::kSpeechCommands || input.is_undecided) {
    text += sized(options.commands.split) + std::to_string(static_cast<int>(input.split));
  }
  return text + (options.bad_samples == "skip" ? " skip" : "") + "\n";
}

/// Paths of files that rows name and that are there, each once, as a manifest names them.
DataFile named_sounds(const SpeechInput& input, const UtteranceRows& rows) {
  std::vector<NamedFile> files = sounds_there(rows);
  return {.key = {},
          .path = sound_list(input),
          .kind = DataKind::kManifest,
          .rows = [files = std::move(files)](const std::string& /*manifest*/,
                                             const std::function<void(const NamedFile&)>& take) {
            for (const auto& file : files) take(file);
          }};
}

SoundFile sound_of(const ListedFile& file, std::string path) {
  return {.path = std::move(path),
          .stamp = stamp_hash(file.stamp),
          .bytes = file.size,
          .hash = file.hash};
}

/// Makes the source of one path: in the cache, or in memory.
class SpeechBuild {
 public:
  SpeechBuild(const SpeechInput& input, const SpeechDataOptions& options, int64_t threads)
      : input_(input),
        options_(options),
        threads_(threads),
        place_{.path = input.path, .is_archive = input.holder == Holder::kArchive} {}
  virtual ~SpeechBuild() = default;

  std::shared_ptr<const SpeechSource> open(CacheUse use) {
    std::optional<SampleStore> store;
    std::string refusal;
    if (use == CacheUse::kKeeps) refusal = refusal_of([&] { store = in_cache(); });
    if (!store) {
      is_kept_ = use == CacheUse::kKeeps;
      prepare({});
      store = samples_in_memory(kNumSpeechParts,
                                [&](SampleStoreWriter& writer) { return build(writer); });
    }
    return make_stored_speech(std::move(*store), place_, archive(), std::move(refusal));
  }

 protected:
  /// Looks at what the key needs.
  virtual void prepare(const fs::path& memory_dir) = 0;
  /// The files whose content is a part of the key.
  virtual std::vector<std::string> key_files() const { return {}; }
  virtual std::string key_of_files() const { return ""; }
  virtual std::vector<uint64_t> build(SampleStoreWriter& writer) = 0;
  /// Bytes of an archive that hold sounds.
  virtual uint64_t end_of_sounds(const SampleStore& /*store*/) const { return 0; }
  virtual Descriptor archive() { return {}; }

  std::vector<uint64_t> write(const UtteranceRows& rows, const SoundIndex& sounds, BadSamples& bad,
                              SampleStoreWriter& writer) const {
    const auto words = write_speech(rows, sounds, place_, bad, writer);
    std::vector<uint64_t> all;
    append_left_out(all, bad.left_out(), std::vector<std::string>{place_.path});
    all.insert(all.end(), words.begin(), words.end());
    return all;
  }

  const SpeechInput& input_;
  const SpeechDataOptions& options_;
  int64_t threads_;
  SpeechPlace place_;
  bool is_kept_ = true;  ///< packed sounds are kept: in the cache, or in memory where it is refused

 private:
  /// Nothing where the files cannot be told apart; then reading says what is wrong with them.
  std::optional<SampleStore> in_cache() {
    const auto inputs = open_cached_inputs(options_.cache_dir, key_files());
    if (!inputs) return std::nullopt;
    prepare(inputs->root / "hashes");
    std::string key = key_of_reading(input_, options_) + key_of_files();
    for (const auto& content : inputs->contents) key += "\n" + content;
    const StorePlace store{.root = inputs->root,
                           .kind = "speech",
                           .key = xxh3_64(key),
                           .num_parts = kNumSpeechParts,
                           .threads = threads_,
                           .is_sound = [this](const SampleStore& found) {
                             return is_sound_speech(found, place_, end_of_sounds(found));
                           }};
    return open_samples(store, [&](SampleStoreWriter& writer) {
      auto words = build(writer);
      inputs->files.check_unchanged();
      return words;
    });
  }
};

/// A folder in one of the layouts.
class FolderBuild final : public SpeechBuild {
 public:
  using SpeechBuild::SpeechBuild;

 private:
  void prepare(const fs::path& memory_dir) override {
    list_.emplace(DataFile{.key = {}, .path = input_.path, .kind = DataKind::kTree}, threads_);
    list_->hash({.memory_dir = memory_dir, .threads = threads_});
  }
  std::string key_of_files() const override { return sized(input_.path) + hex64(list_->stamp()); }

  std::vector<uint64_t> build(SampleStoreWriter& writer) override {
    BadSamples bad(bad_sample_rule(options_));
    LayoutFiles files{.path = input_.path,
                      .names = {},
                      .open =
                          [this](const std::string& name) {
                            return LineReader((fs::path(input_.path) / name).string());
                          },
                      .split = input_.split};
    for (const auto& file : list_->files()) {
      if (!is_hidden_path(file.name)) files.names.push_back(file.name);
    }
    const UtteranceRows rows = read_layout(input_.format, files, options_, bad);
    std::unordered_set<std::string_view> needed;
    for (const auto& row : rows.rows) needed.insert(row.sound);
    SoundIndex sounds;
    for (const auto& file : list_->files()) {
      if (!needed.contains(file.name)) continue;
      sounds.add(file.name, sound_of(file, (fs::path(input_.path) / file.name).string()));
    }
    sounds.look(threads_);
    return write(rows, sounds, bad, writer);
  }

  std::optional<ListedFiles> list_;
};

/// A manifest, a list, or a folder of Kaldi.
class ListBuild final : public SpeechBuild {
 public:
  using SpeechBuild::SpeechBuild;

 private:
  std::vector<std::string> key_files() const override {
    if (input_.format == SpeechFormat::kKaldi) return kaldi_files(input_.path);
    return {input_.path};
  }

  void prepare(const fs::path& memory_dir) override {
    bad_.emplace(bad_sample_rule(options_));
    rows_ = read_listed_rows(input_, options_, *bad_);
    list_.emplace(named_sounds(input_, rows_), threads_);
    list_->hash({.memory_dir = memory_dir, .threads = threads_});
  }
  std::string key_of_files() const override { return sized(input_.path) + hex64(list_->stamp()); }

  std::vector<uint64_t> build(SampleStoreWriter& writer) override {
    SoundIndex sounds;
    for (const auto& file : list_->files()) sounds.add(file.name, sound_of(file, file.name));
    sounds.look(threads_);
    return write(rows_, sounds, *bad_, writer);
  }

  std::optional<BadSamples> bad_;
  UtteranceRows rows_;
  std::optional<ListedFiles> list_;
};

class ArchiveSpeechBuild final : public SpeechBuild {
 public:
  ArchiveSpeechBuild(const SpeechInput& input, const SpeechDataOptions& options, int64_t threads)
      : SpeechBuild(input, options, threads) {
    place_.is_packed = open_unpacked(input.path).is_packed;
    if (!place_.is_packed) file_ = open_to_read(input.path, &size_);
  }

 private:
  void prepare(const fs::path& /*memory_dir*/) override {}
  std::vector<std::string> key_files() const override { return {input_.path}; }
  uint64_t end_of_sounds(const SampleStore& store) const override {
    return place_.is_packed ? store.part(kSpeechBytes).size() : size_;
  }
  Descriptor archive() override { return std::move(file_); }

  std::vector<uint64_t> build(SampleStoreWriter& writer) override {
    BadSamples bad(bad_sample_rule(options_));
    std::function<uint64_t(std::string_view)> keep;
    uint64_t kept = 0;
    if (place_.is_packed) {
      keep = [&](std::string_view bytes) {
        if (is_kept_) writer.append(kSpeechBytes, bytes);
        return std::exchange(kept, kept + bytes.size());
      };
    }
    tell_of_reading();
    TarReader archive(open_unpacked(input_.path).bytes, input_.path);
    const SoundArchive all = read_sound_archive(archive, input_.path, keep, bad);
    if (all.hidden > 0) {
      log::info(input_.path + ": " + counted(all.hidden, "member") +
                " whose name, or that of a folder, begins with a dot: left out");
    }
    const LayoutFiles files = files_of(all);
    const SpeechFormat format =
        input_.is_undecided ? format_of_names(options_, files.names, input_.path) : input_.format;
    return write(read_layout(format, files, options_, bad), all.sounds, bad, writer);
  }

  void tell_of_reading() const {
    std::error_code failed;
    const auto bytes = fs::file_size(input_.path, failed);
    if (failed || bytes < kLongArchive) return;
    log::info("reads " + input_.path + ", " + human_bytes(bytes) + ", to find its sounds" +
              (place_.is_packed && is_kept_ ? ", which are kept in the cache" : ""));
  }

  LayoutFiles files_of(const SoundArchive& all) const;

  size_t size_ = 0;
  Descriptor file_;  ///< of an archive that is not packed
};

/// A text of an archive as it is read.
class TextBytes final : public ByteStream {
 public:
  explicit TextBytes(std::string_view text) : rest_(text) {}
  size_t read(char* buffer, size_t capacity) override {
    const size_t size = rest_.copy(buffer, capacity);
    rest_.remove_prefix(size);
    return size;
  }

 private:
  std::string_view rest_;
};

LayoutFiles ArchiveSpeechBuild::files_of(const SoundArchive& all) const {
  return {.path = input_.path,
          .names = all.names,
          .open =
              [&all, this](const std::string& name) {
                const auto found = all.texts.find(name);
                const std::string_view text =
                    found == all.texts.end() ? std::string_view() : found->second;
                return LineReader(std::make_unique<TextBytes>(text), input_.path + ": " + name);
              },
          .is_archive = true,
          .split = input_.split};
}

}  // namespace

std::shared_ptr<const SpeechSource> open_speech_source(const SpeechInput& input,
                                                       const SpeechDataOptions& options,
                                                       int64_t threads, CacheUse use) {
  if (input.holder == Holder::kArchive) {
    return ArchiveSpeechBuild(input, options, threads).open(use);
  }
  if (input.holder == Holder::kFolder && input.format != SpeechFormat::kKaldi) {
    return FolderBuild(input, options, threads).open(use);
  }
  return ListBuild(input, options, threads).open(use);
}

std::string sound_list(const SpeechInput& input) {
  if (input.format != SpeechFormat::kKaldi) return input.path;
  return (fs::path(input.path) / kKaldiSounds).string();
}

std::vector<NamedFile> sounds_there(const UtteranceRows& rows) {
  std::vector<NamedFile> files;
  std::unordered_set<std::string> known;
  for (const auto& row : rows.rows) {
    std::error_code ignored;
    if (!known.insert(row.sound).second || !fs::is_regular_file(row.sound, ignored)) continue;
    files.push_back({.line = std::max<int64_t>(1, row.line), .path = row.sound});
  }
  return files;
}

UtteranceRows read_listed_rows(const SpeechInput& input, const SpeechDataOptions& options,
                               BadSamples& bad) {
  switch (input.format) {
    case SpeechFormat::kKaldi:
      return read_kaldi_rows(kaldi_folder(input.path), options, bad);
    case SpeechFormat::kLjSpeech:
      return read_bar_list(LineReader(input.path), options, bad);
    default:
      return read_manifest_rows(input.path, options, bad);
  }
}

}  // namespace stretto::data
