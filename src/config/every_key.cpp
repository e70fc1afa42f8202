#include "config/every_key.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "config/paths.h"
#include "config/value_hints.h"

namespace stretto::config {
namespace {

// What a part calls "model.encoder.cell" is "model.encoder.lstm.cell" from outside.
std::string through_part(const Switch& parts, const Alternative& part, const std::string& path) {
  const std::string rest = parts.below.empty() ? path : path.substr(parts.below.size() + 1);
  return parts.section + "." + part.name + "." + rest;
}

template <class Test>
std::vector<FoundKey> those_that(const std::vector<FoundKey>& keys, const Test& test) {
  std::vector<FoundKey> found;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(found), test);
  return found;
}

}  // namespace

std::vector<FoundKey> every_key(const Schema& schema) {
  std::vector<FoundKey> keys;
  for (const auto& key : schema.keys) {
    keys.push_back({&schema, &key, schema.without_numbers(key.path)});
  }
  for (const auto& parts : schema.switches) {
    for (const auto& part : parts.alternatives) {
      if (part.name == schema.chosen(parts)) continue;
      for (auto& inner : every_key(*part.schema)) {
        keys.push_back({inner.schema, inner.key, through_part(parts, part, inner.path)});
      }
    }
  }
  for (const auto& list : schema.lists) {
    auto inner = every_key(*list.entry);
    std::move(inner.begin(), inner.end(), std::back_inserter(keys));
  }
  return keys;
}

std::vector<FoundKey> keys_called(const std::vector<FoundKey>& keys, const std::string& name) {
  return those_that(keys, [&](const FoundKey& one) { return last_name(one.path) == name; });
}

std::vector<FoundKey> keys_with_choice(const std::vector<FoundKey>& keys,
                                       const std::string& value) {
  return those_that(keys, [&](const FoundKey& one) {
    const auto& choices = one.key->range.choices;
    return std::find(choices.begin(), choices.end(), value) != choices.end();
  });
}

std::string other_value_advice(const std::vector<FoundKey>& keys, const std::string& name) {
  const FoundKey* found = nullptr;
  const OtherValue* meant = nullptr;
  for (const auto& one : keys) {
    const OtherValue* other = other_value(one.key->other_values, name);
    if (other == nullptr) continue;
    // A remark tells that another key is needed too: a value without one is nearer.
    if (meant != nullptr && (meant->note.empty() || !other->note.empty())) continue;
    found = &one;
    meant = other;
  }
  if (meant == nullptr) return "";
  return "did you mean `" + meant->value + "`, a value of " + found->path + "?" +
         (meant->note.empty() ? "" : " " + meant->note);
}

}  // namespace stretto::config
