#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "optim/arena.h"
#include "runs/stored_targets.h"
#include "runs/taken_names.h"
#include "store/safetensors.h"

/// The weights that a run takes from another model (`train.init_from`): all of them, all but those
/// of another task's head, or a part (`train.init_only`).
namespace stretto::runs {

/// For `train.init_from`: throws as load_weights() does when these weights do not fit; reads no
/// weight. Advises `train.init_only` where a part has another name there (runs/other_names.h).
/// @param where  InitialRun::weights_file()
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
  /// LoRA and adapters that the other run does not have (MadeWeights::added): they are not expected
  /// there. They stay as they are, unless an entry takes them under another name.
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
/// Error(kBadData) that lists each tensor whose shape differs, with both shapes; Error(kNumeric)
/// for a value that is infinite or NaN in a tensor that is taken. Then nothing is copied.
FoundWeights load_some_weights(const store::SafetensorsFile& file, const std::string& where,
                               optim::Arena& arena, const TakenWeights& taken,
                               const std::vector<MatchedTable>& matched = {});

/// Throws as load_some_weights() does; reads no weight.
FoundWeights require_some_weights_fit(const store::SafetensorsFile& file, const std::string& where,
                                      const optim::Arena& arena, const TakenWeights& taken,
                                      const std::vector<MatchedTable>& matched = {});

}  // namespace stretto::runs
