#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "optim/arena.h"
#include "optim/optimizer.h"
#include "runs/taken_names.h"
#include "store/safetensors.h"

/// How the tensors of a run stand in a checkpoint, all fp32:
///
///     model.safetensors        <parameter>           one for each parameter, in its shape
///                              <buffer>              running statistics, in their shape
///     optimizer.safetensors    <state>/<parameter>   the parameter's part of a flat tensor
///                              <state>               any other tensor of state, as one row
///
/// Of a run that averages its weights (train.ema_decay) whoever reads a model wants the average,
/// but training goes on from its own weights. So the tensor optim::kWeightAverage and the weights
/// change places: the average is in model.safetensors, and
///
///     optimizer.safetensors    trained/<parameter>   the weights that training goes on with
namespace stretto::runs {

/// A matrix of which each row is looked up in the file instead of taken at its place.
struct MatchedTable {
  std::string parameter;
  /// For each row of the model's table the row in the file, or -1: it stays as it is, and so do
  /// rows beyond the end of this list. At least one row is stored.
  std::vector<int64_t> rows;
  /// Name of the vocabulary whose pieces the rows in the file stand for, as the task calls it in
  /// messages; empty = there is only one. A table of this name that the model does not have says it
  /// of the file's.
  std::string vocabulary = {};
};

/// Copies weights and buffers by name from a checkpoint's model file into the arena.
/// @param matched  tables that may have another number of rows in the file
/// Throws Error(kBadData) that lists missing, unknown and misshapen tensors; then nothing is
/// copied.
void load_weights(const store::SafetensorsFile& file, const std::string& where, optim::Arena& arena,
                  const std::vector<MatchedTable>& matched = {});

/// For `train.init_from`: throws as load_weights() does when these weights do not fit; reads no
/// weight. Advises `train.init_only` where a part has another name there (runs/other_names.h).
void require_weights_fit(const store::SafetensorsFile& file, const std::string& where,
                         const optim::Arena& arena, const std::vector<MatchedTable>& matched = {});

/// A part of the weights: `train.init_only`, or without entries all but what is another task's.
struct TakenWeights {
  std::vector<std::string> entries;        ///< runs/taken_names.h; the first that matches counts
  std::vector<optim::TiedName> tied = {};  ///< by any of its names a tied tensor is taken
  /// Without entries: patterns of tensors that may be missing, of another shape, or too many in the
  /// file. All other tensors must fit.
  std::vector<std::string> replaceable = {};
  /// The replaceable ones begin anew even where they fit: those of the file mean something else.
  bool replaces_all = false;
  /// LoRA and adapters that the other run has not (MadeWeights::added): nobody expects them there.
  /// They stay as they are, unless an entry takes them under another name.
  std::set<std::string> added = {};
};

/// What was found of a part.
struct FoundWeights {
  int64_t num_taken = 0, num_tensors = 0;  ///< of the arena, buffers too, without the added ones
  int64_t num_added = 0;                   ///< of TakenWeights::added, those that stay
  /// Names that the entries mean and the file has not; those tensors stay as they are.
  std::vector<std::string> missing = {};
  /// Names of replaceable tensors: those that stay as they are, and those that only the file has.
  std::vector<std::string> anew = {}, left_over = {};
};

/// Copies the weights and buffers that `taken` names, and no others, from a model file.
/// Throws, without entries, as require_weights_fit() does; else Error(kUsage) for an entry that
/// takes nothing, and for a matched table that would be read from one of other pieces;
/// Error(kBadData) that lists each tensor whose shape differs, with both shapes. Then nothing is
/// copied.
FoundWeights load_some_weights(const store::SafetensorsFile& file, const std::string& where,
                               optim::Arena& arena, const TakenWeights& taken,
                               const std::vector<MatchedTable>& matched = {});

/// Throws as load_some_weights() does; reads no weight.
FoundWeights require_some_weights_fit(const store::SafetensorsFile& file, const std::string& where,
                                      const optim::Arena& arena, const TakenWeights& taken,
                                      const std::vector<MatchedTable>& matched = {});

/// Copies a checkpoint's optimizer file into the tensors of `state`, whose flat ones have the
/// arena's size; into the tensor optim::kWeightAverage what load_weights() left in the arena, and
/// into the arena the weights that were trained. Throws as load_weights does.
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
  void take(const optim::Arena& arena, const std::vector<optim::StateTensor>& state, Bytes bytes);

  /// The tensors of both files, by stem; valid until the next take().
  std::vector<std::pair<std::string, std::vector<store::TensorView>>> files() const;

 private:
  std::vector<optim::Arena::Slot> slots_;
  at::Tensor params_;
  std::vector<optim::Arena::Buffer> buffers_;
  std::vector<optim::StateTensor> state_;
  bool owns_bytes_ = false;
};

}  // namespace stretto::runs
