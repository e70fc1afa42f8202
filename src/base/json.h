#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/allowance.h"

namespace stretto {

/// Parses JSON that may be broken or hostile. Refused, besides what the grammar refuses: nesting
/// deeper than 64, a key twice in one object, invalid UTF-8, more than `max_bytes` (0 = no limit),
/// and what would take more memory than an Allowance has.
///
/// @param where  the file, for the message
/// @param part_at  the line in which `bytes` begin; 0: they are the whole file
/// Throws Error(kBadData) as "<where>:<line>:<column>: <reason>". The place is missing of a key
/// that stands twice, and of deep nesting; of a part of a file, its line is there.
nlohmann::json parse_json(std::string_view bytes, std::string_view where, size_t max_bytes,
                          size_t part_at = 0);
/// The same as a part of a larger reading, whose allowance has the memory of the result.
nlohmann::json parse_json(std::string_view bytes, std::string_view where, size_t max_bytes,
                          Allowance& allowance, size_t part_at = 0);

/// JSON as it comes back from a file: bytes that are not UTF-8, as in names of files, are U+FFFD.
nlohmann::json as_stored(const nlohmann::json& json);

/// The text of an object for a small file, with a `checksum` of all its other members.
std::string sealed_json(nlohmann::json object);
/// Whether the checksum of an object, if it has one, is that of its other members.
bool is_intact(const nlohmann::json& object);

}  // namespace stretto
