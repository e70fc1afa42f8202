#include "data/images/archive_images.h"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/archives/unpacked_file.h"
#include "data/cache_folder.h"
#include "data/cached_inputs.h"
#include "data/sample_store.h"

namespace stretto::data {
namespace {

/// Part of the key: a change of the rules of reading, or of the parts, makes new stores.
constexpr uint64_t kArchiveVersion = 1;
constexpr uint64_t kLongToRead = uint64_t{1} << 30;

/// The parts of a store.
enum ArchivePart : size_t {
  kArchivePaths,
  kArchiveLabels,
  kArchiveRecords,
  kArchiveFolders,  ///< a line each
  kArchiveBytes,    ///< of pictures, where the archive is packed
  kNumArchiveParts
};

/// A sample in the store.
struct ArchiveRecord {
  uint64_t path_end = 0, label_end = 0;  ///< in their parts
  uint64_t offset = 0;                   ///< in the archive, or in kArchiveBytes
  ImageFacts facts;
};
static_assert(sizeof(ArchiveRecord) == 7 * sizeof(uint64_t));

std::span<const ArchiveRecord> archive_records(const SampleStore& store) {
  return store.array<ArchiveRecord>(kArchiveRecords);
}

/// Whether the parts belong together: reading relies on it.
/// @param end  of the bytes that hold the pictures
bool is_sound_archive(const SampleStore& store, uint64_t end) {
  if (store.part(kArchiveRecords).size() % sizeof(ArchiveRecord) != 0) return false;
  uint64_t path_end = 0, label_end = 0;
  for (const auto& record : archive_records(store)) {
    if (record.path_end < path_end || record.label_end < label_end) return false;
    if (record.offset > end || record.facts.bytes > end - record.offset) return false;
    path_end = record.path_end;
    label_end = record.label_end;
  }
  return path_end == store.part(kArchivePaths).size() &&
         label_end == store.part(kArchiveLabels).size();
}

class ArchiveImages final : public ImageSource {
 public:
  ArchiveImages(const ArchiveInput& input, SampleStore store, LeftOut left_out, Descriptor file)
      : path_(input.path),
        is_tar_(input.kind == ArchiveKind::kTar),
        store_(std::move(store)),
        left_out_(std::move(left_out)),
        file_(std::move(file)) {
    const std::string_view folders = store_.part(kArchiveFolders);
    if (!folders.empty()) {
      folders_.folders = split(folders.substr(0, folders.size() - 1), '\n');
    }
  }

  int64_t size() const override { return std::ssize(archive_records(store_)); }
  std::string label(int64_t sample) const override {
    return text_of(kArchiveLabels, &ArchiveRecord::label_end, sample);
  }
  const ClassFolders* folders() const override { return is_tar_ ? &folders_ : nullptr; }
  ImageFacts facts(int64_t sample) const override { return record(sample).facts; }
  std::string place(int64_t sample) const override {
    return path_ + ": " +
           printable(text_of(kArchivePaths, &ArchiveRecord::path_end, sample), kMostShown);
  }
  std::string read(int64_t sample) const override {
    const ArchiveRecord& stored = record(sample);
    const uint64_t size = stored.facts.bytes;
    if (!file_) {
      const std::string_view bytes = store_.part(kArchiveBytes);
      if (bytes.empty()) throw std::logic_error(path_ + " was opened without the cache");
      return std::string(bytes.substr(stored.offset, size));
    }
    std::string bytes(size, '\0');
    for (size_t done = 0; done < size;) {
      const auto got = retried([&] {
        return ::pread(file_.get(), bytes.data() + done, size - done,
                       static_cast<off_t>(stored.offset + done));
      });
      if (got < 0) throw_io_error("cannot read", path_, errno);
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    if (xxh3_64(bytes) != stored.facts.hash) throw_changed_archive(sample);
    return bytes;
  }
  const LeftOut& left_out() const override { return left_out_; }
  std::string refusal() const override { return refusal_; }
  void set_refusal(std::string refusal) { refusal_ = std::move(refusal); }

 private:
  static constexpr size_t kMostShown = 1000;

  const ArchiveRecord& record(int64_t sample) const {
    return archive_records(store_)[static_cast<size_t>(sample)];
  }
  std::string text_of(ArchivePart part, uint64_t ArchiveRecord::*end, int64_t sample) const {
    const uint64_t begin = sample == 0 ? 0 : record(sample - 1).*end;
    return std::string(store_.part(part).substr(begin, record(sample).*end - begin));
  }
  [[noreturn]] void throw_changed_archive(int64_t sample) const {
    const std::string fault = place(sample).substr(path_.size());
    throw SampleError(path_, fault + ": the archive has changed since it was looked at",
                      "put the archive of then back, or start again with --accept-data");
  }

  std::string path_;
  bool is_tar_;
  SampleStore store_;
  LeftOut left_out_;
  Descriptor file_;  ///< of an archive that is not packed
  ClassFolders folders_;
  std::string refusal_;
};

/// Makes the source of one archive.
class ArchiveBuild {
 public:
  explicit ArchiveBuild(const ArchiveInput& input) : input_(input) {
    is_packed_ = open_unpacked(input.path).is_packed;
    if (!is_packed_) file_ = open_to_read(input.path, &size_);
  }

