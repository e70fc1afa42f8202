#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compress/masks.h"
#include "optim/arena.h"
#include "optim/optimizer.h"
#include "runs/stored_targets.h"
#include "store/safetensors.h"

/// How the tensors of a run stand in a checkpoint, all fp32:
///
///     model.safetensors        <parameter>           one for each parameter, in its shape
///                              <buffer>              running statistics, in their shape
///     optimizer.safetensors    <state>/<parameter>   the parameter's part of a flat tensor that
///                                                    has one (StateTensor::held)
///                              <state>               any other tensor of state, as one row:
///                                                    carry/<name> is the state of lanes, in order
///
/// Whoever reads a model of a run that averages its weights (train.ema_decay,
/// train.average_nonmono) wants the average, but training goes on from its own weights. So the
/// tensor optim::kWeightAverage and the weights change places: the average is in model.safetensors,
/// and
///
///     optimizer.safetensors    trained/<parameter>   the weights that training goes on with
///
/// Where weights are pruned there is masks.safetensors too (runs/stored_masks.h).
namespace stretto::runs {

/// Copies weights and buffers by name from a checkpoint's model file into the arena.
/// @param matched  tables that may have another number of rows in the file
/// Throws Error(kBadData) that lists missing, unknown and misshapen tensors; then nothing is
/// copied.
void load_weights(const store::SafetensorsFile& file, const std::string& where, optim::Arena& arena,
                  const std::vector<MatchedTable>& matched = {});

/// Copies a checkpoint's optimizer file into the tensors of `state`, whose flat ones are those of
/// the whole arena; into the tensor optim::kWeightAverage what load_weights() left in the arena,
/// and into the arena the weights that were trained. Throws as load_weights does.
void load_optimizer_state(const store::SafetensorsFile& file, const std::string& where,
                          optim::Arena& arena, const std::vector<optim::StateTensor>& state);

/// What one checkpoint holds of a run's tensors, in memory of the host.
class Snapshot {
 public:
  /// Whether the snapshot has its own bytes (kept for the next take(), so that only the first one
  /// touches new memory) or, where tensors are on the CPU already, looks at the run's.
  enum class Bytes { kOwn, kBorrowed };

  /// The weights, buffers and state as they stand. `state` is of the whole arena: a flat tensor of
  /// another size is a c10::Error.
  /// @param masks  of pruned weights, which do not change; null = nothing is pruned
  void take(const optim::Arena& arena, const std::vector<optim::StateTensor>& state, Bytes bytes,
            std::shared_ptr<const compress::PackedMasks> masks = nullptr);

  /// The tensors of all files, by stem; valid until the next take().
  std::vector<std::pair<std::string, std::vector<store::TensorView>>> files() const;

 private:
  std::vector<optim::Arena::Slot> slots_;
  at::Tensor params_;
  std::vector<optim::Arena::Buffer> buffers_;
  std::vector<optim::StateTensor> state_;
  std::shared_ptr<const compress::PackedMasks> masks_;
  bool owns_bytes_ = false;
};

}  // namespace stretto::runs
