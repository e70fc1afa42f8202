#include "optim/groups.h"

#include <algorithm>

#include "base/error.h"

namespace stretto::optim {
namespace {

void expect_a_match(const std::string& key, const std::string& pattern,
                    const std::vector<TensorName>& tensors) {
  if (const auto problem = matches_nothing(pattern, tensors)) {
    throw Error(ExitCode::kUsage, key + ": " + problem->what, problem->hint);
  }
}

ParameterGroup parse_group(const std::string& entry) {
  ParameterGroup group;
  if (const auto problem = read_group(entry, group)) {
    throw Error(ExitCode::kUsage, "optim.groups: " + problem->what, problem->hint);
  }
  return group;
}

}  // namespace

std::vector<TensorName> names_of(const Arena& arena) {
  std::vector<TensorName> tensors;
  for (const auto& slot : arena.slots()) tensors.push_back({slot.name, slot.shape.size() <= 1});
  for (const auto& buffer : arena.buffers()) {
    if (buffer.is_parameter) tensors.push_back({buffer.name, buffer.values.dim() <= 1});
  }
  return tensors;
}

std::vector<GroupSettings> group_settings(const OptimOptions& options, const Arena& arena) {
  const auto tensors = names_of(arena);
  std::vector<ParameterGroup> groups;
  for (const auto& entry : options.groups) {
    groups.push_back(parse_group(entry));
    expect_a_match("optim.groups", groups.back().pattern, tensors);
  }
  if (!exempts_nothing(options)) {
    for (const auto& pattern : options.no_decay) {
      expect_a_match("optim.no_decay", pattern, tensors);
    }
  }
  if (const auto problem = no_layers(options, tensors)) {
    throw Error(ExitCode::kUsage, "optim.layer_decay: " + problem->what, problem->hint);
  }
  auto settings = settings_of(options, groups, tensors);
  settings.resize(arena.slots().size());
  for (size_t slot = 0; slot < settings.size(); ++slot) {
    settings[slot].begins = arena.slots()[slot].begins;
  }
  return settings;
}

Layout::Layout(const OptimOptions& options, const Arena& arena, Slice slice)
    : slice_(slice),
      whole_(slice.begin == 0 && slice.end == arena.size()),
      settings_(group_settings(options, arena)) {
  TORCH_CHECK(slice.begin >= 0 && slice.begin <= slice.end && slice.end <= arena.size(),
              "[optim] slice [", slice.begin, ", ", slice.end, ") of an arena of ", arena.size());
  const auto& slots = arena.slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    // A slot's stretch goes on to the next slot, so that gaps are stepped with it: they stay zero.
    const int64_t next = i + 1 < slots.size() ? slots[i + 1].offset : arena.size();
    const int64_t begin = std::max(slots[i].offset, slice.begin) - slice.begin;
    const int64_t end = std::min(slots[i].offset + slots[i].numel, slice.end) - slice.begin;
    const int64_t stretch_end = std::min(next, slice.end) - slice.begin;
    if (begin < end) tensors_.push_back({begin, end, i});
    add_blocks(i, slots[i].offset, slots[i].offset + slots[i].numel);
    if (begin >= stretch_end) continue;
    if (!stretches_.empty() && settings_[stretches_.back().slot] == settings_[i]) {
      stretches_.back().end = stretch_end;
    } else {
      stretches_.push_back({begin, stretch_end, i});
    }
  }
}

// Counts those outside of the slice too.
void Layout::add_blocks(size_t slot, int64_t begin, int64_t end) {
  for (int64_t next = 0; begin < end; begin = next) {
    next = std::min((begin / kernels::kStepBlock + 1) * kernels::kStepBlock, end);
    const int64_t from = std::max(begin, slice_.begin), to = std::min(next, slice_.end);
    if (from < to) {
      blocks_.push_back({from - slice_.begin, to - slice_.begin, slot, block_slots_.size()});
    }
    block_slots_.push_back(slot);
  }
}

torch::Tensor Layout::zeros(const Arena& arena) const {
  return torch::zeros({slice_.size()}, arena.params().options());
}

}  // namespace stretto::optim
