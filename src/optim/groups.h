#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/optimizer/step_numbers.h"
#include "optim/group_options.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// The parameters of an arena as patterns see them: its slots in their order, then frozen ones.
std::vector<TensorName> names_of(const Arena& arena);

/// The settings of each slot of an arena, in its order: settings_of() with the names of all
/// parameters. What a pattern means for those that train does not depend on what is frozen.
///
/// Throws Error(kUsage) that names the entry: for one that cannot be read, and for a pattern that
/// matches no name (the advice lists near names).
std::vector<GroupSettings> group_settings(const OptimOptions& options, const Arena& arena);

/// The number of an update as tensors of these settings count it: 1 for the first that steps them.
inline int64_t number_for(const UpdateStep& update, const GroupSettings& group) {
  return update.number - group.begins;
}
/// Whether an update steps them at all: not before their first one (train.unfreeze).
inline bool steps(const UpdateStep& update, const GroupSettings& group) {
  return number_for(update, group) >= 1;
}

/// A part of a slice, counted from the slice's begin.
struct Part {
  int64_t begin = 0, end = 0;
  size_t slot = 0;   ///< of Arena::slots(); of merged parts the first
  size_t block = 0;  ///< of blocks(): which it is of those of the whole arena
};

/// How an optimizer sees its slice of the arena: the tensors in it, the stretches of equal
/// settings, which are stepped together, and the blocks whose sums are norms of tensors.
class Layout {
 public:
  Layout(const OptimOptions& options, const Arena& arena, Slice slice);

  const Slice& slice() const { return slice_; }
  bool is_whole() const { return whole_; }
  size_t num_slots() const { return settings_.size(); }
  const std::vector<GroupSettings>& settings() const { return settings_; }  ///< by slot
  const GroupSettings& settings(const Part& part) const { return settings_[part.slot]; }
  const std::vector<Part>& tensors() const { return tensors_; }      ///< one for each slot in it
  const std::vector<Part>& stretches() const { return stretches_; }  ///< gaps included

  /// The tensors in it, cut at multiples of kernels::kStepBlock elements of the arena: slices that
  /// begin at such multiples have the blocks of the whole arena between them, none of them cut.
  const std::vector<Part>& blocks() const { return blocks_; }
  /// The slot of each block of the whole arena, in order.
  const std::vector<size_t>& block_slots() const { return block_slots_; }

  /// The slice's elements of an arena-long buffer; a view.
  torch::Tensor part_of(const torch::Tensor& buffer) const {
    return buffer.narrow(0, slice_.begin, slice_.size());
  }
  /// Zeros for a state of the slice, fp32 on the arena's device.
  torch::Tensor zeros(const Arena& arena) const;

  /// Runs for kernels/optimizer/steps.h: numbers_of(settings) for each stretch that the update
  /// steps.
  template <class Numbers, class Of>
  std::vector<kernels::Run<Numbers>> runs(const UpdateStep& update, const Of& numbers_of) const {
    std::vector<kernels::Run<Numbers>> result;
    for (const Part& part : stretches_) {
      if (!steps(update, settings(part))) continue;
      result.push_back({part.begin, part.end, numbers_of(settings(part))});
    }
    return result;
  }
  /// The same for each tensor that the update steps: numbers_of(part).
  template <class Numbers, class Of>
  std::vector<kernels::Run<Numbers>> tensor_runs(const UpdateStep& update,
                                                 const Of& numbers_of) const {
    std::vector<kernels::Run<Numbers>> result;
    for (const Part& part : tensors_) {
      if (!steps(update, settings(part))) continue;
      result.push_back({part.begin, part.end, numbers_of(part)});
    }
    return result;
  }
  /// The same for each block, of tensors that are not stepped yet too: their gradient is zero.
  template <class Numbers, class Of>
  std::vector<kernels::Run<Numbers>> block_runs(const Of& numbers_of) const {
    std::vector<kernels::Run<Numbers>> result;
    for (const Part& part : blocks_) result.push_back({part.begin, part.end, numbers_of(part)});
    return result;
  }

 private:
  void add_blocks(size_t slot, int64_t begin, int64_t end);

  Slice slice_;
  bool whole_;
  std::vector<GroupSettings> settings_;
  std::vector<Part> tensors_, stretches_, blocks_;
  std::vector<size_t> block_slots_;
};

}  // namespace stretto::optim
