#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "optim/arena.h"
#include "train/checkpointer.h"

namespace stretto::train {

/// Mean of the weights of several checkpoints, summed in fp32 in the order given (fairseq's way),
/// written as the checkpoint `RUN/checkpoints/<name>` with a model file only.
///
/// Throws Error(kUsage) for an empty list, Error(kBadData) when tensors do not match or one of the
/// checkpoints is damaged: somebody wanted these and no others.
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

/// Folder of a checkpoint that a user named: "best", "last", a step, or a name such as "averaged";
/// empty = best, else last. "last" is the newest that verifies; one that is damaged is named with a
/// warning. Nothing is written or renamed. Throws Error(kUsage) that lists what there is,
/// Error(kBadData) when there are checkpoints but none is whole.
std::filesystem::path find_checkpoint(const std::filesystem::path& run_directory,
                                      const std::string& selector);

/// Several, separated by commas: an ensemble.
std::vector<std::filesystem::path> find_checkpoints(const std::filesystem::path& run_directory,
                                                    const std::string& selectors);

/// The same, opened and verified. When none was named and the best is damaged, the last takes its
/// place with a warning; one that was named and is damaged is Error(kBadData). One of a later
/// Stretto is never passed over: store::NewerFormat.
store::LoadedCheckpoint open_checkpoint(const std::filesystem::path& run_directory,
                                        const std::string& selector);
std::vector<store::LoadedCheckpoint> open_checkpoints(const std::filesystem::path& run_directory,
                                                      const std::string& selectors);

/// Weights of another run (its best checkpoint) or of one checkpoint folder, for fine-tuning.
/// @param tokenizer  hashes of the new run's; a warning when the weights learnt another one, since
///                   their embeddings then stand for other pieces
void initialise_from(const std::filesystem::path& run_or_checkpoint, optim::Arena& arena,
                     const std::map<std::string, std::string>& tokenizer = {});

/// Whether initialise_from() would find weights that fit, by their names and shapes: heads of files
/// are read, no weight. Throws as it does.
void require_weights_fit(const std::filesystem::path& run_or_checkpoint, const optim::Arena& arena);

}  // namespace stretto::train
