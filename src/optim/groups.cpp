#include "optim/groups.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace stretto::optim {
namespace {

std::vector<std::string> names_of(const Arena& arena) {
  std::vector<std::string> names;
  for (const auto& slot : arena.slots()) names.push_back(slot.name);
  return names;
}

std::string quoted(const std::string& text) {
  return "`" + printable(text) + "`";
}

/// `decoder.embedding.*` is near to `decoder.embed.weight`: the part before the first star finds
/// names with the longest common beginning, and spelling finds the rest.
std::string near_names(const std::string& pattern, const std::vector<std::string>& names) {
  constexpr size_t kMost = 4;
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const auto& name : names) {
    const auto mismatch = std::mismatch(pattern.begin(), pattern.end(), name.begin(), name.end());
    ranked.emplace_back(static_cast<size_t>(mismatch.first - pattern.begin()), name);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> shown;
  const std::string similar = closest(pattern, names);
  if (!similar.empty()) shown.push_back(similar);
  for (const auto& [common, name] : ranked) {
    if (shown.size() < kMost && name != similar) shown.push_back(name);
  }
  return join(shown, ", ");
}

void expect_a_match(const std::string& key, const std::string& pattern,
                    const std::vector<std::string>& names) {
  const bool found = std::any_of(names.begin(), names.end(),
                                 [&](const std::string& name) { return matches(pattern, name); });
  if (found) return;
  throw Error(ExitCode::kUsage, key + ": " + quoted(pattern) + " matches no parameter",
              "names near it: " + near_names(pattern, names));
}

ParameterGroup parse_group(const std::string& entry) {
  ParameterGroup group;
  if (const auto problem = read_group(entry, group)) {
    throw Error(ExitCode::kUsage, "optim.groups: " + problem->what, problem->hint);
  }
  return group;
}

}  // namespace

std::vector<GroupSettings> group_settings(const OptimOptions& options, const Arena& arena) {
  const auto names = names_of(arena);
  std::vector<ParameterGroup> groups;
  for (const auto& entry : options.groups) {
    groups.push_back(parse_group(entry));
    expect_a_match("optim.groups", groups.back().pattern, names);
  }
  if (options.no_decay != std::vector<std::string>{"none"}) {
    for (const auto& pattern : options.no_decay) {
      expect_a_match("optim.no_decay", pattern, names);
    }
  }
  std::vector<TensorName> tensors;
  for (const auto& slot : arena.slots()) tensors.push_back({slot.name, slot.shape.size() <= 1});
  return settings_of(options, groups, tensors);
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
