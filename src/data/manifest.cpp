#include "data/manifest.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/load.h"
#include "data/byte_stream.h"

namespace stretto::data {
namespace {

constexpr const char* kNameAFile = "each row of a manifest names a file; look at this one";

std::string place_in(const std::string& manifest, int64_t line) {
  return manifest + ":" + std::to_string(line);
}

/// The place of a column in the fields of a row.
size_t column_in(const std::vector<std::string>& header, const PathColumn& column,
                 const std::string& manifest) {
  const auto found = std::find(header.begin(), header.end(), column.name);
  if (found != header.end()) return static_cast<size_t>(found - header.begin());
  throw Error(ExitCode::kBadData,
              place_in(manifest, 1) + ": the header has no column `" + printable(column.name) + "`",
              "it has " + printable(join(header, ", "), 1000));
}

void read_column(const PathColumn& column, const std::string& manifest,
                 const std::function<void(const NamedFile&)>& take) {
  SeparatedRecords records(LineReader(manifest), column.format, column.separator);
  std::vector<std::string> fields;
  auto at = static_cast<size_t>(column.number - 1);
  if (!column.name.empty() && records.next(fields)) at = column_in(fields, column, manifest);
  while (records.next(fields)) {
    const int64_t line = records.line_number();
    if (at >= fields.size()) {
      throw Error(ExitCode::kBadData,
                  place_in(manifest, line) + ": the row has " +
                      counted(std::ssize(fields), "column") + ", and column " +
                      std::to_string(at + 1) + " names the file",
                  kNameAFile);
    }
    take({.line = line, .path = fields[at], .kind = column.kind});
  }
}

}  // namespace

std::string path_beside(const std::string& manifest, const std::string& path) {
  return config::absolute_path(path, parse_input_path(manifest).file.parent_path());
}

std::vector<NamedFile> files_named_by(const DataFile& manifest) {
  std::vector<NamedFile> files;
  manifest.rows(manifest.path, [&](NamedFile file) {
    if (file.path.empty()) {
      throw Error(ExitCode::kBadData, place_in(manifest.path, file.line) + ": names no file",
                  kNameAFile);
    }
    file.path = path_beside(manifest.path, file.path);
    files.push_back(std::move(file));
  });
  return files;
}

ManifestRows rows_with(const PathColumn& column) {
  return [column](const std::string& manifest, const std::function<void(const NamedFile&)>& take) {
    read_column(column, manifest, take);
  };
}

}  // namespace stretto::data
