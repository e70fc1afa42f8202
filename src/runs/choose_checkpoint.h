#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "store/checkpoint.h"

/// Which checkpoint a user means.
///
/// A selector is one of
///  - nothing: the best, else the last;
///  - `best`, `last`: the last is the newest that verifies; what is damaged is named in a warning;
///  - `152`: the run's checkpoint of that step;
///  - `averaged`: the run's checkpoint of that name, `step_00000152` too;
///  - `a/path`: a checkpoint's folder anywhere, or a run's: then its best, else its last.
///
/// A word with a `/` is a path. A word without one is a path when the run has no checkpoint of that
/// name and a folder has it. A list has commas between its selectors, none of them empty; a list
/// that is an existing path as a whole is that path.
///
/// Nothing is written or renamed. Errors: Error(kUsage) for what is not there, with a list of what
/// is; Error(kBadData) for what is damaged, and for a checkpoint of another run in a run's folder.
namespace stretto::runs {

/// The folder of a checkpoint.
std::filesystem::path find_checkpoint(const std::filesystem::path& run_directory,
                                      const std::string& selector);
std::vector<std::filesystem::path> find_checkpoints(const std::filesystem::path& run_directory,
                                                    const std::string& selectors);

/// The same, opened and verified, without what the optimizer keeps (CheckpointPart::kModel). When
/// none was named and the best is damaged, the last takes its place with a warning; one that was
/// named and is damaged is Error(kBadData). One of a later Stretto is never passed over:
/// store::NewerFormat.
store::LoadedCheckpoint open_checkpoint(const std::filesystem::path& run_directory,
                                        const std::string& selector);
std::vector<store::LoadedCheckpoint> open_checkpoints(const std::filesystem::path& run_directory,
                                                      const std::string& selectors);

/// The newest checkpoints of a run whose models are whole, newest first, at most `count`. What is
/// damaged is named with a warning, and the reason is added to `broken`.
std::vector<store::LoadedCheckpoint> newest_checkpoints(const std::filesystem::path& run_directory,
                                                        int64_t count,
                                                        std::vector<std::string>& broken);

/// Error(kBadData) when some are `broken`, else Error(kUsage): there is no checkpoint.
[[noreturn]] void throw_no_whole_checkpoint(const std::filesystem::path& run_directory,
                                            const std::vector<std::string>& broken);

/// Whether a folder is a checkpoint's, whole or damaged.
bool is_checkpoint(const std::filesystem::path& directory);

/// The run folder in whose `checkpoints` this one lies; empty when it lies elsewhere.
std::filesystem::path run_of(const std::filesystem::path& checkpoint);

/// A checkpoint is of the run in whose folder it lies, or was put there. Throws Error(kBadData)
/// naming both runs, and what to do, when it is not.
void require_own_run(const store::LoadedCheckpoint& checkpoint);

}  // namespace stretto::runs
