#pragma once

#include <string>
#include <string_view>

namespace stretto {

/// What log::error() writes in front of a message.
constexpr std::string_view kErrorPrefix = "error: ";

/// The last error in what a program printed, without its prefix; empty where it told of none. It is
/// as the program wrote it: printable() makes it fit to be shown.
std::string last_told_error(std::string_view output);

}  // namespace stretto
