#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace stretto::report {

inline constexpr size_t kMaxCell = 600;  ///< code points of a cell of a table
inline constexpr size_t kMaxRows = 200;  ///< of a table

/// What a page has around its content.
struct Page {
  std::string title;
  std::string kind;          ///< behind the title, where a browser names the page: "Stretto search"
  std::string over;          ///< above the title: "Hyperparameter search"
  std::string status = {};   ///< beside the title: "running", "finished", "stopped at step 7"
  std::string footer = {};   ///< plain text
  std::string style = {};    ///< rules beside those of page_style()
  int refresh_seconds = 0;   ///< > 0: the page reloads itself
  bool plays_sound = false;  ///< the page has a player, whose sound is a data: URI
};

/// A whole page with its title. Scripts and everything that is not in the page itself are
/// forbidden: the policy is `default-src 'none'`, with exceptions for styles, for pictures in data:
/// URIs, and for sounds there if it `plays_sound`.
/// @param summary  markup below the title, in the header
std::string render_page(const Page& page, const std::string& summary, const std::string& content);

/// A key number: an entry of `<dl class="tiles card">`.
std::string render_tile(const std::string& label, const std::string& value,
                        const std::string& note);

/// A section with a row for each name and value; "" without any.
/// @param note  markup below the table
std::string render_rows(const std::string& title,
                        const std::vector<std::pair<std::string, std::string>>& rows,
                        const std::string& note = "");

}  // namespace stretto::report
