#include "data/squad/code_points.h"

#include <algorithm>

namespace stretto::data {

CodePoints::CodePoints(std::string_view text) : text_(text) {
  begins_.reserve(text.size() + 1);
  for (size_t i = 0; i < text.size(); ++i) {
    const bool continues = (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
    if (!continues) begins_.push_back(i);
  }
  begins_.push_back(text.size());
}

int64_t CodePoints::code_point_at(int64_t byte) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), static_cast<size_t>(byte));
  return after - begins_.begin() - 1;
}

std::string_view CodePoints::slice(int64_t begin, int64_t end) const {
  const auto first = static_cast<size_t>(byte_at(begin));
  return text_.substr(first, static_cast<size_t>(byte_at(end)) - first);
}

}  // namespace stretto::data
