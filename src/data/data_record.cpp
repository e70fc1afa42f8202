#include "data/data_record.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "data/on_threads.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTextFormat = 1;  // that all versions read
constexpr int64_t kKindsFormat = 2;
constexpr size_t kMaxRecordBytes = size_t{64} << 20;
/// Blocks of all files of a record together, so that thousands of files make no large record.
constexpr size_t kMostRecordedBlocks = 16 * kMostDigestBlocks;
constexpr size_t kChangesNamed = 5;
constexpr uint64_t kMostFilesInBlock = uint64_t{1} << 32;

/// What changes_since() compares of one key.
struct FilesOfKey {
  std::vector<const DataRecord::Entry*> before;
  std::vector<DataFile> now;
};

/// Where the number of files has changed: those that are new, and those that are gone.
void add_moves(const std::string& key, const FilesOfKey& files,
               const std::vector<DataEntry>& entries, std::vector<DataChange>& changes) {
  const size_t known = changes.size();
  for (const auto& now : entries) {
    const bool was_there = std::any_of(files.before.begin(), files.before.end(),
                                       [&](auto* entry) { return is_same_content(now, *entry); });
    if (!was_there) changes.push_back({key, now.file.path, "is new"});
  }
  for (const auto* entry : files.before) {
    const bool is_there = std::any_of(entries.begin(), entries.end(), [&](const auto& now) {
      return is_same_content(now, *entry);
    });
    if (!is_there) changes.push_back({key, entry->file.path, "is no longer among the files"});
  }
  if (changes.size() > known) return;
  changes.push_back({key,
                     files.now.empty() ? files.before.front()->file.path : files.now.front().path,
                     "stands in a list of " + counted(std::ssize(files.now), "file") + ", it had " +
                         std::to_string(files.before.size())});
}

/// What identifies the content of an entry.
std::pair<uint64_t, uint64_t> content_of(const DataEntry& entry) {
  return {entry.digest.hash, entry.list.hash};
}

/// A file whose content is not what it was.
struct ChangedFile {
  const DataRecord::Entry* before = nullptr;
  DataEntry now;
};

/// The changes where there are as many files as before: files whose content differs, or their
/// order.
void add_differences(const std::string& key, const std::vector<ChangedFile>& files,
                     const DigestSetting& setting, std::vector<DataChange>& changes) {
  std::vector<std::pair<uint64_t, uint64_t>> before, now;
  for (const auto& file : files) {
    before.push_back(content_of(*file.before));
    now.push_back(content_of(file.now));
  }
  std::sort(before.begin(), before.end());
  std::sort(now.begin(), now.end());
  if (before == now) {
    changes.push_back({key, files.front().now.file.path, "has another place in the list of files"});
    return;
  }
  for (const auto& file : files) {
    std::string what = first_difference(*file.before, file.now, setting);
    if (what.empty()) what = "is changing at this moment";
    changes.push_back({key, file.now.file.path, std::move(what)});
  }
}

void compare_key(const std::string& key, const FilesOfKey& files, const DigestSetting& setting,
                 std::vector<DataChange>& changes) {
  if (files.before.size() != files.now.size()) {
    return add_moves(key, files, entries_of(files.now, setting), changes);
  }
  std::vector<std::pair<const DataRecord::Entry*, DataFile>> pairs;
  for (size_t i = 0; i < files.now.size(); ++i) {
    std::string problem;
    if (auto now = looked_at_as(*files.before[i], files.now[i], problem)) {
      pairs.emplace_back(files.before[i], std::move(*now));
    } else {
      changes.push_back({key, files.now[i].path, std::move(problem)});
    }
  }
  std::vector<Comparison> compared(pairs.size());
  for_each_on_threads(pairs.size(), setting.threads, [&](size_t i) {
    compared[i] = compare(*pairs[i].first, pairs[i].second, setting);
  });
  std::vector<ChangedFile> changed;
  for (size_t i = 0; i < pairs.size(); ++i) {
    auto& [is_same, now] = compared[i];
    if (is_same) continue;
    changed.push_back({pairs[i].first, now ? std::move(*now) : entry_of(pairs[i].second, setting)});
  }
  if (!changed.empty()) add_differences(key, changed, setting, changes);
}

