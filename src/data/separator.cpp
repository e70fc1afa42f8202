#include "data/separator.h"

#include <algorithm>
#include <cstddef>

namespace stretto::data {

bool is_separator(std::string_view text) {
  return text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80 &&
         std::string_view("\"\r\n").find(text[0]) == std::string_view::npos && text[0] != '\0';
}

char other_separator(std::string_view line, char separator) {
  char best = '\0';
  std::ptrdiff_t most = 0;
  for (const char candidate : {';', '|', ',', '\t'}) {
    const auto found = std::count(line.begin(), line.end(), candidate);
    if (candidate == separator || found <= most) continue;
    best = candidate;
    most = found;
  }
  return best;
}

std::string advice_on_separator(char separator) {
  return "set data.separator = \"" + (separator == '\t' ? "\\t" : std::string(1, separator)) + "\"";
}

}  // namespace stretto::data
