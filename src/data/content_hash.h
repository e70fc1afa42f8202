#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stretto::data {

/// What tells, without reading it, that a file is still the same one. The time of the last change
/// of its status (ctime) tells of an edit whose modification time was put back. It is another one
/// too after the file was linked or moved, or given other rights.
struct FileStamp {
  uint64_t size = 0, mtime_ns = 0, ctime_ns = 0, inode = 0, device = 0;
  bool operator==(const FileStamp&) const = default;
};
FileStamp stamp_of(const struct stat& info);
/// Throws as open_bytes() does for a file that is missing or not regular.
FileStamp file_stamp(const std::filesystem::path& path);

/// A line that two stamps share only when they are equal.
std::string stamp_text(const FileStamp& stamp);
/// Whether a file of this stamp was neither modified nor changed in its status within the last two
/// seconds, when a second change could leave its stamp as it is.
bool is_settled(const FileStamp& stamp);
/// Whether what was read since `stamp` may be remembered under it: the file has it still, and
/// is_settled().
bool is_settled(const std::filesystem::path& path, const FileStamp& stamp);

/// XXH3-64 of each file's bytes, several files at once. What was hashed before is remembered in
/// `memory_dir`, one small file per path under a checksum, by its FileStamp, so that a second start
/// does not read a large corpus again; only a file that is_settled() is remembered.
/// @param memory_dir  empty = nothing is remembered
std::vector<uint64_t> content_hashes(const std::vector<std::filesystem::path>& files,
                                     const std::filesystem::path& memory_dir, int64_t threads);

/// The same of one file where it is known without reading it: remembered there, or by this process
/// (data/start_memory.h). Throws as file_stamp().
std::optional<uint64_t> find_content_hash(const std::filesystem::path& path,
                                          const std::filesystem::path& memory_dir);

/// Remembers a hash that was made of a file's bytes elsewhere, where that is allowed; this process
/// does so at any rate.
/// @param stamp  from before it was read
void remember_hash(const std::filesystem::path& path, const FileStamp& stamp, uint64_t hash,
                   const std::filesystem::path& memory_dir);

}  // namespace stretto::data
