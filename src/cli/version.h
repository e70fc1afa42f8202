#pragma once

namespace stretto::cli {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace stretto::cli