nlohmann::json changes_json(const std::vector<DataChange>& changes) {
  auto list = nlohmann::json::array();
  for (const auto& one : changes) {
    list.push_back({{"key", one.key}, {"path", one.path}, {"change", one.what}});
  }
  return list;
}

std::string sealed(nlohmann::json json) {
  json["checksum"] = hex64(xxh3_64(json.dump()));
  return json.dump(1) + "\n";
}

[[noreturn]] void throw_damaged_record(const std::string& where, const std::string& what) {
  throw Error(ExitCode::kBadData,
              where + ": " + what + ", so nobody knows whether the data have changed",
              "put the file back from a copy; --accept-data goes on with the data as they are");
}

constexpr std::array<std::pair<DataKind, const char*>, 4> kKindNames{
    {{DataKind::kText, "text"},
     {DataKind::kBytes, "bytes"},
     {DataKind::kTree, "tree"},
     {DataKind::kManifest, "manifest"}}};

const char* name_of(DataKind kind) {
  return std::find_if(kKindNames.begin(), kKindNames.end(),
                      [&](const auto& one) { return one.first == kind; })
      ->second;
}

DataKind kind_named(const std::string& name) {
  const auto* found = std::find_if(kKindNames.begin(), kKindNames.end(),
                                   [&](const auto& one) { return one.second == name; });
  if (found == kKindNames.end()) throw std::invalid_argument("a kind that is not known");
  return found->first;
}

bool has_text_alone(const DataRecord& record) {
  return std::all_of(record.files.begin(), record.files.end(),
                     [](const auto& entry) { return entry.file.kind == DataKind::kText; });
}

nlohmann::json entry_json(const DataEntry& entry, bool with_kind) {
  const auto& [key, path, kind, rows] = entry.file;
  nlohmann::json json{{"key", key}, {"path", path}};
  if (with_kind) json["kind"] = name_of(kind);
  if (kind != DataKind::kTree) json["digest"] = digest_to_json(entry.digest);
  if (kind == DataKind::kTree || kind == DataKind::kManifest) {
    json["list"] = list_to_json(entry.list);
  }
  return json;
}

DataEntry entry_from(const nlohmann::json& json, bool with_kind) {
  DataEntry entry{.file = {json.at("key").get<std::string>(), json.at("path").get<std::string>()}};
  auto& kind = entry.file.kind;
  if (with_kind) kind = kind_named(json.at("kind").get<std::string>());
  if (kind != DataKind::kTree) entry.digest = digest_from_json(json.at("digest"));
  if (kind == DataKind::kTree || kind == DataKind::kManifest) {
    entry.list = list_from_json(json.at("list"), kind);
  }
  return entry;
}

DataRecord record_of(const nlohmann::json& json) {
  DataRecord record{.owner = json.at("owner").get<std::string>(), .files = {}};
  const auto& format = json.at("format");
  if (format != kTextFormat && format != kKindsFormat) {
    throw std::invalid_argument("another format");
  }
  for (const auto& entry : json.at("files")) {
    record.files.push_back(entry_from(entry, format == kKindsFormat));
  }
  for (const auto& entry : json.at("accepted")) {
    AcceptedChanges accepted{.time = entry.at("time").get<std::string>(), .changes = {}};
    for (const auto& one : entry.at("files")) {
      accepted.changes.push_back({one.at("key").get<std::string>(),
                                  one.at("path").get<std::string>(),
                                  one.at("change").get<std::string>()});
    }
    record.accepted.push_back(std::move(accepted));
  }
  return record;
}

size_t list_bytes(const DataRecord& record, uint64_t files_per_block) {
  size_t bytes = 0;
  for (const auto& entry : record.files) {
    bytes += files_per_block == 1 ? encoded_bytes(entry.list)
                                  : encoded_bytes(coarsened(entry.list, files_per_block));
  }
  return bytes;
}

/// Takes more files together into a block, until all lists of the record are within their bound.
void bound_lists(DataRecord& record) {
  uint64_t per_block = 1;
  while (per_block < kMostFilesInBlock && list_bytes(record, per_block) > kMostListBytes) {
    per_block *= 2;
  }
  for (auto& entry : record.files) {
    if (per_block > 1) entry.list = coarsened(entry.list, per_block);
  }
}

}  // namespace

