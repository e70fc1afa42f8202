#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "config/toml.h"

/// What was meant by a value that a key does not take.
namespace stretto::config {

/// The value as it was written, for messages: "the string \"fast\"", "the integer 3".
std::string value_as_written(const toml::node& node);

/// The remedy for a value of the wrong type, such as "leave the quotes out"; empty = none.
/// @param quoted  whether a text stood in quotes; on the command line it need not
std::string type_hint(const Key& key, const toml::node& node, bool quoted);

/// What else a value is called, by letters and digits alone; nullptr = none of them.
const OtherValue* other_value(const std::vector<OtherValue>& other_values, const std::string& text);

/// "did you mean \"mixed_bf16\"?" for a text that is none of the key's choices: by spelling and by
/// Key::other_values; empty = nothing is near.
std::string choice_hint(const Key& key, const std::string& text);
/// The same for choices that a rule has, with what else they are called.
std::string choice_hint(const std::vector<std::string>& choices,
                        const std::vector<OtherValue>& other_values, const std::string& text);

}  // namespace stretto::config
