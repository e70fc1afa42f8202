#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runs/checkpointer.h"
#include "runs/choose_checkpoint.h"

namespace stretto::runs {

/// Mean of the weights of several checkpoints, summed in fp32 in the order given (fairseq's way),
/// written as the checkpoint `RUN/checkpoints/<name>` with a model file only, and masks where the
/// newest of them has some: what is pruned there is zero in the mean too. Another process may train
/// in the folder meanwhile.
///
/// Throws Error(kUsage) for an empty list, Error(kBadData) when tensors do not match or one of the
/// checkpoints is damaged: these were asked for, and no others.
/// @return the folder written
std::filesystem::path average_checkpoints(const std::filesystem::path& run_directory,
                                          const std::vector<std::filesystem::path>& checkpoints,
                                          const RunIdentity& identity, const std::string& name);

/// The same for the newest `count` steps that are whole: one that is damaged is named with a
/// warning and left out, and the next older one takes its place. Fewer are taken, with a warning,
/// when there are fewer. Throws Error(kUsage) when there is none, Error(kBadData) when none is
/// whole.
std::filesystem::path average_last_checkpoints(const std::filesystem::path& run_directory,
                                               int64_t count, const RunIdentity& identity,
                                               const std::string& name);

}  // namespace stretto::runs
