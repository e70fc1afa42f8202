#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "data/data_kind.h"

namespace stretto::data {

/// A file that a row of a manifest names.
struct NamedFile {
  int64_t line = 0;                  ///< of the manifest, from 1
  std::string path;                  ///< as it stands there, or as path_beside() makes it absolute
  DataKind kind = DataKind::kBytes;  ///< or kText, for a file that is read as lines
};

/// Reads a manifest from its first row to its last, and hands over each file that a row names. A
/// family gives the reader of its own data, so that there is one rule for what a row says. Called
/// from several threads at once.
using ManifestRows = std::function<void(const std::string& manifest,
                                        const std::function<void(const NamedFile&)>& take)>;

/// A file or a folder of data, by the key of the configuration that names it. A list has an entry
/// for each of its paths, in order.
struct DataFile {
  std::string key;   ///< "data.train"
  std::string path;  ///< as open_bytes() takes it; of a tree a folder
  DataKind kind = DataKind::kText;
  ManifestRows rows = {};  ///< of a manifest

  /// Rows are code, and are not compared.
  bool operator==(const DataFile& other) const {
    return key == other.key && path == other.path && kind == other.kind;
  }
};

}  // namespace stretto::data
