#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::store {

/// Folder operations of the checkpoint protocol. All throw Error(kIo); each system call that
/// changes something has a failpoint `checkpoint.<stage>` before it, and is repeated when a signal
/// interrupts it.

/// Creates a folder, and those above it; an existing one is fine.
/// @return true when it was created
bool make_folder(const std::filesystem::path& path);

void rename_folder(const std::filesystem::path& from, const std::filesystem::path& to);

/// Puts `fresh` at the place of the existing folder `target` without a moment in which neither is
/// there. On file systems that cannot swap names the old one is set aside first under `.old-…`,
/// from where restore_replaced() brings it back after a crash.
/// @return where the old content is now
std::filesystem::path replace_folder(const std::filesystem::path& fresh,
                                     const std::filesystem::path& target);

/// What replace_folder() sets aside is called `.old-…`.
inline constexpr std::string_view kReplacedPrefix = ".old-";

/// Finishes or undoes every replace_folder() that a crash cut short in `parent`.
/// @param names  of what is in `parent`; those that replace_folder() never gave are left alone
void restore_replaced(const std::filesystem::path& parent, const std::vector<std::string>& names);

void sync_folder(const std::filesystem::path& path);

/// Removes a folder and what is in it, entry by entry; links are removed, not followed.
void remove_folder(const std::filesystem::path& path);
/// The same, its entry `last` behind all others: what a crash leaves of the folder still has it.
void remove_folder(const std::filesystem::path& path, std::string_view last);

/// A path in `parent` that nothing has: `<prefix><name>-<pid>-<count>`.
std::filesystem::path aside(const std::filesystem::path& parent, std::string_view prefix,
                            const std::string& name);

}  // namespace stretto::store
