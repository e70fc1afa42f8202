#include "config/suggest.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>
#include <string_view>

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

// Equal but for underscores: `maxsteps` is `max_steps`.
bool same_letters(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  for (;; ++i, ++j) {
    while (i < a.size() && a[i] == '_') ++i;
    while (j < b.size() && b[j] == '_') ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (a[i] != b[j]) return false;
  }
}

/// Whether `test` holds for each word of a name, empty ones too.
template <class Test>
bool all_words(std::string_view name, const Test& test) {
  for (size_t begin = 0;;) {
    const size_t end = std::min(name.find('_', begin), name.size());
    if (!test(name.substr(begin, end - begin))) return false;
    if (end == name.size()) return true;
    begin = end + 1;
  }
}

bool has_word(std::string_view name, std::string_view word) {
  return !all_words(name, [&](std::string_view other) { return other != word; });
}

/// Whether each word of `name` is one of `other`.
bool words_within(std::string_view name, std::string_view other) {
  return all_words(name, [&](std::string_view word) { return has_word(other, word); });
}

size_t num_words(std::string_view name) {
  std::set<std::string_view> words;
  all_words(name, [&](std::string_view word) {
    words.insert(word);
    return true;
  });
  return words.size();
}

struct SplitPath {
  std::string_view parent, leaf;
};

