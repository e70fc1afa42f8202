#pragma once

#include <cstdint>
#include <filesystem>

#include "compress/masks.h"
#include "compress/quantise.h"
#include "runs/checkpointer.h"
#include "store/checkpoint.h"
#include "store/quantised_plan.h"

/// The checkpoint of a compressed run: a model file with packed tensors alone, without optimizer.
namespace stretto::runs {

/// The size of its model file to the byte, before a weight is rounded.
/// @param step  of the checkpoint that is compressed
uint64_t packed_model_bytes(const store::QuantPlan& plan, const RunIdentity& identity,
                            int64_t step);

/// Writes it into the folder of another run, under the step of the checkpoint that was compressed;
/// what `from` says of its training goes with it. Durable when it returns.
/// @param identity  of the run that is written
/// @param masks     of pruned weights, which the file has as zeros: a run that begins with this one
///                  keeps them (runs/stored_masks.h); a bit for each weight of a pruned tensor
/// Throws Error(kIo), Error(kInternal) when the file is not as large as `plan` said.
/// @return the folder of the checkpoint
std::filesystem::path save_packed(const std::filesystem::path& run_directory,
                                  const store::LoadedCheckpoint& from, const store::QuantPlan& plan,
                                  const compress::QuantisedModel& model,
                                  const RunIdentity& identity,
                                  const compress::PackedMasks& masks = {});

}  // namespace stretto::runs
