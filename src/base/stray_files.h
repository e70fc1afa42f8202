#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace stretto {

/// ".tmp-<pid>-<count>": what write_file_atomic() appends to the name of a file while it writes it.
std::string temporary_suffix(pid_t process, uint64_t count);

/// Removes from `folder` the temporary files of killed processes.
///
/// One is removed when its name is that of a file which `is_own` knows and a temporary_suffix(), it
/// is a regular file of this user, no other process of this host has the number, and no process has
/// a lock on it: a living writer holds one, on another host that shares the disk too.
///
/// Says nothing and never throws; a folder that is not there is empty.
/// @param is_own  of the name that the file was to have, "report.html"
void remove_stray_files(const std::filesystem::path& folder,
                        const std::function<bool(const std::string&)>& is_own);

}  // namespace stretto