SplitPath split_path(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return {"", path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

// How far `typed` is from `known` if it is a misspelling: 0 equal, always below 3; kNone when it is
// not. What was typed is compared with every name that is known: nothing here allocates before two
// names are much alike.
double slip_cost(std::string_view typed, std::string_view known) {
  if (typed == known) return 0;
  if (same_letters(typed, known)) return 0.5;
  if (words_within(known, typed) && words_within(typed, known)) return 1;
  if (!is_slip(typed, known)) return kNone;
  // Letters in common at both ends stand for the distance.
  const auto front = std::mismatch(typed.begin(), typed.end(), known.begin(), known.end());
  const auto back = std::mismatch(typed.rbegin(), typed.rend(), known.rbegin(), known.rend());
  const auto same = (front.first - typed.begin()) + (back.first - typed.rbegin());
  const auto longer = static_cast<double>(std::max(typed.size(), known.size()));
  return 1 + 1.5 * std::max(0.0, 1 - static_cast<double>(same) / longer);
}

// The same when it is a guess at best: words left out or added, 3 and more.
double guess_cost(std::string_view typed, std::string_view known) {
  double cost = kNone;
  if (words_within(typed, known) || words_within(known, typed)) {
    const auto extra =
        static_cast<double>(num_words(typed)) - static_cast<double>(num_words(known));
    cost = 3 + 0.3 * std::abs(extra);
  }
  if (typed.size() >= 3 && known.starts_with(typed)) cost = std::min(cost, 3.2);
  return cost;
}

double name_cost(std::string_view typed, std::string_view known) {
  const double slip = slip_cost(typed, known);
  return slip < kNone ? slip : guess_cost(typed, known);
}

// Costs of a key that stands in another section than the one typed. An exact name weighs more than
// a slip in the section that was typed, a guess weighs less.
constexpr double kElsewhere = 1.1, kGuessElsewhere = 2.6;
// Other toolkits have other sections: theirs says little.
constexpr double kOtherName = 0.3, kOtherSection = 0.9;
constexpr double kExact = 0.5;

/// Whether `path` is a key or section of this section, at any depth.
bool is_inside(std::string_view path, std::string_view section) {
  return path.size() > section.size() && path[section.size()] == '.' && path.starts_with(section);
}

/// How the section that was typed fits: 0 the key's own, small when it was a slip, else `far`.
double parent_cost(std::string_view typed, std::string_view known, std::string_view suggested,
                   double far) {
  if (typed == known) return 0;
  if (!suggested.empty() && suggested == known) return 0.7;
  if (typed.empty()) return 1;
  // `model.num_heads` for `model.encoder.num_heads`
  if (is_inside(known, typed) || is_inside(typed, known)) return 1;
  return far;
}

/// What was typed, taken apart once.
struct Typed {
  std::string_view whole, parent, leaf;
  std::string section;  ///< the one that was meant when `parent` is a slip
};

/// Whether a name is so near that nothing else was meant: equal letters, or words in another order.
bool is_certain(double spelling) {
  return spelling <= 1;
}

// The foreign option whose key the schema has, or which no key replaces. A whole path is tried
// before its last name.
const ForeignOption* find_foreign(const Typed& typed, const Schema& schema) {
  for (const std::string_view name : {typed.whole, typed.leaf}) {
    for (const auto& option : schema.foreign) {
      if (option.name != name) continue;
      if (option.key.empty() || schema.find(std::string(option.key)) != nullptr) return &option;
    }
  }
  return nullptr;
}

double own_cost(const Typed& typed, const SplitPath& known) {
  const double name = name_cost(typed.leaf, known.leaf);
  return name + parent_cost(typed.parent, known.parent, typed.section,
                            name <= kExact ? kElsewhere : kGuessElsewhere);
}

double other_cost(const Typed& typed, const SplitPath& known, std::string_view other) {
  if (other.find('.') != std::string_view::npos) return other == typed.whole ? 0.1 : kNone;
  const double spelling = slip_cost(typed.leaf, other);  // no guesses at somebody else's name
  if (spelling == kNone) return kNone;
  const double slip = spelling <= kExact ? spelling : spelling + 1;
  return kOtherName + slip + parent_cost(typed.parent, known.parent, typed.section, kOtherSection);
}

double composed_spelling(const Typed& typed, const SplitPath& section, std::string_view leaf) {
  return slip_cost(typed.leaf, std::string(section.leaf) + "_" + std::string(leaf));
}

/// Whether only spelling led to the key. @param other  name of another toolkit that did; or nullptr
bool is_guess(const Typed& typed, std::string_view path, const std::string* other) {
  if (other != nullptr && *other == typed.whole) return false;
  const SplitPath known = split_path(path), section = split_path(known.parent);
  const std::string_view name = other == nullptr ? known.leaf : std::string_view(*other);
  return !is_certain(slip_cost(typed.leaf, name)) &&
         !is_certain(composed_spelling(typed, section, name));
}

/// Whether the section's own name may stand in the typed word, as in `eval_every`.
bool may_be_composed(const Typed& typed, const SplitPath& section) {
  return !section.leaf.empty() && typed.leaf.size() > section.leaf.size() &&
         typed.leaf.find(section.leaf) != std::string_view::npos;
}

/// `eval_every` and `decoder_layers`: the section in the key's word. Slips count little.
double composed_cost(const Typed& typed, const SplitPath& section, std::string_view leaf) {
  if (leaf.find('.') != std::string_view::npos) return kNone;
  const double spelling = composed_spelling(typed, section, leaf);
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
  const auto offer = [&](const auto& section) {
    const double whole = name_cost(typed, section.path);
    const double leaf = name_cost(split_path(typed).leaf, split_path(section.path).leaf) + 1;
    // A section's name at the start of another word: `training`, `optimizer`, `datasets`.
    const double prefix = typed.starts_with(section.path) ? 2.5 : kNone;
    double cost = std::min({whole, leaf, prefix});
    const bool is_beside = split_path(typed).parent == split_path(section.path).parent;
    for (const auto& other : section.other_names) {
      const bool is_meant =
          other.name == typed || (is_beside && other.name == split_path(typed).leaf);
      if (is_meant) cost = std::min(cost, kOtherName);
    }
    if (cost >= best_cost) return;
    best_cost = cost;
    best = section.path;
  };
  for (const auto& section : schema.sections) offer(section);
  for (const auto& list : schema.lists) offer(list);
  return best;
}

Suggestion suggest_key(const std::string& path, const Schema& schema) {
  if (path.size() > kLongest) return {};
  const std::string whole = normal(path);
  const SplitPath parts = split_path(whole);
  Typed typed{.whole = whole, .parent = parts.parent, .leaf = parts.leaf, .section = ""};
  const std::string parent(typed.parent);
  if (!parent.empty() && schema.find_section(parent) == nullptr) {
    typed.section = suggest_section(parent, schema);
  }
  if (const auto* foreign = find_foreign(typed, schema)) {
    const std::string words(foreign->words);
    if (foreign->key.empty()) return {.path = "", .note = "", .instead = words};
    return {.path = std::string(foreign->key), .note = words};
  }
  const Key* best = nullptr;
  const std::string *note = nullptr, *name = nullptr;  // `name`: of another toolkit
  double best_cost = kNone;
  const auto offer = [&](double cost, const Key& key, const OtherName* other) {
    if (cost >= best_cost) return;
    best_cost = cost;
    best = &key;
    note = other == nullptr ? nullptr : &other->note;
    name = other == nullptr ? nullptr : &other->name;
  };
  for (const auto& key : schema.keys) {
    const SplitPath known = split_path(key.path);
    const SplitPath section = split_path(known.parent);
    const bool composed = may_be_composed(typed, section);
    offer(own_cost(typed, known), key, nullptr);
    if (composed) offer(composed_cost(typed, section, known.leaf), key, nullptr);
    for (const auto& other : key.other_names) {
      offer(other_cost(typed, known, other.name), key, &other);
      if (composed) offer(composed_cost(typed, section, other.name), key, &other);
    }
  }
  if (best == nullptr) return {};
  return {.path = best->path,
          .note = note == nullptr ? "" : *note,
          .is_guess = is_guess(typed, best->path, name)};
}

Suggestion suggest_other_name(const std::string& path, const Schema& schema) {
  const std::string typed = normal(path);
  const SplitPath parts = split_path(typed);
  const auto names_a_part = [&](const Key& key) {
    return std::any_of(schema.switches.begin(), schema.switches.end(),
                       [&](const Switch& section) { return section.name_key() == key.path; });
  };
  for (const auto& key : schema.keys) {
    if (split_path(key.path).parent != parts.parent || names_a_part(key)) continue;
    for (const auto& other : key.other_names) {
      if (other.name == parts.leaf) return {.path = key.path, .note = other.note};
    }
  }
  return {};
}

}  // namespace stretto::config
