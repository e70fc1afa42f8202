#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/step_numbers.h"
#include "optim/optimizer.h"

namespace stretto::optim {

/// Does `name` match a pattern in which `*` stands for any characters (dots too, or none) and `?`
/// for one?
bool matches(std::string_view pattern, std::string_view name);

/// What may differ from tensor to tensor.
struct GroupSettings {
  double lr_scale = 1;
  double weight_decay = 0;
  /// Of the no-decay group: layer-wise optimizers leave its rate alone.
  bool exempt = false;

  bool operator==(const GroupSettings&) const = default;
};

/// The settings of each slot of an arena, in its order, by `optim.weight_decay`, `optim.no_decay`
/// and `optim.groups`. Patterns see the parameters' names; in `groups` the first entry that matches
/// counts, and its weight_decay stands above no_decay.
///
/// Throws Error(kUsage) that names the entry: for one that cannot be read, and for a pattern that
/// matches no name (the advice lists near names).
std::vector<GroupSettings> group_settings(const OptimOptions& options, const Arena& arena);

/// A part of a slice, counted from the slice's begin.
struct Part {
  int64_t begin = 0, end = 0;
  size_t slot = 0;  ///< of Arena::slots(); of merged parts the first
};

/// How an optimizer sees its slice of the arena: the tensors in it, and the stretches of equal
/// settings, which are stepped together.
class Layout {
 public:
  Layout(const OptimOptions& options, const Arena& arena, Slice slice);

  const Slice& slice() const { return slice_; }
  bool is_whole() const { return whole_; }
  size_t num_slots() const { return settings_.size(); }
  const GroupSettings& settings(const Part& part) const { return settings_[part.slot]; }
  const std::vector<Part>& tensors() const { return tensors_; }      ///< one for each slot in it
  const std::vector<Part>& stretches() const { return stretches_; }  ///< gaps included

  /// The slice's elements of an arena-long buffer; a view.
  torch::Tensor part_of(const torch::Tensor& buffer) const {
    return buffer.narrow(0, slice_.begin, slice_.size());
  }
  /// Zeros for a state of the slice, fp32 on the arena's device.
  torch::Tensor zeros(const Arena& arena) const;

  /// Runs for kernels/optimizer_steps.h: numbers_of(settings) for each stretch.
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
    std::vector<kernels::Run<Numbers>> result;
    for (const Part& part : tensors_) {
      result.push_back({part.begin, part.end, numbers_of(part)});
    }
    return result;
  }

 private:
  Slice slice_;
  bool whole_;
  std::vector<GroupSettings> settings_;
  std::vector<Part> tensors_, stretches_;
};

}  // namespace stretto::optim
