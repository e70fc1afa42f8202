#include "config/suggest.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "base/text.h"

namespace stretto::config {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
// Nobody types a longer name by mistake, and it would cost time to compare.
constexpr size_t kLongest = 80;

// `maxSteps`, `max-steps` and `MAX_STEPS` are all `max_steps`.
std::string normal(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    const bool after_lower = i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (std::isupper(c) != 0 && after_lower) out += '_';
    out += c == '-' ? '_' : static_cast<char>(std::tolower(c));
  }
  return out;
}

std::string without_underscores(std::string text) {
  std::erase(text, '_');
  return text;
}

std::set<std::string> words_of(const std::string& name) {
  std::set<std::string> words;
  for (auto& word : split(name, '_')) words.insert(std::move(word));
  return words;
}

struct SplitPath {
  std::string parent, leaf;
};

SplitPath split_path(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// How far `typed` is from `known`: 0 equal, below 3 a slip, 3 and more a guess.
double name_cost(const std::string& typed, const std::string& known) {
  if (typed == known) return 0;
  if (without_underscores(typed) == without_underscores(known)) return 0.5;
  const auto a = words_of(typed), b = words_of(known);
  if (a == b) return 1;
  const std::string candidates[] = {known};
  double cost = kNone;
  if (!closest(typed, candidates).empty()) {
    // `closest` gives no distance; letters in common at both ends stand for it.
    const auto front = std::mismatch(typed.begin(), typed.end(), known.begin(), known.end());
    const auto back = std::mismatch(typed.rbegin(), typed.rend(), known.rbegin(), known.rend());
    const auto same = (front.first - typed.begin()) + (back.first - typed.rbegin());
    const auto longer = static_cast<double>(std::max(typed.size(), known.size()));
    cost = 1 + 1.5 * std::max(0.0, 1 - static_cast<double>(same) / longer);
  }
  const bool within = std::includes(b.begin(), b.end(), a.begin(), a.end()) ||
                      std::includes(a.begin(), a.end(), b.begin(), b.end());
  const double extra = std::abs(static_cast<double>(a.size()) - static_cast<double>(b.size()));
  if (within) cost = std::min(cost, 3 + 0.3 * extra);
  if (typed.size() >= 3 && known.starts_with(typed)) cost = std::min(cost, 3.2);
  return cost;
}

double parent_cost(const std::string& typed, const std::string& known,
                   const std::string& suggested) {
  if (typed == known) return 0;
  if (!suggested.empty() && suggested == known) return 0.7;
  if (typed.empty()) return 1;
  // `model.num_heads` for `model.encoder.num_heads`
  if (known.starts_with(typed + ".") || typed.starts_with(known + ".")) return 1;
  return 2.6;
}

}  // namespace

std::string suggest_section(const std::string& path, const Schema& schema) {
  if (path.size() > kLongest) return "";
  const std::string typed = normal(path);
  if (const auto other = schema.other_names.find(typed); other != schema.other_names.end()) {
    if (schema.find_section(other->second) != nullptr) return other->second;
  }
  std::string best;
  double best_cost = kNone;
  for (const auto& section : schema.sections) {
    const double whole = name_cost(typed, section.path);
    const double leaf = name_cost(split_path(typed).leaf, split_path(section.path).leaf) + 1;
    // A section's name at the start of another word: `training`, `optimizer`, `datasets`.
    const double prefix = typed.starts_with(section.path) ? 2.5 : kNone;
    const double cost = std::min({whole, leaf, prefix});
    if (cost < best_cost) {
      best_cost = cost;
      best = section.path;
    }
  }
  return best;
}

std::string suggest_key(const std::string& path, const Schema& schema) {
  if (path.size() > kLongest) return "";
  const SplitPath typed = split_path(normal(path));
  const std::string section = typed.parent.empty() || schema.find_section(typed.parent) != nullptr
                                  ? ""
                                  : suggest_section(typed.parent, schema);
  std::string best;
  double best_cost = kNone;
  const auto offer = [&](const std::string& candidate, double cost) {
    if (cost < best_cost) {
      best_cost = cost;
      best = candidate;
    }
  };
  for (const auto& key : schema.keys) {
    const SplitPath known = split_path(key.path);
    offer(key.path,
          name_cost(typed.leaf, known.leaf) + parent_cost(typed.parent, known.parent, section));
  }
  // A name of another toolkit, as it stands or with its section.
  const std::string whole = typed.parent.empty() ? typed.leaf : typed.parent + "." + typed.leaf;
  for (const auto& [name, cost] : {std::pair{whole, 0.4}, std::pair{typed.leaf, 1.8}}) {
    const auto other = schema.other_names.find(name);
    if (other != schema.other_names.end() && schema.find(other->second) != nullptr) {
      offer(other->second, cost);
    }
  }
  return best;
}

}  // namespace stretto::config
