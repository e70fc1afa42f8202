#pragma once

#include <cstdint>
#include <string>

#include "experiment/experiment.h"
#include "experiment/family_export.h"
#include "runs/merged_lora.h"
#include "runs/run_folder.h"
#include "store/checkpoint.h"
#include "tasks/family.h"
#include "tasks/requests.h"

namespace stretto::tasks {

/// A run that `stretto export` writes as a model of another program, opened.
struct ExportedRun {
  runs::RunFolder folder;
  Assets assets;
  store::LoadedCheckpoint checkpoint;
  experiment::Experiment experiment;  ///< describes the checkpoint's model

  /// Throws Error(kBadData) unless the weights were trained with these files.
  /// @param files  of `assets`: those that the written folder depends on
  void require_same_tokenizer(const Assets& files) const;
  /// Whether the checkpoint stores matrices as codes of few bits.
  bool has_packed_weights() const;
  /// The fewest bits that a matrix is stored with; 32 where none is packed. Throws Error(kBadData)
  /// for broken ones.
  int64_t fewest_bits() const;
  /// The checkpoint's, with LoRA merged. They look into this object.
  runs::MadeWeights weights() const;
};

/// Throws as runs::open_checkpoint() and checkpoint_experiment().
ExportedRun open_exported_run(const ExportRequest& request);

/// How the matrices are stored in the format that is asked for. Throws Error(kUsage) where that has
/// no such weights.
experiment::StoredWeights stored_weights(const ExportedRun& run, const ExportRequest& request);

/// Throws Error(kUsage) for a problem: why the format that is asked for cannot express the model.
/// Empty = none.
void require_expressed(const ExportRequest& request, const std::string& problem);

}  // namespace stretto::tasks