std::string DataChange::text() const {
  constexpr size_t kMostShown = 4096;  // names of files are among the words
  return (key.empty() ? "" : printable(key) + ": ") + printable(path, kMostShown) + ": " +
         printable(what, 2 * kMostShown);
}

std::string text_of(const std::vector<DataChange>& changes) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(changes.size(), kChangesNamed); ++i) {
    texts.push_back(changes[i].text());
  }
  const auto more = static_cast<int64_t>(changes.size()) - std::ssize(texts);
  return join(texts, "; ") + (more > 0 ? "; and " + counted(more, "more file", "more files") : "");
}

DataRecord record_data(const std::string& owner, const std::vector<DataFile>& files,
                       const DigestSetting& setting) {
  DataRecord record{.owner = owner, .files = entries_of(files, setting)};
  const size_t room = kMostRecordedBlocks / std::max<size_t>(files.size(), 1);
  for (auto& entry : record.files) {
    entry.digest = coarsened(std::move(entry.digest), std::max<size_t>(room, 1));
  }
  bound_lists(record);
  return record;
}

std::vector<DataChange> changes_since(const DataRecord& record, const std::vector<DataFile>& files,
                                      const DigestSetting& setting) {
  std::vector<std::pair<std::string, FilesOfKey>> keys;
  const auto of_key = [&](const std::string& key) -> FilesOfKey& {
    const auto found = std::find_if(keys.begin(), keys.end(),
                                    [&](const auto& known) { return known.first == key; });
    return found != keys.end() ? found->second : keys.emplace_back(key, FilesOfKey{}).second;
  };
  for (const auto& file : files) of_key(file.key).now.push_back(file);
  for (const auto& entry : record.files) of_key(entry.file.key).before.push_back(&entry);
  std::vector<DataChange> changes;
  for (const auto& [key, both] : keys) compare_key(key, both, setting, changes);
  return changes;
}

std::string data_record_text(const DataRecord& record) {
  auto files = nlohmann::json::array(), accepted = nlohmann::json::array();
  const bool with_kinds = !has_text_alone(record);
  for (const auto& entry : record.files) files.push_back(entry_json(entry, with_kinds));
  for (const auto& [time, changes] : record.accepted) {
    accepted.push_back({{"time", time}, {"files", changes_json(changes)}});
  }
  return sealed({{"format", with_kinds ? kKindsFormat : kTextFormat},
                 {"owner", record.owner},
                 {"files", std::move(files)},
                 {"accepted", std::move(accepted)}});
}

DataRecord parse_data_record(std::string_view text, const std::string& where,
                             const std::string& owner) {
  DataRecord record;
  try {
    auto json = parse_json(text, where, kMaxRecordBytes);
    const auto checksum = json.at("checksum").get<std::string>();
    json.erase("checksum");
    if (checksum != hex64(xxh3_64(json.dump()))) {
      throw std::invalid_argument("its checksum is not that of its content");
    }
    record = record_of(json);
  } catch (const std::exception& error) {
    throw_damaged_record(where, "is damaged (" + printable(error.what()) + ")");
  }
  if (record.owner != owner) throw_damaged_record(where, "belongs to another run");
  return record;
}

std::optional<DataRecord> read_data_record(const fs::path& directory, const std::string& owner) {
  const fs::path path = directory / kDataRecordFile;
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(path, ignored))) return std::nullopt;
  return parse_data_record(read_file(path, kMaxRecordBytes), path.string(), owner);
}

void write_data_record(const fs::path& directory, const DataRecord& record) {
  const fs::path path = directory / kDataRecordFile;
  if (const int failed = failpoint("data_record.write")) {
    throw_io_error("cannot write", path, failed);
  }
  write_file_atomic(path, data_record_text(record));
}

void refuse_changes(const std::vector<DataChange>& changes, const std::string& since) {
  if (changes.empty()) return;
  throw Error(ExitCode::kBadData,
              std::string(kDataHaveChanged) + " " + since + ": " + text_of(changes),
              "put the files back as they were, or train into another folder with --run; "
              "--accept-data goes on with the files as they are");
}

}  // namespace stretto::data
