#include "cli/input.h"

#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace stretto::cli {
namespace {

class StdinStream : public data::ByteStream {
 public:
  size_t read(char* buffer, size_t capacity) override {
    while (true) {
      const ssize_t count = ::read(STDIN_FILENO, buffer, capacity);
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) throw_io_error("cannot read", "stdin", errno);
    }
  }
};

}  // namespace

data::LineReader open_lines(const std::string& path) {
  if (path.empty() || path == "-") {
    return data::LineReader(std::make_unique<StdinStream>(), "stdin");
  }
  return data::LineReader(path);
}

std::vector<std::string> read_lines(const std::string& path) {
  auto reader = open_lines(path);
  std::vector<std::string> lines;
  std::string_view line;
  while (reader.next(line)) lines.emplace_back(line);
  return lines;
}

}  // namespace stretto::cli
