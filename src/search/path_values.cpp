#include "search/path_values.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/text.h"
#include "config/load.h"
#include "config/shape.h"
#include "config/toml.h"
#include "experiment/experiment_schema.h"
#include "search/space_options.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;

/// What a key that names files is given.
struct Paths {
  std::vector<std::string> texts;
  bool in_brackets = false;  ///< otherwise there is one
};

const config::Schema& keys_of_experiments() {
  static experiment::Experiment options;
  static const config::Schema schema = experiment::experiment_schema(options);
  return schema;
}

// In whatever part a section may be, and in whatever entry of a list.
const config::Key* find_path_key(const config::Schema& schema, const std::string& path) {
  const config::Key* key = schema.find(path);
  if (key != nullptr && key->meta.is_path) return key;
  for (const auto& parts : schema.switches) {
    if (!parts.may_have(path)) continue;
    for (const auto& part : parts.alternatives) {
      if (const auto* found = find_path_key(*part.schema, path)) return found;
    }
  }
  for (const auto& list : schema.lists) {
    if (!path.starts_with(list.path + ".")) continue;
    const size_t behind_number = path.find('.', list.path.size() + 1);
    if (behind_number == std::string::npos) continue;
    const std::string name = list.path + path.substr(behind_number);
    if (const auto* found = find_path_key(*list.entry, name)) return found;
  }
  return nullptr;
}

std::optional<Paths> paths_in(const toml::node& node) {
  if (const auto* text = node.as_string()) {
    return Paths{.texts = {text->get()}, .in_brackets = false};
  }
  const auto* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  Paths paths{.texts = {}, .in_brackets = true};
  for (const auto& item : *array) {
    const auto* text = item.as_string();
    if (text == nullptr) return std::nullopt;
    paths.texts.push_back(text->get());
  }
  return paths;
}

bool is_quoted(const std::string& words) {
  return words.starts_with("\"") || words.starts_with("'");
}

bool begins_as_toml(const std::string& words) {
  return is_quoted(words) || words.starts_with("[") || words.starts_with("{");
}

// As an override is read: one path needs neither quotes nor brackets. Absent for what will be
// refused, and for a key that names no files.
std::optional<Paths> paths_of(const std::string& key, const std::string& value) {
  const config::Key* found = find_path_key(keys_of_experiments(), key);
  if (found == nullptr) return std::nullopt;
  const std::string words = trim(value);
  const Paths as_it_stands{.texts = {words}, .in_brackets = false};
  const bool is_list = std::holds_alternative<std::vector<std::string>*>(found->value);
  if (!is_list && !is_quoted(words)) return as_it_stands;
  if (!config::is_parsable(words)) return std::nullopt;
  const toml::parse_result result = toml::parse("v = " + words);
  const auto* node = result && result.table().size() == 1 ? result.table().get("v") : nullptr;
  if (node != nullptr) return paths_in(*node);
  if (begins_as_toml(words)) return std::nullopt;
  return as_it_stands;
}

Paths made_absolute(Paths paths, const fs::path& folder) {
  for (auto& text : paths.texts) text = config::absolute_path(text, folder);
  return paths;
}

std::string in_quotes(std::string text) {
  return config::value_text(config::ValuePtr(&text));
}

std::string value_of(Paths paths) {
  if (paths.in_brackets) return config::value_text(config::ValuePtr(&paths.texts));
  const std::string& text = paths.texts.front();
  return trim(text) == text && !begins_as_toml(text) ? text : in_quotes(text);
}

// The same for a point, which spaces end.
std::string word_of(const Paths& paths) {
  if (!paths.in_brackets) {
    const std::string& text = paths.texts.front();
    return text.find_first_of(" \"") == std::string::npos ? value_of(paths) : in_quotes(text);
  }
  std::vector<std::string> quoted;
  for (const auto& text : paths.texts) quoted.push_back(in_quotes(text));
  return "[" + join(quoted, ",") + "]";
}

