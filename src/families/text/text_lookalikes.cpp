#include "families/text/text_lookalikes.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/text.h"

namespace stretto::experiment {
namespace {

// UTF-8 of spaces of several widths, of none, and of what joins or orders bytes.
constexpr std::array<std::string_view, 12> kSpaces{"\u00A0", "\u1680", "\u2002", "\u2003",
                                                   "\u2009", "\u200A", "\u200B", "\u202F",
                                                   "\u205F", "\u2060", "\u3000", "\uFEFF"};

}  // namespace

bool is_invisible_line(std::string_view line) {
  bool has_wide = false;
  while (!line.empty()) {
    const char first = line.front();
    if (first == ' ' || (first >= '\t' && first <= '\r')) {
      line.remove_prefix(1);
      continue;
    }
    const auto* space = std::find_if(kSpaces.begin(), kSpaces.end(),
                                     [&](std::string_view one) { return line.starts_with(one); });
    if (space == kSpaces.end()) return false;
    has_wide = true;
    line.remove_prefix(space->size());
  }
  return has_wide;
}

void TextLookalikes::read(const std::string& path, std::string_view text) {
  if (path != path_) end_file();
  path_ = path;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    look(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

void TextLookalikes::look(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++lines_;
  returns_ += std::count(line.begin(), line.end(), '\r');
  if (is_invisible_line(line)) ++invisible_;
}

void TextLookalikes::end_file() {
  note(invisible_, path_, all_invisible_);
  note(returns_ > lines_ ? returns_ : 0, path_, all_returns_);
  lines_ = returns_ = invisible_ = 0;
}

void TextLookalikes::note(int64_t count, const std::string& path, Found& found) {
  if (count == 0) return;
  if (found.files++ == 0) found.first = path;
  found.count += count;
}

// "a.txt" or "a.txt and 2 others".
std::string TextLookalikes::files_text(const Found& found) {
  const std::string first = printable(found.first, 4096);
  if (found.files == 1) return first;
  return first + " and " + counted(found.files - 1, "file") + " more";
}

void TextLookalikes::tell(const std::string& key, Preflight& found) {
  end_file();
  if (all_invisible_.count > 0) {
    found.doubts.push_back(
        {key,
         counted(all_invisible_.count, "line") + " of " + files_text(all_invisible_) +
             (all_invisible_.count == 1 ? " looks blank, and has" : " look blank, and have") +
             " spaces such as U+00A0 or U+200B, which are read as text",
         "remove these characters where blank lines are meant"});
  }
  if (all_returns_.count > 0) {
    found.doubts.push_back({key,
                            files_text(all_returns_) + ": " +
                                counted(all_returns_.count, "carriage return") +
                                " inside of lines, more than there are lines",
                            "if they are line ends of an old Macintosh: `tr '\\r' '\\n' < OLD > "
                            "NEW` converts a file"});
  }
}

}  // namespace stretto::experiment
