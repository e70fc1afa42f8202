#pragma once

#include <string>
#include <vector>

namespace stretto::log {

/// The last lines, at most eight, that `set_quiet` kept from the screen.
std::vector<std::string> withheld_lines();

}  // namespace stretto::log
