#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema.h"

namespace stretto::config {

/// Every key with its value, in TOML that reads back to the same values.
///
/// @param defaults  with it, a comment behind each value gives default, unit and meaning
std::string to_toml(const Schema& schema, const Schema* defaults = nullptr);

/// What a line of differences() says behind each of the two values.
struct DifferenceWords {
  std::string stored = "in the run", now = "now";
};

/// Fixed keys (Change::kFixed, and those named in `fixed_as_well`) whose values differ, as
/// "optim.lr: 0.0005 in the run, 0.001 now"; of a list of another length this alone,
/// "model.encoders: 2 tables in the run, 1 table now".
std::vector<std::string> differences(const Schema& stored, const Schema& now,
                                     const std::vector<std::string>& fixed_as_well,
                                     const DifferenceWords& words = {});

/// XXH3-64 over the fixed keys and their values: equal for equal experiments.
uint64_t fixed_hash(const Schema& schema, const std::vector<std::string>& fixed_as_well);

}  // namespace stretto::config
