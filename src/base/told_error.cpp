#include "base/told_error.h"

#include "base/text.h"

namespace stretto {

std::string last_told_error(std::string_view output) {
  std::string last;
  for (const auto& line : split(output, '\n')) {
    if (line.starts_with(kErrorPrefix)) last = line.substr(kErrorPrefix.size());
  }
  return last;
}

}  // namespace stretto
