#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "config/schema.h"

namespace stretto::testing {

/// Whether a key counts with the values that stand in `options`, as declarations say (`read_with`
/// and the like). Tests hold it against what is computed.
template <class Options>
bool is_read(const std::string& path, Options options) {
  const auto schema = config::schema_of(options);
  const std::function<bool(const config::Key&)> counts = [&](const config::Key& key) {
    const auto& readers = key.readers;
    return readers.empty() || std::any_of(readers.begin(), readers.end(), [&](const auto& reader) {
             const config::Key& deciding_key = *schema.find(reader.deciding_key);
             return config::reads_with(reader, config::chosen_value(deciding_key)) &&
                    counts(deciding_key);
           });
  };
  return counts(*schema.find(path));
}

}  // namespace stretto::testing
