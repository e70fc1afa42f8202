#pragma once

#include <string>

/// The ends of a dotted path.
namespace stretto::config {

/// Of "model.encoder.cell" it is "cell".
inline std::string last_name(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

/// Of "model.encoder.cell" it is "model.encoder"; of "model" it is empty.
inline std::string section_above(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

}  // namespace stretto::config
