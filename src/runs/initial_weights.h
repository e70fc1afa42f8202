#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "optim/arena.h"
#include "runs/taken_weights.h"
#include "store/checkpoint.h"

/// `train.init_from`: a run that begins with the weights of another one.
namespace stretto::runs {

/// The checkpoint that `train.init_from` names, opened and verified, and its run's tokenizer. Or
/// what was imported of a folder, as if it was one.
struct InitialRun {
  store::LoadedCheckpoint checkpoint;
  std::filesystem::path folder;                  ///< the run; empty: a checkpoint outside of a run
  std::map<std::string, std::string> tokenizer;  ///< name -> bytes; empty without a run
  std::string config = {};  ///< of what was imported; a run has its own in its folder
  std::shared_ptr<const void> owner = {};  ///< of the imported tensors' bytes

  /// The folder of the run where there is one, else of the checkpoint: for messages.
  const std::filesystem::path& place() const;
  /// The file of the weights, for messages; of what was imported, the folder.
  std::string weights_file() const;
};

/// How much of a checkpoint is read to open it: every byte, or what says names and shapes (of the
/// newest of a run then: all of them have the same).
enum class Reading : uint8_t { kAll, kHeads };

/// @param run_or_checkpoint  a run folder (its best checkpoint is taken, else the last) or the
///                           folder of one checkpoint, whose run is the folder that it lies in
/// Throws Error(kUsage) when there is no such folder, or when it is neither a checkpoint nor a run
/// that has one; Error(kBadData) when the checkpoint is damaged, another run's than the folder's,
/// or the run's tokenizer is not the one that it was trained with.
InitialRun open_initial_run(const std::filesystem::path& run_or_checkpoint,
                            Reading reading = Reading::kAll);

/// What is known of the tokenizer that the weights were trained with: name -> SHA-256. Empty when
/// neither the checkpoint nor a run beside it says anything.
std::map<std::string, std::string> tokenizer_of(const InitialRun& run);

/// Throws Error(kUsage) that names file and hashes when the tokenizer of a run that begins is not
/// the one that the weights were trained with: their rows would stand for other pieces.
/// @param tokenizer  hashes of the files of the run that begins (runs/provenance.h)
void require_tokenizer_of(const InitialRun& run,
                          const std::map<std::string, std::string>& tokenizer);

/// Which rows of the other run's tables the new run takes; asked only when there is no checkpoint
/// to go on from.
using MatchTables = std::function<std::vector<MatchedTable>(const InitialRun&)>;

/// Fills the arena with the weights of the run that `train.init_from` names. Throws as
/// load_some_weights() does (runs/taken_weights.h), and Error(kUsage) for another tokenizer.
/// @param tokenizer  of the run that begins, as in require_tokenizer_of()
/// @param match      empty: both tokenizers must be the same
/// @param taken      `train.init_only`; without entries all weights are taken, but for parts that
///                   may be replaced: the log lists those that begin anew, and what is left there
void initialise_from(const InitialRun& run, optim::Arena& arena,
                     const std::map<std::string, std::string>& tokenizer = {},
                     const MatchTables& match = {}, const TakenWeights& taken = {});

}  // namespace stretto::runs
