#pragma once

#include <string>
#include <vector>

#include "config/schema.h"

/// Keys that a word may mean, wherever they stand.
namespace stretto::config {

/// A key that a file may have: also one of a part that is not chosen, or of an entry of a list.
struct FoundKey {
  const Schema* schema;  ///< where the keys are that it counts with
  const Key* key;
  std::string path;  ///< as describe() takes it: "model.encoder.lstm.cell"
};

/// All of them. They point into the schema, which must live as long.
std::vector<FoundKey> every_key(const Schema& schema);

/// Those of the last name.
std::vector<FoundKey> keys_called(const std::vector<FoundKey>& keys, const std::string& name);
/// Those that have the value among their choices.
std::vector<FoundKey> keys_with_choice(const std::vector<FoundKey>& keys, const std::string& value);

/// "did you mean `lstm`, a value of model.encoder.name?" for what else a value is called
/// (Key::other_values); empty = it is no such name.
std::string other_value_advice(const std::vector<FoundKey>& keys, const std::string& name);

}  // namespace stretto::config
