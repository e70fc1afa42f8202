#include "cli/input.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "data/byte_stream.h"

namespace stretto::cli {
namespace {

constexpr size_t kMaxHeldLines = size_t{1} << 24;
constexpr uint64_t kMaxHeldBytes = uint64_t{4} << 30;

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

bool is_stdin(const std::string& path) {
  return path.empty() || path == "-";
}

std::unique_ptr<data::ByteStream> open_input(const std::string& path) {
  if (is_stdin(path)) return std::make_unique<StdinStream>();
  return data::open_bytes(path);
}

}  // namespace

data::LineReader open_lines(const std::string& path) {
  return data::LineReader(open_input(path), input_name(path));
}

std::string read_text(const std::string& path, size_t max_bytes) {
  return data::read_whole(*open_input(path), input_name(path), max_bytes);
}

WordsOfLines words_of_lines(const std::vector<std::string>& words) {
  WordsOfLines found;
  for (const auto& word : words) {
    if (is_override(word)) {
      found.overrides.push_back(word);
      continue;
    }
    if (word != "-" && !std::filesystem::exists(data::parse_input_path(word).file)) {
      throw Error(ExitCode::kUsage, "no file " + word, "without files, stdin is read");
    }
    found.files.push_back(word);
  }
  return found;
}

std::string input_name(const std::string& path) {
  return is_stdin(path) ? "stdin" : path;
}

std::vector<std::string> read_lines(const std::string& path) {
  auto reader = open_lines(path);
  std::vector<std::string> lines;
  std::string_view line;
  uint64_t bytes = 0;
  while (reader.next(line)) {
    bytes += line.size();
    if (lines.size() == kMaxHeldLines || bytes > kMaxHeldBytes) {
      throw Error(ExitCode::kBadData,
                  reader.name() + ": more than " +
                      with_thousands(static_cast<int64_t>(kMaxHeldLines)) + " lines or " +
                      human_bytes(kMaxHeldBytes) + ", which are all held in memory",
                  "give a part of it: head -n 1000000");
    }
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace stretto::cli
