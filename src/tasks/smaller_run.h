#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compress/stack_shape.h"
#include "experiment/experiment.h"

/// A run of a smaller model: layers, heads and feed-forward units of another run's Transformer are
/// taken out (compress/stack_parts.h).
namespace stretto::tasks {

/// What became of a stack.
struct SmallerStack {
  compress::StackShape before, after;
};

struct SmallerRunRequest {
  std::string run_directory;
  std::string checkpoint;  ///< as runs/choose_checkpoint.h reads it
  /// Of every stack of the model: an encoder and a decoder lose the same shares.
  compress::StackRemoval removal = {};
  /// Micro-batches of the training data whose gradients say how important a part is; 0 = the
  /// magnitudes of weights do, and no data are read.
  int64_t micro_batches = 0;
  /// The run's, without files that somebody else named (cli/foreign_paths.h); none: that of its
  /// config.toml.
  std::optional<experiment::Experiment> own = {};
  std::filesystem::path output = {};  ///< nothing is there, or an empty folder
  /// Writes what else belongs to the run, before it appears at its place. @param folder  as it
  /// stands until then
  std::function<void(const std::filesystem::path& folder, const std::vector<SmallerStack>& stacks)>
      add_files = {};
};

/// Writes a run folder with the smaller model as the checkpoint of step 0, its configuration and
/// the other run's tokenizer. It appears at its place when it is whole. `train.init_from` begins
/// with it; so do `eval` and `infer`. Masks of pruned weights go with it.
///
/// Throws Error(kUsage) where the model has no stack of Transformer layers, a share leaves nothing,
/// or its configuration cannot say what is left (experiment/smaller_model.h); as
/// runs::open_checkpoint() and checkpoint_experiment() do; Error(kIo).
std::vector<SmallerStack> write_smaller_run(const SmallerRunRequest& request);

}  // namespace stretto::tasks
