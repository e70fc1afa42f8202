#pragma once

#include <algorithm>
#include <cctype>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "config/problem.h"
#include "experiment/experiment_schema.h"

namespace stretto::testing {

/// Makes configurations with mistakes out of sound ones: lines dropped, doubled and swapped, other
/// sections, keys and values, keys of parts that were not chosen, lists of tables. The same random
/// numbers make the same text, with any compiler.
class ConfigMutator {
 public:
  using Random = std::mt19937_64;

  /// @param texts  whose lines are mixed into others
  explicit ConfigMutator(const std::vector<std::string>& texts) {
    experiment::Experiment defaults;
    collect(experiment::experiment_schema(defaults));
    for (const auto& text : texts) {
      const auto found = split(text, '\n');
      foreign_.insert(foreign_.end(), found.begin(), found.end());
    }
    if (foreign_.empty()) foreign_.emplace_back();
  }

  /// @return the text after one to six changes
  std::string mutated(const std::string& text, Random& random) const {
    auto lines = split(text, '\n');
    if (lines.empty()) lines.emplace_back();
    const size_t changes = 1 + below(3, random) + below(4, random) / 2 * below(3, random);
    for (size_t i = 0; i < changes; ++i) change(lines, random);
    std::string out = join(lines, "\n") + "\n";
    if (below(40, random) == 0) out = out.substr(0, below(out.size(), random));
    if (below(40, random) == 0) out[below(out.size(), random)] = static_cast<char>(random() & 0xFF);
    return out;
  }

 private:
  using Lines = std::vector<std::string>;

  struct KnownKey {
    std::string section, leaf;
    std::vector<std::string> values;
  };

  static size_t below(size_t count, Random& random) {
    return count == 0 ? 0 : static_cast<size_t>(random() % count);
  }

  template <class T>
  static const T& one_of(const std::vector<T>& items, Random& random) {
    return items[below(items.size(), random)];
  }

  // Keys and sections of every part and of entries of lists too.
  void collect(const config::Schema& schema) {
    for (const auto& section : schema.sections) sections_.push_back(section.path);
    for (const auto& key : schema.keys) {
      const size_t dot = key.path.rfind('.');
      auto values = key.range.choices;
      for (auto& value : values) value = "\"" + value + "\"";
      values.push_back(config::value_text(key.value));
      keys_.push_back({key.path.substr(0, dot), key.path.substr(dot + 1), std::move(values)});
    }
    for (const auto& parts : schema.switches) {
      for (const auto& part : parts.alternatives) collect(*part.schema);
    }
    for (const auto& list : schema.lists) {
      lists_.push_back(list.path);
      collect(*list.entry);
    }
  }

  static const Lines& strange_values() {
    static const Lines list{"0",
                            "1",
                            "-1",
                            "7",
                            "3.5",
                            "-0.0",
                            "1e-320",
                            "1e308",
                            "1e999",
                            "9223372036854775807",
                            "inf",
                            "nan",
                            "true",
                            "false",
                            "-9223372036854775808",
                            "\"\"",
                            "\"zebra\"",
                            "[]",
                            "{}",
                            "9223372036854775808",
                            "[[1]]",
                            "[\"a\"]",
                            "[1, 2]",
                            "[{}]",
                            "2026-01-01",
                            "1000000000000",
                            "{ name = \"lstm\" }",
                            "[{ name = \"lstm\" }, 3]",
                            "\"a\\u0000b\"",
                            "= 1",
                            "\"" + std::string(300, 'x') + "\"",
                            "'unclosed",
                            "0x7fffffff",
                            "\"../../x\"",
                            ""};
    return list;
  }

  std::string any_value(const KnownKey& key, Random& random) const {
    return below(3, random) == 0 ? one_of(strange_values(), random) : one_of(key.values, random);
  }

  std::string any_header(Random& random) const {
    std::string name = one_of(sections_, random);
    if (!lists_.empty() && below(3, random) == 0) name = one_of(lists_, random);
    if (below(4, random) == 0) name = mistyped(name, random);
    return below(4, random) == 0 ? "[[" + name + "]]" : "[" + name + "]";
  }

