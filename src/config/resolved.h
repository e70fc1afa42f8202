#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/schema.h"

namespace stretto::config {

/// Every key with its value, in TOML that reads back to the same values; of keys that are gone,
/// those that were given.
///
/// @param defaults  with it, a comment behind each value gives default, unit and meaning
std::string to_toml(const Schema& schema, const Schema* defaults = nullptr);

/// What a line of differences() says behind each of the two values.
struct DifferenceWords {
  std::string stored = "in the run", now = "now";
};

/// Fixed keys (all but those that is_free() names, and those named in `fixed_as_well`) whose values
/// differ, as "optim.lr: 0.0005 in the run, 0.001 now"; of a list of another length this alone,
/// "model.encoders: 2 tables in the run, 1 table now".
std::vector<std::string> differences(const Schema& stored, const Schema& now,
                                     const std::vector<std::string>& fixed_as_well,
                                     const DifferenceWords& words = {});

/// XXH3-64 over the fixed keys and their values: equal for equal experiments. Keys that are gone
/// (`retired`) count as fixed ones.
///
/// @param counts  which of the fixed keys count; empty = all. Keys that are gone always do: a text
///                without one may have been written when it was gone already
uint64_t fixed_hash(const Schema& schema, const std::vector<std::string>& fixed_as_well,
                    const std::function<bool(const Key&)>& counts = {});

}  // namespace stretto::config
