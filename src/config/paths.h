#pragma once

#include <string>

/// The ends of a dotted path.
namespace stretto::config {

/// The last name of a path: "cell" for "model.encoder.cell".
inline std::string last_name(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

/// The section of a key: "model.encoder" for "model.encoder.cell"; empty for "model".
inline std::string section_above(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

}  // namespace stretto::config
