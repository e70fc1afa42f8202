#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/bad_samples.h"
#include "data/images/archive_index.h"
#include "data/images/image_source.h"

/// Pictures in tar archives.
///
/// An archive is read once, from its first member to its last. What is found is kept as a store of
/// the cache (data/sample_store.h), whose key is the content of the archive and how it is read: the
/// names of members, their labels, the size and hash of each and the facts of its header.
///
/// The bytes of a member of an uncompressed archive stay where they are: the store has their
/// offset, and loading is one pread. The hash is compared whenever a member is loaded, so that an
/// archive that changes in the middle of a training gives an error, never another picture. A
/// compressed archive cannot be read in any order. Its pictures are stored once, unpacked, as a
/// part of the store; a start verifies them at the speed of memory. So large data, such as
/// ImageNet, are better kept as uncompressed archives, which are hardly larger.
///
/// Samples of kTar stand in the order of their names, as those of a folder do; those of kShard as
/// they come.
namespace stretto::data {

struct ArchiveInput {
  std::string path;
  ArchiveKind kind = ArchiveKind::kTar;
  std::string label = "label";  ///< of a shard: the key of the label in KEY.json
  BadSampleRule bad_samples = {};
  std::string cache_dir = {};  ///< data.cache_dir
  int64_t threads = 1;
  /// Whether the cache is used. Without it, pictures of a compressed archive cannot be loaded:
  /// their names, classes, sizes and hashes alone are known.
  bool uses_cache = true;
};

/// Opens the pictures of an archive.
///
/// A bad sample is a member that is a link, a device or sparse; whose name is absolute or leads out
/// of the archive; that comes twice; that is no picture; of a shard also a picture without a label,
/// a KEY.cls without a picture and a key that comes back behind another one. Members whose names
/// begin with a dot are left out. A label of a shard is the text of KEY.cls, else the value of
/// `label` in KEY.json, else the text of KEY.txt.
///
/// Throws as BadSamples and TarReader do, Error(kUsage) for a path that is no regular file, and
/// Error(kBadData) for an archive that changes meanwhile.
std::shared_ptr<const ImageSource> open_archive(const ArchiveInput& input);

}  // namespace stretto::data
