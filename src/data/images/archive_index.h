#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/archives/tar_reader.h"
#include "data/bad_samples.h"
#include "data/images/image_source.h"

namespace stretto::data {

enum class ArchiveKind : uint8_t {
  kTar,    ///< a folder with a folder of pictures a class
  kShard,  ///< WebDataset: KEY.jpg, KEY.cls
};

/// A picture in an archive.
struct ArchivedImage {
  std::string path;     ///< as member_path() has it
  std::string label;    ///< of kTar the folder it lies in, of kShard its label
  uint64_t offset = 0;  ///< where its bytes are
  ImageFacts facts;
};

struct ArchiveIndex {
  std::vector<ArchivedImage> images;
  std::vector<std::string> folders;  ///< of kTar: those that the archive names
  int64_t hidden = 0;                ///< members that were left out since their name begins so
};

struct ArchiveRules {
  ArchiveKind kind = ArchiveKind::kTar;
  std::string label = "label";  ///< of a shard: the key of the label in KEY.json
  /// Stores the bytes of a picture. @return where; empty: they stay in the archive
  std::function<uint64_t(std::string_view bytes)> keep = {};
};

/// Reads an archive from its first member to its last, as open_archive() says
/// (data/images/archive_images.h).
/// @param name  of the archive, for messages
/// Throws as TarReader and BadSamples do.
ArchiveIndex index_archive(TarReader& archive, const std::string& name, const ArchiveRules& rules,
                           BadSamples& bad);

/// What kind of archive the first members make it: a shard where a picture has a label beside it.
/// Throws as TarReader does.
ArchiveKind kind_of_archive(TarReader& archive);

}  // namespace stretto::data
