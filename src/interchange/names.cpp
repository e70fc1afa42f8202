#include "interchange/names.h"

#include <stdexcept>

#include "base/text.h"

namespace stretto::interchange {
namespace {

std::string with_number(std::string_view pattern, int64_t layer) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return std::string(pattern.substr(0, star)) + std::to_string(layer) +
         std::string(pattern.substr(star + 1));
}

/// "a.{b,c}.d" -> "a.b.d", "a.c.d"
std::vector<std::string> alternatives(const std::string& pattern) {
  const size_t open = pattern.find('{'), close = pattern.find('}');
  if (open == std::string::npos) return {pattern};
  std::vector<std::string> names;
  for (const auto& part : split(pattern.substr(open + 1, close - open - 1), ',')) {
    names.push_back(pattern.substr(0, open) + part + pattern.substr(close + 1));
  }
  return names;
}

std::string without_prefix(const std::string& name, std::string_view prefix) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

void add_row(std::vector<NamePair>& pairs, const NameRow& row, int64_t layer,
             std::string_view prefix) {
  const bool is_whole = row.parts == Parts::kWhole;
  for (const std::string ending : {".weight", ".bias"}) {
    const bool is_bias = !is_whole && ending == ".bias";
    NamePair pair{.ours = with_number(row.ours, layer),
                  .skips_rows = row.skips_rows,
                  .transposed = row.transposed && !is_bias};
    for (const auto& name : alternatives(with_number(row.theirs, layer))) {
      pair.theirs.push_back(without_prefix(name, prefix) + (is_whole ? "" : ending));
    }
    if (!is_whole) pair.ours += ending;
    pairs.push_back(std::move(pair));
    if (is_whole) return;
  }
}

}  // namespace

std::vector<NamePair> expand(std::span<const NameRow> rows, int64_t num_layers,
                             std::string_view prefix) {
  std::vector<NamePair> pairs;
  const auto is_layered = [](const NameRow& row) {
    return row.ours.find('*') != std::string_view::npos;
  };
  for (const NameRow& row : rows) {
    if (!is_layered(row)) add_row(pairs, row, 0, prefix);
  }
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    for (const NameRow& row : rows) {
      if (is_layered(row)) add_row(pairs, row, layer, prefix);
    }
  }
  return pairs;
}

std::string modern_name(std::string_view name) {
  const auto replaced = [&](std::string_view old, std::string_view now) {
    return std::string(name.substr(0, name.size() - old.size())) + std::string(now);
  };
  if (name.ends_with("LayerNorm.gamma")) return replaced("gamma", "weight");
  if (name.ends_with("LayerNorm.beta")) return replaced("beta", "bias");
  return std::string(name);
}

}  // namespace stretto::interchange
