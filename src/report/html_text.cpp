#include "report/html_text.h"

#include <algorithm>
#include <cctype>

#include "report/utf8.h"

namespace stretto::report {
namespace {

/// U+202A–202E and U+2066–2069 are E2 80 AA–AE and E2 81 A6–A9.
bool is_direction_override(std::string_view rest) {
  if (rest.size() < 3 || rest[0] != '\xE2') return false;
  const auto second = static_cast<unsigned char>(rest[1]);
  const auto third = static_cast<unsigned char>(rest[2]);
  return (second == 0x80 && third >= 0xAA && third <= 0xAE) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

bool is_c1_control(std::string_view rest) {
  return rest.size() >= 2 && rest[0] == '\xC2' && static_cast<unsigned char>(rest[1]) < 0xA0;
}

bool is_c0_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n') || c == '\x7F';
}

const char* entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return nullptr;
  }
}

constexpr std::string_view kPunctuation = "[]{},";

/// Walks over the document once; a string may go over lines, all else ends with its line.
class TomlHighlighter {
 public:
  explicit TomlHighlighter(std::string_view toml) : rest_(toml) {}

  std::string run() {
    while (!rest_.empty()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = rest_[0];
    if (c == '\n') {
      take(1, nullptr);
      before_equals_ = true;
    } else if (c == '#') {
      take(line_length(), "c");
    } else if (before_equals_ && c == '[' && depth_ == 0) {
      take(section_length(), "s");
      before_equals_ = false;
    } else if (c == '"' || c == '\'') {
      const bool is_key = before_equals_ && depth_ == 0;
      take(string_length(c), is_key ? "k" : "v");
    } else if (c == '=') {
      take(1, nullptr);
      before_equals_ = false;
    } else if (is_word(c)) {
      take(word_length(), before_equals_ && depth_ == 0 ? "k" : "n");
    } else {
      depth_ += c == '[' ? 1 : c == ']' && depth_ > 0 ? -1 : 0;
      take(1, nullptr);
    }
  }

  static bool is_word(char c) {
    return std::isspace(static_cast<unsigned char>(c)) == 0 &&
           kPunctuation.find(c) == std::string_view::npos;
  }

  size_t line_length() const {
    const size_t end = rest_.find('\n');
    return end == std::string_view::npos ? rest_.size() : end;
  }
  size_t section_length() const {
    const size_t comment = rest_.substr(0, line_length()).find('#');
    return comment == std::string_view::npos ? line_length() : comment;
  }
  size_t word_length() const {
    size_t length = 0;
    while (length < rest_.size() && is_word(rest_[length]) && rest_[length] != '=' &&
           rest_[length] != '#') {
      ++length;
    }
    return length == 0 ? 1 : length;
  }
  size_t string_length(char quote) const {
    const std::string triple(3, quote);
    if (rest_.starts_with(triple)) {
      const size_t end = rest_.find(triple, 3);
      return end == std::string_view::npos ? rest_.size() : end + 3;
    }
    const size_t limit = line_length();
    for (size_t i = 1; i < limit; ++i) {
      if (rest_[i] == '\\' && quote == '"') {
        ++i;
      } else if (rest_[i] == quote) {
        return i + 1;
      }
    }
    return limit;
  }

  void take(size_t length, const char* span) {
    const std::string text = escape_html(rest_.substr(0, length));
    out_ +=
        span == nullptr ? text : "<span class=\"" + std::string(span) + "\">" + text + "</span>";
    rest_.remove_prefix(std::min(length, rest_.size()));
  }

  std::string_view rest_;
  std::string out_;
  bool before_equals_ = true;
  int depth_ = 0;
};

}  // namespace

std::string escape_html(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string out;
  out.reserve(valid.size() + valid.size() / 8);
  for (size_t i = 0; i < valid.size(); ++i) {
    const std::string_view rest = std::string_view(valid).substr(i);
    if (const char* replacement = entity(valid[i])) {
      out += replacement;
    } else if (is_c0_control(valid[i])) {
      out += "\uFFFD";
    } else if (is_c1_control(rest)) {
      out += "\uFFFD";
      i += 1;
    } else if (is_direction_override(rest)) {
      i += 2;
    } else {
      out += valid[i];
    }
  }
  return out;
}

std::string escape_html(std::string_view text, size_t max_code_points) {
  // No more bytes than those code points can have are looked at.
  return escape_html(
      ellipsis(valid_utf8(text.substr(0, 4 * max_code_points + 4)), max_code_points));
}

std::string highlight_toml(std::string_view toml) {
  return TomlHighlighter(toml).run();
}

}  // namespace stretto::report
