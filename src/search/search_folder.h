#pragma once

#include <filesystem>

#include "base/file.h"
#include "search/build_space.h"
#include "search/scheduler.h"

namespace stretto::search {

/// DIR/trials/N
std::filesystem::path trial_directory(const std::filesystem::path& directory, TrialId trial);
/// DIR/journal
std::filesystem::path journal_path(const std::filesystem::path& directory);
/// Whether DIR has a search that goes on, and how much of `search.points` it has used.
/// Throws Error(kBadData).
SpaceUse space_use(const std::filesystem::path& directory);

/// Makes DIR and DIR/trials, and takes the lock of DIR. Throws Error(kUsage) when DIR is no folder,
/// is a run folder, or another process searches in it; Error(kIo) when it cannot be written.
FileLock lock_search(const std::filesystem::path& directory);

/// For a search whose journal says nothing: a trial gets its folder only after its line in the
/// journal, so that a folder of a trial shows that the journal was lost or emptied. A new search
/// would take over trainings that it did not decide on. Throws Error(kBadData) then.
void require_no_trials(const std::filesystem::path& directory);

}  // namespace stretto::search
