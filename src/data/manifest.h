#pragma once

#include <string>
#include <vector>

#include "data/data_file.h"
#include "data/labelled/separated_records.h"

namespace stretto::data {

/// A path of a row as an absolute one, as the configuration has its own: a relative path is
/// relative to the folder of the manifest, `~/` is the home folder.
std::string path_beside(const std::string& manifest, const std::string& path);

/// The files that a manifest names, with absolute paths, in the order of its rows.
/// Throws what its reader throws, and Error(kBadData) with file and line for a row that names none.
std::vector<NamedFile> files_named_by(const DataFile& manifest);

/// The column of a manifest that names files.
struct PathColumn {
  std::string name = {};  ///< in the header, which is the first row; empty: there is no header
  int64_t number = 1;     ///< from 1, where there is no header
  SeparatedRecords::Kind format = SeparatedRecords::Kind::kTsv;
  char separator = '\0';             ///< 0: that of the format
  DataKind kind = DataKind::kBytes;  ///< of the files
};

/// The reader of a manifest of separated columns. Throws Error(kBadData), with file and line, for a
/// header without the column and for a row with too few; for the rest as SeparatedRecords does.
ManifestRows rows_with(const PathColumn& column);

}  // namespace stretto::data
