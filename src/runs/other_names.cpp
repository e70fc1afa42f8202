#include "runs/other_names.h"

#include <algorithm>
#include <set>

namespace stretto::runs {
namespace {

// "decoder." of "decoder.layers.0.norm.weight"; empty without a dot.
std::string top_of(const std::string& name) {
  return name.substr(0, name.find('.') + 1);
}

// The parts of a list: "decoders.de." and "decoders.fr." for "decoders.".
std::vector<std::string> parts_of(const NamedShapes& tensors, const std::string& list) {
  std::vector<std::string> parts;
  for (auto it = tensors.lower_bound(list); it != tensors.end() && it->first.starts_with(list);
       ++it) {
    const size_t dot = it->first.find('.', list.size());
    if (dot == std::string::npos) continue;
    auto part = it->first.substr(0, dot + 1);
    if (parts.empty() || parts.back() != part) parts.push_back(std::move(part));
  }
  return parts;
}

// Whether all tensors below `here` are stored below `there`, and none under its own name.
bool is_stored_as(const NamedShapes& model, const std::string& here, const NamedShapes& stored,
                  const std::string& there) {
  auto it = model.lower_bound(here);
  if (it == model.end() || !it->first.starts_with(here)) return false;
  for (; it != model.end() && it->first.starts_with(here); ++it) {
    if (stored.contains(it->first)) return false;
    const auto found = stored.find(there + it->first.substr(here.size()));
    if (found == stored.end() || found->second != it->second) return false;
  }
  return true;
}

std::string renaming(const std::string& here, const std::string& there) {
  return here + "* = " + there + "*";
}

// Entries for the parts below one top: a single part here, or a list of them.
void add_renamed(const NamedShapes& model, const std::string& top, const NamedShapes& stored,
                 std::vector<std::string>& entries) {
  const std::string stem = top.substr(0, top.size() - 1);
  for (const auto& there : parts_of(stored, stem + "s.")) {
    if (!is_stored_as(model, top, stored, there)) continue;
    entries.push_back(renaming(top, there));
    return;
  }
  if (!stem.ends_with('s')) return;
  const std::string single = stem.substr(0, stem.size() - 1) + ".";
  for (const auto& here : parts_of(model, top)) {
    if (is_stored_as(model, here, stored, single)) entries.push_back(renaming(here, single));
  }
}

}  // namespace

std::vector<std::string> entries_for_other_names(const NamedShapes& model,
                                                 const NamedShapes& stored) {
  std::set<std::string> tops, same;
  for (const auto& [name, shape] : model) {
    const std::string top = top_of(name);
    if (!top.empty()) tops.insert(top);
    const auto found = stored.find(name);
    if (found == stored.end()) continue;
    if (found->second != shape) return {};
    same.insert(top.empty() ? name : top + "*");
  }
  std::vector<std::string> entries;
  for (const auto& top : tops) add_renamed(model, top, stored, entries);
  // A renamed part may go by a tied table's other name too: a part with its own comes first.
  if (!entries.empty()) entries.insert(entries.begin(), same.begin(), same.end());
  return entries;
}

}  // namespace stretto::runs
