#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/data_file.h"
#include "data/file_digest.h"
#include "data/file_list.h"

namespace stretto::data {

/// What one path of `[data]` holds, by its kind.
struct DataEntry {
  DataFile file;
  FileDigest digest = {};  ///< of text, of bytes, and of a manifest itself
  FileList list = {};      ///< the files of a tree, or those that a manifest names
};

/// A path as it is now. Throws as digest_of() and ListedFiles do.
DataEntry entry_of(const DataFile& file, const DigestSetting& setting);
/// Several of them; a text that is given twice is read once.
std::vector<DataEntry> entries_of(const std::vector<DataFile>& files, const DigestSetting& setting);

/// Another number where a file behind the path may be another one; nothing but a manifest is read.
/// Throws as entry_of().
uint64_t stamp_of_data(const DataFile& file, int64_t threads);

/// Whether two paths hold the same, whatever their names are.
bool is_same_content(const DataEntry& before, const DataEntry& now);

/// The file of now as it was looked at then: a program may look at more of a path than the one that
/// made the entry.
/// @return nothing where that cannot be; `problem` says why
std::optional<DataFile> looked_at_as(const DataEntry& before, DataFile now, std::string& problem);

/// What is_same_content() would say of a path now; a file whose stored bytes are those of then is
/// not read for it. @param now  by looked_at_as()
/// @return what it holds now where that was needed and is not the same
struct Comparison {
  bool is_same = false;
  std::optional<DataEntry> now = {};
};
Comparison compare(const DataEntry& before, const DataFile& now, const DigestSetting& setting);

/// Where it first differs, in words: a line, bytes, a file of a folder, a row of a manifest.
std::string first_difference(const DataEntry& before, const DataEntry& now,
                             const DigestSetting& setting);

}  // namespace stretto::data
