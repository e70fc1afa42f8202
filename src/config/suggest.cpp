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

// Costs of a key that stands in another section than the one typed. An exact name weighs more than
// a slip in the section that was typed, a guess weighs less.
constexpr double kElsewhere = 1.1, kGuessElsewhere = 2.6;
// Other toolkits have other sections: theirs says little.
constexpr double kOtherName = 0.3, kOtherSection = 0.9;
constexpr double kExact = 0.5;

/// How the section that was typed fits: 0 the key's own, small when it was a slip, else `far`.
double parent_cost(const std::string& typed, const std::string& known, const std::string& suggested,
                   double far) {
  if (typed == known) return 0;
  if (!suggested.empty() && suggested == known) return 0.7;
  if (typed.empty()) return 1;
  // `model.num_heads` for `model.encoder.num_heads`
  if (known.starts_with(typed + ".") || typed.starts_with(known + ".")) return 1;
  return far;
}

/// What was typed, taken apart once.
struct Typed {
  std::string whole, parent, leaf;
  std::string section;  ///< the one that was meant when `parent` is a slip
};

double own_cost(const Typed& typed, const SplitPath& known) {
  const double name = name_cost(typed.leaf, known.leaf);
  return name + parent_cost(typed.parent, known.parent, typed.section,
                            name <= kExact ? kElsewhere : kGuessElsewhere);
}

double other_cost(const Typed& typed, const SplitPath& known, const OtherName& other) {
  const std::string name = normal(other.name);
  if (name.find('.') != std::string::npos) return name == typed.whole ? 0.1 : kNone;
  const double spelling = name_cost(typed.leaf, name);
  if (spelling >= 3) return kNone;  // a guess at somebody else's name
  const double slip = spelling <= kExact ? spelling : spelling + 1;
  return kOtherName + slip + parent_cost(typed.parent, known.parent, typed.section, kOtherSection);
}

/// `eval_every` and `decoder_layers`: the section in the key's word.
double composed_cost(const Typed& typed, const SplitPath& known, const std::string& leaf) {
  if (known.parent.empty() || leaf.find('.') != std::string::npos) return kNone;
  const SplitPath section = split_path(known.parent);
  if (typed.leaf.size() <= section.leaf.size() ||
      typed.leaf.find(section.leaf) == std::string::npos) {
    return kNone;
  }
  const double spelling = name_cost(typed.leaf, section.leaf + "_" + normal(leaf));
  if (spelling > 1) return kNone;
  return kOtherName + spelling / 4 +
         parent_cost(typed.parent, section.parent, typed.section, kOtherSection);
}

}  // namespace

std::string suggest_section(const std::string& path, const Schema& schema) {
  if (path.size() > kLongest) return "";
  const std::string typed = normal(path);
  std::string best;
  double best_cost = kNone;
  for (const auto& section : schema.sections) {
    const double whole = name_cost(typed, section.path);
    const double leaf = name_cost(split_path(typed).leaf, split_path(section.path).leaf) + 1;
    // A section's name at the start of another word: `training`, `optimizer`, `datasets`.
    const double prefix = typed.starts_with(section.path) ? 2.5 : kNone;
    double cost = std::min({whole, leaf, prefix});
    for (const auto& other : section.other_names) {
      if (normal(other.name) == typed) cost = std::min(cost, kOtherName);
    }
    if (cost < best_cost) {
      best_cost = cost;
      best = section.path;
    }
  }
  return best;
}

Suggestion suggest_key(const std::string& path, const Schema& schema) {
  if (path.size() > kLongest) return {};
  Typed typed{.whole = normal(path), .parent = "", .leaf = "", .section = ""};
  const SplitPath parts = split_path(typed.whole);
  typed.parent = parts.parent;
  typed.leaf = parts.leaf;
  if (!typed.parent.empty() && schema.find_section(typed.parent) == nullptr) {
    typed.section = suggest_section(typed.parent, schema);
  }
  Suggestion best;
  double best_cost = kNone;
  const auto offer = [&](double cost, const Key& key, const std::string& note) {
    if (cost >= best_cost) return;
    best_cost = cost;
    best = {key.path, note};
  };
  for (const auto& key : schema.keys) {
    const SplitPath known = split_path(key.path);
    offer(own_cost(typed, known), key, "");
    offer(composed_cost(typed, known, known.leaf), key, "");
    for (const auto& other : key.other_names) {
      offer(other_cost(typed, known, other), key, other.note);
      offer(composed_cost(typed, known, other.name), key, other.note);
    }
  }
  return best;
}

}  // namespace stretto::config
