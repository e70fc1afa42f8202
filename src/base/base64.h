#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stretto {

/// The bytes in the alphabet of RFC 4648, section 4, padded with `=`, without line ends.
std::string base64(std::string_view bytes);

/// The bytes of such a text; nothing if it has another character, another padding or bits that
/// base64() never sets.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace stretto
