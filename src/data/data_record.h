#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_entry.h"

namespace stretto::data {

/// How one file differs from what is recorded of it.
struct DataChange {
  std::string key, path;
  std::string what;  ///< "first differs in line 17"

  std::string text() const;  ///< "data.train: a.tsv: first differs in line 17"
  bool operator==(const DataChange&) const = default;
};
/// All of them in one paragraph; of many, the first few and how many more there are.
std::string text_of(const std::vector<DataChange>& changes);

/// Changes that were accepted (`--accept-data`), and when.
struct AcceptedChanges {
  std::string time;
  std::vector<DataChange> changes;
};

/// `data.json`: the data that a folder's results come from, as digests of their content. A file
/// under another path with the same content is the same. A folder of files and the files behind a
/// manifest are one entry each.
///
/// A record of text alone has the form that earlier versions read. One with another kind has a form
/// that they refuse, since they would compare none of it.
struct DataRecord {
  using Entry = DataEntry;
  std::string owner;  ///< id of the run; empty for a folder with several
  std::vector<Entry> files;
  std::vector<AcceptedChanges> accepted = {};  ///< of a folder with several runs
};

inline constexpr const char* kDataRecordFile = "data.json";

/// Digests of files as they are now. Throws as entry_of() does.
DataRecord record_data(const std::string& owner, const std::vector<DataFile>& files,
                       const DigestSetting& setting);

/// What differs between the record and the files now, in the order of the files: content, files
/// that came or went, their order. Throws as entry_of() does.
std::vector<DataChange> changes_since(const DataRecord& record, const std::vector<DataFile>& files,
                                      const DigestSetting& setting);

/// The text of data.json, under a checksum, and back. Throws Error(kBadData) that names `where` for
/// what is damaged, and for a record of another owner.
std::string data_record_text(const DataRecord& record);
DataRecord parse_data_record(std::string_view text, const std::string& where,
                             const std::string& owner);

/// Nothing where the folder has none. Throws as parse_data_record() does.
std::optional<DataRecord> read_data_record(const std::filesystem::path& directory,
                                           const std::string& owner);
/// Atomic and durable. Throws Error(kIo).
void write_data_record(const std::filesystem::path& directory, const DataRecord& record);

/// Words of every error about changed data: by them a search knows it among the failures of its
/// trials.
inline constexpr std::string_view kDataHaveChanged = "the data have changed since";
/// Throws Error(kBadData) with all changes; does nothing where there are none.
/// @param since  "the run in runs/a was trained"
void refuse_changes(const std::vector<DataChange>& changes, const std::string& since);

}  // namespace stretto::data
