#include "config/resolved.h"

#include <algorithm>
#include <string_view>

#include "base/hash.h"
#include "base/text.h"

namespace stretto::config {
namespace {

bool is_fixed(const Key& key, const std::vector<std::string>& fixed_as_well) {
  return !is_free(key.meta.change) ||
         std::find(fixed_as_well.begin(), fixed_as_well.end(), key.path) != fixed_as_well.end();
}

// As hashes have it; see FormerValue.
std::string first_value_text(const Key& key) {
  std::string before = key.former_value.before;
  const auto* const* text = std::get_if<std::string*>(&key.value);
  const bool renamed = text != nullptr && !before.empty() && **text == key.former_value.now;
  return value_text(renamed ? ValuePtr(&before) : key.value);
}

std::string comment(const Key& key, const Schema& defaults) {
  std::string text = "  # ";
  if (const Key* fallback = defaults.find(key.path)) {
    text += "default " + value_text(fallback->value);
    if (!key.meta.unit.empty()) text += " " + key.meta.unit;
    text += "; ";
  }
  return text + key.help;
}

// Whether a list shapes the result, and an entry more is another experiment.
bool is_fixed(const List& list, const std::vector<std::string>& fixed_as_well) {
  const auto fixed = [&](const Key& key) { return is_fixed(key, fixed_as_well); };
  return std::any_of(list.entry->keys.begin(), list.entry->keys.end(), fixed);
}

// "optim.lr: 0.0005 in the run, 0.001 now"
std::string difference(const std::string& path, const std::string& old_value,
                       const std::string& new_value, const DifferenceWords& words) {
  return path + ": " + old_value + " " + words.stored + ", " + new_value + " " + words.now;
}

std::string tables(size_t count) {
  return counted(static_cast<int64_t>(count), "table");
}

bool is_below(const std::string& path, const std::vector<std::string>& sections) {
  return std::any_of(sections.begin(), sections.end(),
                     [&](const std::string& section) { return path.starts_with(section); });
}

// Lists of another length, with the dot behind their names: their keys say no more.
std::vector<std::string> resized_lists(const Schema& stored, const Schema& now,
                                       const std::vector<std::string>& fixed_as_well,
                                       const DifferenceWords& words,
                                       std::vector<std::string>& lines) {
  std::vector<std::string> paths;
  for (const auto& list : now.lists) {
    const List* before = stored.find_list(list.path);
    const size_t old_size = before == nullptr ? 0 : before->size;
    if (old_size == list.size || is_below(list.path, paths)) continue;
    if (!is_fixed(list, fixed_as_well)) continue;
    lines.push_back(difference(list.path, tables(old_size), tables(list.size), words));
    paths.push_back(list.path + ".");
  }
  return paths;
}

}  // namespace

std::string to_toml(const Schema& schema, const Schema* defaults) {
  std::string out;
  for (const auto& section : schema.sections) {
    std::string body;
    const auto add = [&](const auto& key, const auto& comment_of) {
      const size_t dot = key.path.rfind('.');
      if (std::string_view(key.path).substr(0, dot) != section.path) return;
      body += key.path.substr(dot + 1) + " = " + value_text(key.value);
      if (defaults != nullptr) body += comment_of();
      body += "\n";
    };
    for (const auto& key : schema.keys) add(key, [&] { return comment(key, *defaults); });
    for (const auto& key : schema.retired) {
      if (*key.given) add(key, [&] { return "  # not needed any more: " + key.reason; });
    }
    if (body.empty() && !section.is_entry) continue;
    out += (out.empty() ? "" : "\n") + schema.header(section) + "\n" + body;
  }
  return out;
}

std::vector<std::string> differences(const Schema& stored, const Schema& now,
                                     const std::vector<std::string>& fixed_as_well,
                                     const DifferenceWords& words) {
  std::vector<std::string> lines;
  const auto resized = resized_lists(stored, now, fixed_as_well, words, lines);
  for (const auto& key : now.keys) {
    if (!is_fixed(key, fixed_as_well) || is_below(key.path, resized)) continue;
    const Key* before = stored.find(key.path);
    const std::string old_value = before != nullptr ? value_text(before->value) : "absent";
    const std::string new_value = value_text(key.value);
    if (old_value != new_value) {
      lines.push_back(difference(key.path, old_value, new_value, words));
    }
  }
  return lines;
}

uint64_t fixed_hash(const Schema& schema, const std::vector<std::string>& fixed_as_well,
                    const std::function<bool(const Key&)>& counts) {
  std::string text;
  const auto add = [&](const std::string& path, const std::string& value) {
    text += path + "=" + value + "\n";
  };
  for (const auto& key : schema.keys) {
    if (is_fixed(key, fixed_as_well) && (!counts || counts(key))) {
      add(key.former_path.empty() ? key.path : key.former_path, first_value_text(key));
    }
    for (const auto& gone : schema.retired) {
      if (gone.after == key.path) add(gone.path, value_text(gone.value));
    }
  }
  return xxh3_64(text);
}

}  // namespace stretto::config
