#include "optim/groups.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace stretto::optim {
namespace {

/// An entry of optim.groups.
struct Group {
  std::string pattern;
  std::optional<double> lr_scale, weight_decay;
};

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

double number_in(const std::string& entry, const std::string& word, size_t equals) {
  const char *begin = word.data() + equals + 1, *end = word.data() + word.size();
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc() && stop == end && value >= 0 && value < 1e30) return value;
  throw Error(
      ExitCode::kUsage,
      "optim.groups: in " + quoted(entry) + ", " + quoted(word) + " needs a number of at least 0",
      "write for instance lr_scale=0.1");
}

Group parse_group(const std::string& entry) {
  Group group;
  for (const auto& word : split(entry, ' ')) {
    if (word.empty()) continue;
    if (group.pattern.empty()) {
      group.pattern = word;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos || (key != "lr_scale" && key != "weight_decay")) {
      throw Error(ExitCode::kUsage,
                  "optim.groups: in " + quoted(entry) + ", unknown setting " + quoted(word),
                  "known: lr_scale=NUMBER, weight_decay=NUMBER");
    }
    (key == "lr_scale" ? group.lr_scale : group.weight_decay) = number_in(entry, word, equals);
  }
  if (group.pattern.empty() || (!group.lr_scale && !group.weight_decay)) {
    throw Error(ExitCode::kUsage, "optim.groups: " + quoted(entry) + " sets nothing",
                "write \"PATTERN lr_scale=NUMBER weight_decay=NUMBER\"");
  }
  return group;
}

bool in_no_decay(const OptimOptions& options, const Arena::Slot& slot) {
  if (options.no_decay.empty()) return slot.shape.size() <= 1;
  if (options.no_decay == std::vector<std::string>{"none"}) return false;
  return std::any_of(options.no_decay.begin(), options.no_decay.end(),
                     [&](const std::string& pattern) { return matches(pattern, slot.name); });
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  // One star at a time: on a mismatch the last star takes one character more.
  size_t p = 0, n = 0, star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<GroupSettings> group_settings(const OptimOptions& options, const Arena& arena) {
  const auto names = names_of(arena);
  std::vector<Group> groups;
  for (const auto& entry : options.groups) {
    groups.push_back(parse_group(entry));
    expect_a_match("optim.groups", groups.back().pattern, names);
  }
  if (options.no_decay != std::vector<std::string>{"none"}) {
    for (const auto& pattern : options.no_decay) {
      expect_a_match("optim.no_decay", pattern, names);
    }
  }
  std::vector<GroupSettings> settings;
  for (const auto& slot : arena.slots()) {
    const bool exempt = in_no_decay(options, slot);
    GroupSettings& one = settings.emplace_back(
        GroupSettings{.weight_decay = exempt ? 0 : options.weight_decay, .exempt = exempt});
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& candidate) {
      return matches(candidate.pattern, slot.name);
    });
    if (group == groups.end()) continue;
    one.lr_scale = group->lr_scale.value_or(1);
    if (group->weight_decay) {
      one.weight_decay = *group->weight_decay;
      one.exempt = one.weight_decay == 0;
    }
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
    if (begin >= stretch_end) continue;
    if (!stretches_.empty() && settings_[stretches_.back().slot] == settings_[i]) {
      stretches_.back().end = stretch_end;
    } else {
      stretches_.push_back({begin, stretch_end, i});
    }
  }
}

torch::Tensor Layout::zeros(const Arena& arena) const {
  return torch::zeros({slice_.size()}, arena.params().options());
}

}  // namespace stretto::optim
