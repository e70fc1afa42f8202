#pragma once

namespace stretto {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace stretto