std::string absolute_point(const std::string& text, const fs::path& folder) {
  auto words = point_words(text);
  bool has_paths = false;
  for (auto& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = word.substr(0, equals);
    const auto paths = paths_of(key, word.substr(equals + 1));
    if (!paths) continue;
    word = key + "=" + word_of(made_absolute(*paths, folder));
    has_paths = true;
  }
  return has_paths ? join(words, " ") : text;
}

// Those of an override `data={train_src="a"}`, as overrides of their own.
void add_paths_below(const std::string& section, const toml::table& table, const fs::path& folder,
                     std::vector<std::string>& overrides) {
  for (const auto& [name, node] : table) {
    const std::string key = section + "." + std::string(name.str());
    if (const auto* inner = node.as_table()) {
      add_paths_below(key, *inner, folder, overrides);
      continue;
    }
    if (find_path_key(keys_of_experiments(), key) == nullptr) continue;
    const auto paths = paths_in(node);
    if (paths) overrides.push_back(key + "=" + value_of(made_absolute(*paths, folder)));
  }
}

void add_override(const std::string& text, const fs::path& folder,
                  std::vector<std::string>& overrides) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    overrides.push_back(text);
    return;
  }
  const std::string key = trim(text.substr(0, equals)), words = trim(text.substr(equals + 1));
  if (const auto paths = paths_of(key, words)) {
    overrides.push_back(key + "=" + value_of(made_absolute(*paths, folder)));
    return;
  }
  overrides.push_back(text);
  if (!words.starts_with("{") || !config::is_parsable(words)) return;
  const toml::parse_result result = toml::parse("v = " + words);
  if (!result) return;
  const auto* node = result.table().get("v");
  const auto* table = node == nullptr ? nullptr : node->as_table();
  if (table != nullptr) add_paths_below(key, *table, folder, overrides);
}

template <class Block>
void make_block_absolute(Block& block, size_t number, const FolderOf& folder_of) {
  if constexpr (std::is_same_v<Block, CategoricalOptions>) {
    const fs::path of_values = folder_of(space_key(number, "values"));
    for (auto& value : block.values) value = absolute_value(block.key, value, of_values);
  }
  const fs::path of_conditions = folder_of(space_key(number, "when"));
  for (auto& condition : block.when) {
    const size_t equals = condition.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = trim(condition.substr(0, equals));
    const auto paths = paths_of(key, condition.substr(equals + 1));
    if (paths) condition = key + "=" + value_of(made_absolute(*paths, of_conditions));
  }
}

}  // namespace

void make_values_absolute(SearchFileOptions& options, const FolderOf& folder_of) {
  auto& search = options.search;
  const fs::path of_overrides = folder_of("search.overrides");
  std::vector<std::string> overrides;
  for (const auto& text : search.overrides) add_override(text, of_overrides, overrides);
  search.overrides = std::move(overrides);
  const fs::path of_points = folder_of("search.points");
  for (auto& point : search.points) point = absolute_point(point, of_points);
  for (size_t i = 0; i < options.space.size(); ++i) {
    options.space[i].visit([&](auto& block) { make_block_absolute(block, i, folder_of); });
  }
}

std::string absolute_value(const std::string& key, const std::string& value,
                           const fs::path& folder) {
  const auto paths = paths_of(key, value);
  return paths ? value_of(made_absolute(*paths, folder)) : value;
}

std::string canonical_value(const std::string& key, const std::string& value) {
  const auto paths = paths_of(key, value);
  return paths ? value_of(*paths) : value;
}

std::vector<std::string> point_words(const std::string& text) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' && !quoted) {
      words.push_back(std::exchange(word, ""));
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    word += text[i];
    if (quoted && text[i] == '\\' && i + 1 < text.size()) word += text[++i];
  }
  words.push_back(word);
  std::erase(words, "");
  return words;
}

}  // namespace stretto::search
