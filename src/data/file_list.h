#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/listed_files.h"

namespace stretto::data {

/// Texts one after the other.
class NameList {
 public:
  void add(std::string_view name);
  size_t size() const { return ends_.size(); }
  std::string_view operator[](size_t number) const;
  bool operator==(const NameList&) const = default;

 private:
  std::string text_;
  std::vector<uint64_t> ends_;
};

/// The content of many files in their order: a block for each file, or for as many files in a row
/// as keep the list within its bound.
struct FileList {
  uint64_t files = 0, bytes = 0;
  uint64_t hash = 0;  ///< of all names, sizes and contents
  uint64_t files_per_block = 1;
  NameList names;                ///< [blocks] the first of each; empty ones of a manifest
  std::vector<uint64_t> sizes;   ///< [blocks] in bytes
  std::vector<uint64_t> hashes;  ///< [blocks] of the content, or of all that a block has

  bool operator==(const FileList&) const = default;
};

/// A block for each file. @param files  hashed
/// A manifest has the names itself, and its list has none.
FileList list_of(const ListedFiles& files, DataKind kind);
/// The same with blocks of more files. @param list  with a block for each file
FileList coarsened(const FileList& list, uint64_t files_per_block);

/// Most bytes of all lists of a record: 1.28 million pictures with names of 30 characters take 25
/// MB, and have a block each.
inline constexpr size_t kMostListBytes = size_t{32} << 20;
/// Bytes of its blocks in a record, before base64.
size_t encoded_bytes(const FileList& list);

nlohmann::json list_to_json(const FileList& list);
/// Throws std::exception for another value, with what is wrong.
FileList list_from_json(const nlohmann::json& json, DataKind kind);

/// What has changed, with the first file by name: "b.jpg is new; in all 2 files changed, 1 new".
/// Empty where all is the same. @param now  with a block for each file
std::string tree_difference(const FileList& before, const FileList& now);
/// The same of files that a manifest names, whose text is the same: "line 17 names b.wav, which has
/// changed".
std::string manifest_difference(const FileList& before, const FileList& now,
                                const ListedFiles& files);

}  // namespace stretto::data
