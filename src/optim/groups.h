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

  /// Runs for kernels/optimizer/steps.h: numbers_of(settings) for each stretch.
  template <class Numbers, class Of>
  std::vector<kernels::Run<Numbers>> runs(const Of& numbers_of) const {
    std::vector<kernels::Run<Numbers>> result;
    for (const Part& part : stretches_) {
      result.push_back({part.begin, part.end, numbers_of(settings(part))});
    }
    return result;
  }
  /// The same for each tensor: numbers_of(part).
  template <class Numbers, class Of>
  std::vector<kernels::Run<Numbers>> tensor_runs(const Of& numbers_of) const {
    return runs_of<Numbers>(tensors_, numbers_of);
  }
  /// The same for each block.
  template <class Numbers, class Of>
  std::vector<kernels::Run<Numbers>> block_runs(const Of& numbers_of) const {
    return runs_of<Numbers>(blocks_, numbers_of);
  }

 private:
  template <class Numbers, class Of>
  static std::vector<kernels::Run<Numbers>> runs_of(const std::vector<Part>& parts,
                                                    const Of& numbers_of) {
    std::vector<kernels::Run<Numbers>> result;
    for (const Part& part : parts) result.push_back({part.begin, part.end, numbers_of(part)});
    return result;
  }
  void add_blocks(size_t slot, int64_t begin, int64_t end);

  Slice slice_;
  bool whole_;
  std::vector<GroupSettings> settings_;
  std::vector<Part> tensors_, stretches_, blocks_;
  std::vector<size_t> block_slots_;
};

}  // namespace stretto::optim
