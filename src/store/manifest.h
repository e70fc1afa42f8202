#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace stretto::store {

/// Version of the checkpoint format: raised when an older program would misread what is written,
/// not for keys that it may leave unread. All versions keep `format_version` and the checksum at
/// the end, so that a newer manifest can be told from a damaged one and is refused with both
/// numbers.
inline constexpr int64_t kFormatVersion = 1;

inline constexpr std::string_view kManifestName = "manifest.json";

/// What a file of a checkpoint must be.
struct ManifestFile {
  std::string name;                            ///< letters, digits, `.`, `_`, `-`: never a path
  uint64_t size = 0;                           ///< bytes
  std::string sha256;                          ///< of the whole file, as sha256sum prints it
  std::string header_sha256;                   ///< of the bytes before the data; safetensors only
  std::map<std::string, std::string> tensors;  ///< tensor -> XXH3-64 in hex; safetensors only
};

/// A whole checkpoint, but of a later Stretto: it must be neither skipped nor moved aside.
class NewerFormat : public Error {
 public:
  using Error::Error;
};

/// What a checkpoint was written by, and with which tokenizers; for people, and for those who go on
/// from it. Empty or 0 in checkpoints that do not say it, as the first ones did not.
struct Provenance {
  int64_t world_size = 0;  ///< processes that trained
  std::string stretto;     ///< version of the program
  std::string libtorch;    ///< and of its libtorch
  /// File of `RUN/tokenizer/` -> SHA-256, as sha256sum prints it.
  std::map<std::string, std::string> tokenizer;

  bool operator==(const Provenance&) const = default;
};

/// manifest.json: the last file that is written, so that a folder with it is complete.
struct Manifest {
  int64_t format_version = kFormatVersion;
  int64_t step = 0;
  std::string run_id, config_hash;
  Provenance provenance;
  std::vector<ManifestFile> files;

  /// JSON whose last key is the SHA-256 of all before it.
  std::string to_json() const;
  /// Throws Error(kBadData) for anything that to_json() could not have written, NewerFormat
  /// (kBadData too) for a newer format.
  static Manifest from_json(std::string_view bytes, std::string_view where);
  /// That of a checkpoint's folder. Throws Error(kBadData) when it is missing, no regular file, or
  /// as from_json() does; Error(kIo) when it cannot be read.
  static Manifest read(const std::filesystem::path& checkpoint);
};

}  // namespace stretto::store
