#include "data/data_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

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

constexpr int64_t kRecordFormat = 1;
constexpr size_t kMaxRecordBytes = size_t{64} << 20;
/// Blocks of all files of a record together, so that thousands of files make no large record.
constexpr size_t kMostRecordedBlocks = 16 * kMostDigestBlocks;
constexpr size_t kChangesNamed = 5;

/// What changes_since() compares of one key.
struct FilesOfKey {
  std::vector<const DataRecord::Entry*> before;
  std::vector<std::string> now;
};

bool is_content_of(const FileDigest& now, const FileDigest& before) {
  return now.hash == before.hash && now.bytes == before.bytes;
}

/// Where the number of files has changed: those that are new, and those that are gone.
void add_moves(const std::string& key, const FilesOfKey& files,
               const std::vector<FileDigest>& digests, std::vector<DataChange>& changes) {
  const size_t known = changes.size();
  for (size_t i = 0; i < files.now.size(); ++i) {
    const bool was_there = std::any_of(files.before.begin(), files.before.end(), [&](auto* entry) {
      return is_content_of(digests[i], entry->digest);
    });
    if (!was_there) changes.push_back({key, files.now[i], "is new"});
  }
  for (const auto* entry : files.before) {
    const bool is_there = std::any_of(digests.begin(), digests.end(), [&](const auto& digest) {
      return is_content_of(digest, entry->digest);
    });
    if (!is_there) changes.push_back({key, entry->file.path, "is no longer among the files"});
  }
  if (changes.size() > known) return;
  changes.push_back({key, files.now.empty() ? files.before.front()->file.path : files.now.front(),
                     "stands in a list of " + counted(std::ssize(files.now), "file") + ", it had " +
                         std::to_string(files.before.size())});
}

/// The changes where there are as many files as before: files whose content differs, or their
/// order.
void add_differences(const std::string& key, const FilesOfKey& files,
                     const std::vector<size_t>& changed, const std::vector<FileDigest>& digests,
                     std::vector<DataChange>& changes) {
  std::vector<uint64_t> before, now;
  for (const size_t i : changed) {
    before.push_back(files.before[i]->digest.hash);
    now.push_back(digests[i].hash);
  }
  std::sort(before.begin(), before.end());
  std::sort(now.begin(), now.end());
  if (before == now) {
    changes.push_back({key, files.now[changed.front()], "has another place in the list of files"});
    return;
  }
  for (const size_t i : changed) {
    const auto bytes = open_bytes(files.now[i]);
    std::string what = first_difference(files.before[i]->digest, *bytes);
    if (what.empty()) what = "is changing at this moment";
    changes.push_back({key, files.now[i], std::move(what)});
  }
}

void compare_key(const std::string& key, const FilesOfKey& files, const DigestSetting& setting,
                 std::vector<DataChange>& changes) {
  if (files.before.size() != files.now.size()) {
    return add_moves(key, files, digests_of(files.now, setting), changes);
  }
  std::vector<char> is_same(files.now.size());
  for_each_on_threads(files.now.size(), setting.threads, [&](size_t i) {
    const auto& [file, digest] = *files.before[i];
    is_same[i] = holds(digest, file.path, files.now[i], setting) ? 1 : 0;
  });
  std::vector<size_t> changed;
  for (size_t i = 0; i < is_same.size(); ++i) {
    if (is_same[i] == 0) changed.push_back(i);
  }
  if (changed.empty()) return;
  std::vector<FileDigest> digests(files.now.size());
  for (const size_t i : changed) digests[i] = digest_of(files.now[i], setting);
  add_differences(key, files, changed, digests, changes);
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

DataRecord record_of(const nlohmann::json& json) {
  DataRecord record{.owner = json.at("owner").get<std::string>(), .files = {}};
  for (const auto& entry : json.at("files")) {
    record.files.push_back(
        {.file = {entry.at("key").get<std::string>(), entry.at("path").get<std::string>()},
         .digest = digest_from_json(entry.at("digest"))});
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

}  // namespace

std::string DataChange::text() const {
  return (key.empty() ? "" : printable(key) + ": ") + printable(path, 4096) + ": " +
         printable(what);
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
  std::vector<std::string> paths;
  for (const auto& file : files) paths.push_back(file.path);
  auto digests = digests_of(paths, setting);
  DataRecord record{.owner = owner, .files = {}};
  const size_t room = kMostRecordedBlocks / std::max<size_t>(files.size(), 1);
  for (size_t i = 0; i < files.size(); ++i) {
    record.files.push_back({files[i], coarsened(std::move(digests[i]), std::max<size_t>(room, 1))});
  }
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
  for (const auto& file : files) of_key(file.key).now.push_back(file.path);
  for (const auto& entry : record.files) of_key(entry.file.key).before.push_back(&entry);
  std::vector<DataChange> changes;
  for (const auto& [key, both] : keys) compare_key(key, both, setting, changes);
  return changes;
}

std::string data_record_text(const DataRecord& record) {
  auto files = nlohmann::json::array(), accepted = nlohmann::json::array();
  for (const auto& [file, digest] : record.files) {
    files.push_back({{"key", file.key}, {"path", file.path}, {"digest", digest_to_json(digest)}});
  }
  for (const auto& [time, changes] : record.accepted) {
    accepted.push_back({{"time", time}, {"files", changes_json(changes)}});
  }
  return sealed({{"format", kRecordFormat},
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
    if (json.at("format") != kRecordFormat) throw std::invalid_argument("another format");
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
