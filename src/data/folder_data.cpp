#include "data/folder_data.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/system_info.h"

namespace stretto::data {

namespace fs = std::filesystem;

FolderData::FolderData(fs::path directory, std::string what, bool accept)
    : directory_(std::move(directory)), what_(std::move(what)), accept_(accept) {
  try {
    if (auto found = read_data_record(directory_, "")) record_ = std::move(*found);
  } catch (const Error& error) {
    if (!accept_ || error.code() != ExitCode::kBadData) throw;
    FolderData::accept({{"", (directory_ / kDataRecordFile).string(),
                         "is damaged: nobody knows whether the data have changed"}});
  }
}

void FolderData::require(const std::vector<DataFile>& files, const DigestSetting& setting) {
  Found found;
  for (const auto& file : files) look_at(file, setting, found);
  refuse_changes(found.refused, what_);
  if (!found.accepted.empty()) accept(found.accepted);
  if (std::exchange(is_new_, false)) write_data_record(directory_, record_);
}

void FolderData::look_at(const DataFile& file, const DigestSetting& setting, Found& found) {
  const uint64_t stamp = stamp_of_data(file, setting.threads);
  const std::string name = file.key + "\n" + file.path;
  const auto seen = seen_.find(name);
  const bool is_first_look = seen == seen_.end();
  const auto entry =
      std::find_if(record_.files.begin(), record_.files.end(), [&](const auto& known) {
        return known.file.key == file.key && known.file.path == file.path;
      });
  if (entry == record_.files.end()) {
    record_.files.push_back(record_data("", {file}, setting).files.front());
    is_new_ = true;
  } else if (is_first_look || seen->second != stamp) {
    const auto changes = changes_since({.owner = "", .files = {*entry}}, {file}, setting);
    const bool accepts = accept_ && is_first_look;
    auto& list = accepts ? found.accepted : found.refused;
    list.insert(list.end(), changes.begin(), changes.end());
    if (!changes.empty() && !accepts) return;  // the next look finds it again
    if (!changes.empty()) {
      *entry = record_data("", {file}, setting).files.front();
      is_new_ = true;
    }
  }
  seen_.insert_or_assign(name, stamp);
}

void FolderData::accept(const std::vector<DataChange>& changes) {
  log::warn("goes on with data that have changed since " + what_ + " (--accept-data): " +
            text_of(changes) + "; results before and after are of different data");
  record_.accepted.push_back({utc_now(), changes});
  is_new_ = true;
}

}  // namespace stretto::data
