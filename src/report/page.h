#pragma once

#include <string>

namespace stretto::report {

/// What stands between `<!DOCTYPE html>` and `<body>` of a page.
struct PageHead {
  std::string title;
  std::string kind;          ///< behind the title: "Stretto search"
  std::string style = {};    ///< rules beside those of page_style()
  int refresh_seconds = 0;   ///< > 0: the page reloads itself
  bool plays_sound = false;  ///< the page has a player, whose sound is a data: URI
};

/// Scripts and everything that is not in the page itself are forbidden: the policy is
/// `default-src 'none'` but for styles, pictures in data: URIs, and sounds there if it
/// `plays_sound`.
std::string page_head(const PageHead& head);

}  // namespace stretto::report
