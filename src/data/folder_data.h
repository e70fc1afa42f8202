#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/data_record.h"

namespace stretto::data {

/// The data of several runs whose scores are compared, in `DIR/data.json`: those that begin later
/// must train on the same.
///
/// A file that was not asked for before is recorded. What a session accepts is what has changed
/// before it began; a file that changes while it goes on is refused in any case.
class FolderData {
 public:
  /// @param what    the folder in words: "the search in DIR began"
  /// @param accept  goes on with files that have changed, and notes them
  /// Throws Error(kBadData) for a damaged record, unless `accept`.
  FolderData(std::filesystem::path directory, std::string what, bool accept);

  /// Throws Error(kBadData) that names the files which have changed, and as entry_of() does. Costs
  /// a look at time and size of each file that it has seen before.
  void require(const std::vector<DataFile>& files, const DigestSetting& setting);

  const std::vector<AcceptedChanges>& accepted() const { return record_.accepted; }

 private:
  /// What of a look may be accepted, and what may not.
  struct Found {
    std::vector<DataChange> accepted, refused;
  };
  void look_at(const DataFile& file, const DigestSetting& setting, Found& found);
  void accept(const std::vector<DataChange>& changes);

  std::filesystem::path directory_;
  std::string what_;
  bool accept_ = false;
  DataRecord record_;
  bool is_new_ = false;                   ///< what is in memory is not in the file
  std::map<std::string, uint64_t> seen_;  ///< stamps in this session, by key and path
};

}  // namespace stretto::data
