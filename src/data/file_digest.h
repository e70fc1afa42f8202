#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_stream.h"
#include "data/data_kind.h"

namespace stretto::data {

/// Most blocks of one digest, an even number: 16 KiB in a file.
inline constexpr size_t kMostDigestBlocks = 1024;

/// The content of a data file as a few hashes. A later look tells whether the content is the same,
/// and where it first differs.
///
/// Content is cut into pieces: a line, or 4 KiB of a longer one; where it is looked at as bytes,
/// 4 KiB. A block is a number of pieces in a row, a power of two that keeps the number of blocks
/// bounded. In a short file each block is one piece, and identifies the very line.
struct FileDigest {
  uint64_t bytes = 0;        ///< of the content: of a compressed file, what it holds
  uint64_t lines = 0;        ///< the last one may lack its line end; 0 of bytes
  uint64_t hash = 0;         ///< XXH3-64 of the content
  uint64_t stored_hash = 0;  ///< XXH3-64 of the file as it lies there, compressed or not
  uint64_t pieces = 0;
  uint64_t pieces_per_block = 1;
  std::vector<uint64_t> blocks;  ///< the last one may have fewer pieces

  bool operator==(const FileDigest&) const = default;
};

/// The same with at most so many blocks, each of more pieces.
FileDigest coarsened(FileDigest digest, size_t most_blocks);

nlohmann::json digest_to_json(const FileDigest& digest);
/// Throws std::exception for another value, with what is wrong.
FileDigest digest_from_json(const nlohmann::json& json);

/// Where what was hashed once is remembered, and how many files are hashed at once.
struct DigestSetting {
  /// As that of content_hashes(), for files of 1 MiB and more; empty = nowhere.
  std::filesystem::path memory_dir = {};
  int64_t threads = 1;
};

/// The digest of what a path of `[data]` names. Reads it once; an archive twice. Throws as
/// open_bytes() does.
/// @param kind  kText, or kBytes: the file as it lies there, packed or not
FileDigest digest_of(const std::string& path, const DigestSetting& setting = {},
                     DataKind kind = DataKind::kText);
/// FileDigest::stored_hash, by what is remembered of it, or of the digest that is made.
uint64_t stored_hash_of(const std::string& path, const DigestSetting& setting);
/// The digests of several files; a path that is given twice is read once.
std::vector<FileDigest> digests_of(const std::vector<std::string>& paths,
                                   const DigestSetting& setting);

/// Whether a file holds the content of a digest. Where its stored bytes are those of then, or it is
/// remembered, the content is not read.
/// @param path_then  by which the file was named then: its ending tells how it was packed
bool holds(const FileDigest& before, const std::string& path_then, const std::string& path,
           const DigestSetting& setting = {});

/// Where the content first differs from that of a digest: "first differs in line 17", of bytes
/// "first differs in bytes 4,097 to 8,192". Nothing that is behind this place is compared. Empty
/// where the content is the same.
/// @param kind  as digest_of() had it
std::string first_difference(const FileDigest& before, ByteStream& now,
                             DataKind kind = DataKind::kText);

/// 16 hexadecimal digits, as hex64() has them. Throws std::invalid_argument for another text.
uint64_t hash_from_hex(std::string_view text);

/// FileDigest but for `stored_hash`, of content that comes in parts.
class DigestBuilder {
 public:
  /// @param kind  kText or kBytes
  explicit DigestBuilder(size_t most_blocks = kMostDigestBlocks, DataKind kind = DataKind::kText);
  ~DigestBuilder();
  void update(const char* data, size_t size);
  FileDigest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto::data
