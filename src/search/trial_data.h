#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "data/folder_data.h"
#include "search/search_plan.h"

namespace stretto::search {

/// The data that the trials of a search read, in DIR/data.json. Trials are compared, so that none
/// trains on other data than those before it.
class TrialData {
 public:
  /// Throws as data::FolderData does.
  TrialData(const std::filesystem::path& directory, bool accept);

  /// Before a trial trains. Throws Error(kBadData) that names the files which have changed. A point
  /// without a sound configuration has no data.
  void require(const SearchPlan& plan, const Point& point);

 private:
  struct Files {
    std::vector<data::DataFile> files;
    data::DigestSetting setting;
  };

  data::FolderData data_;
  std::map<std::string, Files> known_;  // by the values of a point that name data
};

}  // namespace stretto::search
