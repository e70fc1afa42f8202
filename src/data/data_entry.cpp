#include "data/data_entry.h"

#include <utility>

#include "base/hash.h"
#include "data/byte_stream.h"
#include "data/content_hash.h"
#include "data/listed_files.h"

namespace stretto::data {
namespace {

bool has_list(DataKind kind) {
  return kind == DataKind::kTree || kind == DataKind::kManifest;
}

bool has_digest(DataKind kind) {
  return kind != DataKind::kTree;
}

FileList list_now(const DataFile& file, const DigestSetting& setting) {
  ListedFiles files(file, setting.threads);
  files.hash(setting);
  return list_of(files, file.kind);
}

/// A manifest itself is text.
DataKind kind_of_digest(DataKind kind) {
  return kind == DataKind::kBytes ? DataKind::kBytes : DataKind::kText;
}

bool is_same_digest(const FileDigest& before, const FileDigest& now) {
  return before.hash == now.hash && before.bytes == now.bytes;
}

}  // namespace

DataEntry entry_of(const DataFile& file, const DigestSetting& setting) {
  DataEntry entry{.file = file};
  if (has_digest(file.kind)) {
    entry.digest = digest_of(file.path, setting, kind_of_digest(file.kind));
  }
  if (has_list(file.kind)) entry.list = list_now(file, setting);
  return entry;
}

std::vector<DataEntry> entries_of(const std::vector<DataFile>& files,
                                  const DigestSetting& setting) {
  std::vector<std::string> texts;
  for (const auto& file : files) {
    if (file.kind == DataKind::kText) texts.push_back(file.path);
  }
  auto digests = digests_of(texts, setting);
  std::vector<DataEntry> entries;
  size_t text = 0;
  for (const auto& file : files) {
    if (file.kind == DataKind::kText) {
      entries.push_back({.file = file, .digest = std::move(digests[text++])});
    } else {
      entries.push_back(entry_of(file, setting));
    }
  }
  return entries;
}

uint64_t stamp_of_data(const DataFile& file, int64_t threads) {
  std::string text;
  if (has_digest(file.kind)) text = stamp_text(file_stamp(parse_input_path(file.path).file));
  if (has_list(file.kind)) text += "\n" + hex64(ListedFiles(file, threads).stamp());
  return xxh3_64(text);
}

bool is_same_content(const DataEntry& before, const DataEntry& now) {
  return is_same_digest(before.digest, now.digest) && before.list.hash == now.list.hash &&
         before.list.files == now.list.files;
}

std::optional<DataFile> looked_at_as(const DataEntry& before, DataFile now, std::string& problem) {
  const bool was_tree = before.file.kind == DataKind::kTree;
  const bool is_tree = now.kind == DataKind::kTree;
  if (was_tree != is_tree) {
    problem = was_tree ? "is read as a file, and was a folder" : "is a folder, and was a file";
    return std::nullopt;
  }
  if (before.file.kind == DataKind::kManifest && !now.rows) {
    problem = "is not read as a list of files any more";
    return std::nullopt;
  }
  now.kind = before.file.kind;
  return now;
}

Comparison compare(const DataEntry& before, const DataFile& now, const DigestSetting& setting) {
  if (now.kind == DataKind::kText) {
    return {.is_same = holds(before.digest, before.file.path, now.path, setting)};
  }
  DataEntry found = entry_of(now, setting);
  if (is_same_content(before, found)) return {.is_same = true};
  return {.is_same = false, .now = std::move(found)};
}

std::string first_difference(const DataEntry& before, const DataEntry& now,
                             const DigestSetting& setting) {
  const DataKind kind = now.file.kind;
  if (kind == DataKind::kTree) return tree_difference(before.list, now.list);
  if (kind == DataKind::kManifest && is_same_digest(before.digest, now.digest)) {
    return manifest_difference(before.list, now.list, ListedFiles(now.file, setting.threads));
  }
  const auto bytes = kind == DataKind::kBytes ? open_plain(parse_input_path(now.file.path).file)
                                              : open_bytes(now.file.path);
  return first_difference(before.digest, *bytes, kind_of_digest(kind));
}

}  // namespace stretto::data