  static std::string mistyped(std::string word, Random& random) {
    if (word.empty()) return "x";
    const size_t at = below(word.size(), random);
    switch (below(5, random)) {
      case 0:
        word.insert(at, 1, word[at]);
        break;
      case 1:
        word.erase(at, 1);
        break;
      case 2:
        std::swap(word[at], word[at / 2]);
        break;
      case 3:
        word[at] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[at])));
        break;
      default:
        word += ".0";
    }
    return word;
  }

  // A line that tells a key, or opens a section; lines.size() when there is none.
  template <class Is>
  static size_t any_line(const Lines& lines, Random& random, const Is& is) {
    std::vector<size_t> found;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (is(lines[i])) found.push_back(i);
    }
    return found.empty() ? lines.size() : one_of(found, random);
  }
  static bool is_header(const std::string& line) { return line.starts_with("["); }
  static bool is_key(const std::string& line) {
    const bool is_other = line.starts_with("#") || line.starts_with("[") || line.starts_with(" ");
    return !is_other && line.find(" = ") != std::string::npos;
  }
  static std::string leaf_of(const std::string& line) { return line.substr(0, line.find(" = ")); }

  void change(Lines& lines, Random& random) const {
    if (lines.empty()) lines.emplace_back();
    const size_t at = below(lines.size(), random), other = below(lines.size(), random);
    switch (below(12, random)) {
      case 0:
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        insert(lines, at, std::string(lines[other]));
        break;
      case 2:
        std::swap(lines[at], lines[other]);
        break;
      case 3:
        insert(lines, at, one_of(foreign_, random));
        break;
      case 4:
        replace_header(lines, random);
        break;
      case 5:
      case 6:
        replace_value(lines, random);
        break;
      case 7:
        rename_key(lines, random);
        break;
      case 8:
      case 9:
        add_key(lines, random);
        break;
      case 10:
        add_tables(lines, random);
        break;
      default:
        choose_part(lines, random);
    }
  }

  static void insert(Lines& lines, size_t at, std::string line) {
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), std::move(line));
  }

  void replace_header(Lines& lines, Random& random) const {
    const size_t at = any_line(lines, random, is_header);
    if (at < lines.size()) lines[at] = any_header(random);
  }

  void replace_value(Lines& lines, Random& random) const {
    const size_t at = any_line(lines, random, is_key);
    if (at == lines.size()) return;
    const std::string leaf = leaf_of(lines[at]);
    std::vector<const KnownKey*> known;
    for (const auto& key : keys_) {
      if (key.leaf == leaf) known.push_back(&key);
    }
    lines[at] = leaf + " = " +
                (known.empty() ? one_of(strange_values(), random)
                               : any_value(*one_of(known, random), random));
  }

  void rename_key(Lines& lines, Random& random) const {
    const size_t at = any_line(lines, random, is_key);
    if (at == lines.size()) return;
    const std::string leaf = leaf_of(lines[at]);
    const std::string name =
        below(2, random) == 0 ? mistyped(leaf, random) : one_of(keys_, random).leaf;
    lines[at] = name + lines[at].substr(leaf.size());
  }

  // Into its section where the file has that, and else at the end.
  void add_key(Lines& lines, Random& random) const {
    const auto& key = one_of(keys_, random);
    const std::string line = key.leaf + " = " + any_value(key, random);
    const std::string header = "[" + key.section + "]";
    const auto at =
        static_cast<size_t>(std::find(lines.begin(), lines.end(), header) - lines.begin());
    if (at == lines.size()) lines.push_back(header);
    insert(lines, at + 1, line);
  }

  void add_tables(Lines& lines, Random& random) const {
    const bool is_list = !lists_.empty() && below(4, random) != 0;
    const std::string path = is_list ? one_of(lists_, random) : one_of(sections_, random);
    const size_t count = below(30, random) == 0 ? 70 : 1 + below(3, random);
    for (size_t i = 0; i < count; ++i) {
      lines.push_back("[[" + path + "]]");
      const auto& key = one_of(keys_, random);
      if (key.section == path || below(3, random) == 0) {
        lines.push_back(key.leaf + " = " + any_value(key, random));
      }
    }
  }

  // A name that some key `name` takes, for any section.
  void choose_part(Lines& lines, Random& random) const {
    const size_t at = any_line(lines, random, is_header);
    if (at == lines.size()) return;
    std::vector<const KnownKey*> names;
    for (const auto& key : keys_) {
      if (key.leaf == "name") names.push_back(&key);
    }
    insert(lines, at + 1, "name = " + any_value(*one_of(names, random), random));
  }

  std::vector<KnownKey> keys_;
  std::vector<std::string> sections_, lists_;
  Lines foreign_;
};

/// What a problem lacks that somebody needs who corrects it; empty = nothing.
inline std::string lacks(const config::Problem& problem) {
  if (trim(problem.place).empty()) return "no place: " + problem.what;
  if (trim(problem.what).empty()) return "nothing said at " + problem.place;
  return trim(problem.hint).empty() ? "no remedy: " + problem.what : "";
}

}  // namespace stretto::testing