  std::shared_ptr<const ImageSource> open() {
    std::shared_ptr<ArchiveImages> made;
    std::string refusal;
    if (input_.uses_cache) refusal = refusal_of([&] { made = in_cache(); });
    if (!made) {
      made = made_of(samples_in_memory(kNumArchiveParts,
                                       [&](SampleStoreWriter& writer) { return build(writer); }));
    }
    made->set_refusal(refusal);
    return made;
  }

 private:
  /// Null where the archive cannot be told apart; then reading says what is wrong with it.
  std::shared_ptr<ArchiveImages> in_cache() {
    const auto inputs = open_cached_inputs(input_.cache_dir, {input_.path});
    if (!inputs) return nullptr;
    const StorePlace place{.root = inputs->root,
                           .kind = "images",
                           .key = key_of(*inputs),
                           .num_parts = kNumArchiveParts,
                           .threads = input_.threads,
                           .is_sound = [this](const SampleStore& store) {
                             LeftOut left_out;
                             const uint64_t end =
                                 is_packed_ ? store.part(kArchiveBytes).size() : size_;
                             return is_sound_archive(store, end) && takes_left_out(store, left_out);
                           }};
    return made_of(open_samples(place, [&](SampleStoreWriter& writer) {
      auto words = build(writer);
      inputs->files.check_unchanged();
      return words;
    }));
  }

  uint64_t key_of(const CachedInputs& inputs) const {
    std::string text = "images " + std::to_string(kArchiveVersion) + " " +
                       std::to_string(static_cast<int>(input_.kind)) + sized(input_.label) +
                       (input_.bad_samples.skips ? " skip" : "");
    for (const auto& content : inputs.contents) text += "\n" + content;
    return xxh3_64(text);
  }

  bool takes_left_out(const SampleStore& store, LeftOut& left_out) const {
    size_t at = 0;
    const std::vector<std::string> files{input_.path};
    return take_left_out(store.words(), at, files, left_out);
  }

  std::vector<uint64_t> build(SampleStoreWriter& writer) const {
    BadSamples bad(input_.bad_samples);
    ArchiveRules rules{.kind = input_.kind, .label = input_.label};
    uint64_t kept = 0;
    if (is_packed_) {
      rules.keep = [&](std::string_view bytes) {
        if (input_.uses_cache) writer.append(kArchiveBytes, bytes);
        return std::exchange(kept, kept + bytes.size());
      };
    }
    tell_of_reading();
    TarReader archive(open_unpacked(input_.path).bytes, input_.path);
    const ArchiveIndex index = index_archive(archive, input_.path, rules, bad);
    write(index, writer);
    if (index.hidden > 0) {
      log::info(input_.path + ": " + counted(index.hidden, "member") +
                " whose name, or that of a folder, begins with a dot: left out");
    }
    std::vector<uint64_t> words;
    append_left_out(words, bad.left_out(), std::vector<std::string>{input_.path});
    return words;
  }

  void tell_of_reading() const {
    std::error_code failed;
    const auto bytes = std::filesystem::file_size(input_.path, failed);
    if (failed || bytes < kLongToRead) return;
    log::info("reads " + input_.path + ", " + human_bytes(bytes) + ", to find its pictures" +
              (is_packed_ && input_.uses_cache ? ", which are kept in the cache" : ""));
  }

  static void write(const ArchiveIndex& index, SampleStoreWriter& writer) {
    ArchiveRecord record;
    for (const auto& image : index.images) {
      writer.append(kArchivePaths, image.path);
      writer.append(kArchiveLabels, image.label);
      record = {.path_end = record.path_end + image.path.size(),
                .label_end = record.label_end + image.label.size(),
                .offset = image.offset,
                .facts = image.facts};
      writer.append_value(kArchiveRecords, record);
    }
    for (const auto& folder : index.folders) writer.append(kArchiveFolders, folder + "\n");
  }

  std::shared_ptr<ArchiveImages> made_of(SampleStore store) {
    LeftOut left_out;
    takes_left_out(store, left_out);
    return std::make_shared<ArchiveImages>(input_, std::move(store), std::move(left_out),
                                           std::move(file_));
  }

  const ArchiveInput& input_;
  bool is_packed_ = false;
  size_t size_ = 0;
  Descriptor file_;
};

}  // namespace

std::shared_ptr<const ImageSource> open_archive(const ArchiveInput& input) {
  return ArchiveBuild(input).open();
}

}  // namespace stretto::data
