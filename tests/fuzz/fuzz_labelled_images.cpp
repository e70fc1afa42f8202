// libFuzzer target: any bytes as files of labelled pictures. The first byte chooses idx, the binary
// versions of CIFAR, a tar archive of class folders, or a shard of WebDataset; archives are also
// read as they are told apart. Pictures with labels come out, or Error; what is left out is
// counted.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "data/archives/member_names.h"
#include "data/class_folders.h"
#include "data/images/archive_index.h"
#include "data/images/pixel_files.h"
#include "tests/data/memory_stream.h"
#include "tests/fuzz/one_reader.h"

namespace {

using namespace stretto;
using testing::MemoryStream;

enum class Reader : uint8_t { kIdx, kCifar10, kCifar100, kTar, kShard };
constexpr std::array kReaders{Reader::kIdx, Reader::kCifar10, Reader::kCifar100, Reader::kTar,
                              Reader::kShard};

void require(bool fact) {
  if (!fact) std::abort();
}

void require_whole(const data::PixelArray& array) {
  require(array.count >= 0 && array.height > 0 && array.width > 0);
  require(static_cast<int64_t>(array.pixels.size()) == array.count * array.bytes_of_one());
}

void read_idx(std::string_view bytes) {
  MemoryStream images(bytes), labels(bytes);
  try {
    require_whole(data::read_idx_images(images, "fuzz"));
  } catch (const Error&) {
  }
  require(data::read_idx_labels(labels, "fuzz").size() == bytes.size() - 8);
}

void read_cifar(std::string_view bytes, data::CifarKind kind, const data::BadSampleRule& rule) {
  MemoryStream stream(bytes);
  data::BadSamples bad(rule);
  const auto array = data::read_cifar(stream, "fuzz", kind, bad);
  require_whole(array);
  require(array.labels.size() == array.rows.size());
  const auto records = bytes.size() / (kind == data::CifarKind::kCifar10 ? 3073 : 3074);
  require(array.labels.size() + static_cast<size_t>(bad.left_out().count) == records);
}

void require_sound(const data::ArchivedImage& image, std::string_view bytes,
                   const std::string& kept) {
  std::string fault;
  require(data::member_path(image.path, fault) == image.path && fault.empty());
  require(!image.label.empty() && image.facts.height > 0 && image.facts.width > 0);
  const std::string_view whole = kept.empty() ? bytes : std::string_view(kept);
  require(image.offset <= whole.size() && image.facts.bytes <= whole.size() - image.offset);
  require(xxh3_64(whole.substr(image.offset, image.facts.bytes)) == image.facts.hash);
}

/// @param keeps  pictures are stored, as those of a packed archive
void read_archive(std::string_view bytes, data::ArchiveKind kind, const data::BadSampleRule& rule,
                  bool keeps) {
  data::TarReader archive(std::make_unique<MemoryStream>(bytes), "fuzz");
  data::BadSamples bad(rule);
  data::ArchiveRules rules{.kind = kind};
  std::string kept;
  if (keeps) {
    rules.keep = [&](std::string_view picture) {
      const uint64_t place = kept.size();
      kept += picture;
      return place;
    };
  }
  const auto index = data::index_archive(archive, "fuzz", rules, bad);
  require(rule.skips || bad.left_out().count == 0);
  std::set<std::string> folders;
  for (const auto& image : index.images) {
    require_sound(image, bytes, kept);
    folders.insert(image.label);
  }
  if (kind == data::ArchiveKind::kShard || folders.empty()) return;
  const size_t shared = data::shared_folders(folders, folders);
  for (const auto& folder : folders) require(!data::folder_at(folder, shared).empty());
}

template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

void read_with(Reader reader, std::string_view bytes, const data::BadSampleRule& rule) {
  switch (reader) {
    case Reader::kIdx:
      return try_to([&] { read_idx(bytes); });
    case Reader::kCifar10:
      return try_to([&] { read_cifar(bytes, data::CifarKind::kCifar10, rule); });
    case Reader::kCifar100:
      return try_to([&] { read_cifar(bytes, data::CifarKind::kCifar100, rule); });
    case Reader::kTar:
    case Reader::kShard: {
      const auto kind =
          reader == Reader::kTar ? data::ArchiveKind::kTar : data::ArchiveKind::kShard;
      try_to([&] { read_archive(bytes, kind, rule, rule.skips); });
      try_to([&] {
        data::TarReader archive(std::make_unique<MemoryStream>(bytes), "fuzz");
        data::kind_of_archive(archive);
      });
    }
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned /*seed*/) {
  return testing::mutate_for_its_reader(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Reader reader = kReaders[data[0] % kReaders.size()];
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  read_with(reader, bytes, {});
  read_with(reader, bytes, {.skips = true, .most = 3});
  return 0;
}
