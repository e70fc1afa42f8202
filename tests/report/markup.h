#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stretto::testing {

/// The page is written as XML, so one pass with a stack proves that every element is closed in
/// order, every attribute quoted, and no bare `<` or `&` is left. @return "" or what is wrong.
inline std::string markup_error(std::string_view page) {
  std::vector<std::string> open;
  for (size_t at = 0; at < page.size(); ++at) {
    if (page[at] == '&') {
      const size_t end = page.find(';', at);
      if (end == std::string_view::npos || end - at > 6) return "bare & at " + std::to_string(at);
    }
    if (page[at] != '<') continue;
    if (page.substr(at).starts_with("<!DOCTYPE html>")) continue;
    if (page.substr(at).starts_with("<style>")) {
      at = page.find("</style>", at) + 7;
      continue;
    }
    const bool closing = page[at + 1] == '/';
    size_t end = at + 1;
    for (bool quoted = false; end < page.size() && (quoted || page[end] != '>'); ++end) {
      if (page[end] == '"') quoted = !quoted;
      if (page[end] == '<') return "< within a tag at " + std::to_string(at);
    }
    const size_t begin = at + (closing ? 2 : 1);
    const std::string name(page.substr(begin, page.find_first_of(" />", begin) - begin));
    if (closing) {
      if (open.empty() || open.back() != name) return "unexpected </" + name + ">";
      open.pop_back();
    } else if (page[end - 1] != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

}  // namespace stretto::testing
