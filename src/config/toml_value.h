#pragma once

#include "config/schema.h"
#include "config/toml.h"

namespace stretto::config {

/// Stores a TOML value into the member of an options struct. An integer is a number, but a number
/// is no integer; a single value stands for a list of one.
/// @return false: it is of another type, and the member stays as it was
bool store(const toml::node& node, const ValuePtr& target);

}  // namespace stretto::config
