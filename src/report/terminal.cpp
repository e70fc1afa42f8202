#include "report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/log.h"

namespace stretto::report {
namespace {

constexpr int kFallbackColumns = 80;

bool environment_is(const char* name, std::string_view value) {
  const char* text = std::getenv(name);
  return text != nullptr && text == value;
}

}  // namespace

bool live_lines_wanted() {
  return ::isatty(STDERR_FILENO) == 1 && !environment_is("TERM", "dumb") && !log::is_quiet();
}

bool colour_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || no_color[0] == '\0';
}

int terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  // A character in the last column would make some terminals wrap the line.
  return (known ? size.ws_col : kFallbackColumns) - 1;
}

void write_stderr(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

std::string decorated(const std::string& line) {
  constexpr std::string_view kDot = "·";
  std::string out;
  size_t begin = 0;
  for (size_t dot; (dot = line.find(kDot, begin)) != std::string::npos; begin = dot + kDot.size()) {
    out += line.substr(begin, dot - begin);
    out += "\x1b[2m·\x1b[0m";
  }
  return out + line.substr(begin);
}

}  // namespace stretto::report
