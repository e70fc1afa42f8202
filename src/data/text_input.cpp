#include "data/text_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "data/lines.h"

namespace stretto::data {
namespace {

constexpr size_t kPipeBytes = size_t{64} << 10;  // what a pipe holds
constexpr auto kMostBytes = static_cast<size_t>(kMaxLineBytes);
constexpr std::string_view kStdin = "-";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Pipes, terminals and stdin, which cannot be read twice and may keep a reader waiting.
class DescriptorStream final : public ByteStream {
 public:
  DescriptorStream(int descriptor, bool owned, std::string name)
      : descriptor_(descriptor), owned_(owned), name_(std::move(name)) {}
  ~DescriptorStream() override {
    if (owned_) ::close(descriptor_);
  }
  DescriptorStream(const DescriptorStream&) = delete;
  DescriptorStream& operator=(const DescriptorStream&) = delete;

  size_t read(char* buffer, size_t capacity) override {
    for (;;) {
      const ssize_t got = ::read(descriptor_, buffer, capacity);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno == EAGAIN) {  // whoever gave us the descriptor wants it so
        pollfd wait{.fd = descriptor_, .events = POLLIN, .revents = 0};
        ::poll(&wait, 1, -1);
      } else if (errno != EINTR) {
        throw_io_error("cannot read", name_, errno);
      }
    }
  }

 private:
  int descriptor_;
  bool owned_;
  std::string name_;
};

// That open_bytes() would refuse, because training reads its text more than once.
bool may_wait(const std::string& path) {
  if (path == kStdin) return true;
  std::error_code ignored;
  const auto type = std::filesystem::status(path, ignored).type();
  using std::filesystem::file_type;
  return type == file_type::fifo || type == file_type::character || type == file_type::socket;
}

// Data have come, or the other side has closed: either way a read answers at once.
bool is_readable(int descriptor) {
  pollfd look{.fd = descriptor, .events = POLLIN, .revents = 0};
  int found = 0;
  do {
    found = ::poll(&look, 1, 0);
  } while (found < 0 && errno == EINTR);
  return found != 0;
}

}  // namespace

TextInput::TextInput(std::vector<std::string> paths) : paths_(std::move(paths)) {
  if (paths_.empty()) paths_.emplace_back(kStdin);
  for (const auto& path : paths_) {
    if (!may_wait(path)) open(path);
  }
}

bool TextInput::are_files(const std::vector<std::string>& paths) {
  return !paths.empty() && std::none_of(paths.begin(), paths.end(), may_wait);
}

std::optional<int64_t> TextInput::count_lines(const std::vector<std::string>& paths) {
  if (!are_files(paths)) return std::nullopt;
  TextInput input(paths);
  InputLine line;
  int64_t lines = 0;
  while (input.next(line)) ++lines;
  return lines;
}

TextInput::Source TextInput::open(const std::string& path) {
  if (path == kStdin) {
    return {std::make_unique<DescriptorStream>(STDIN_FILENO, false, "stdin"), STDIN_FILENO,
            "stdin"};
  }
  if (!may_wait(path)) return {open_bytes(path), -1, path};
  const int descriptor = retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (descriptor < 0) throw_io_error("cannot open", path, errno);
  return {std::make_unique<DescriptorStream>(descriptor, true, path), descriptor, path};
}

void TextInput::open_next() {
  source_ = open(paths_[next_path_++]);
  at_end_ = false;
  number_ = 0;
}

bool TextInput::next(InputLine& line) {
  for (;;) {
    if (const auto end = line_end()) {
      line = take(*end);
      return true;
    }
    if (!at_end_) {
      read_some();
    } else if (has_rest()) {  // the last line needs no '\n'
      line = take(buffer_.size());
      return true;
    } else if (next_path_ < paths_.size()) {
      open_next();
    } else {
      return false;
    }
  }
}

bool TextInput::ready() {
  for (;;) {
    if (line_end()) return true;
    if (!at_end_) {
      if (source_.descriptor >= 0 && !is_readable(source_.descriptor)) return false;
      read_some();
    } else if (has_rest() || next_path_ == paths_.size()) {
      return true;
    } else if (may_wait(paths_[next_path_])) {
      return false;  // to open a pipe may be to wait for its other side
    } else {
      open_next();
    }
  }
}

bool TextInput::waits_for_a_person() {
  if (ready()) return false;
  const int descriptor = !at_end_                       ? source_.descriptor
                         : paths_[next_path_] == kStdin ? STDIN_FILENO
                                                        : -1;
  return descriptor >= 0 && ::isatty(descriptor) == 1;
}

void TextInput::read_some() {
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  if (buffer_.size() > kMostBytes + kPipeBytes) {  // and no end in sight
    dropped_ += buffer_.size();
    buffer_.clear();
    searched_ = 0;
  }
  const size_t before = buffer_.size();
  buffer_.resize(before + kPipeBytes);
  const size_t got = source_.bytes->read(buffer_.data() + before, kPipeBytes);
  buffer_.resize(before + got);
  at_end_ = got == 0;
}

std::optional<size_t> TextInput::line_end() {
  const size_t found = buffer_.find('\n', searched_);
  searched_ = found == std::string::npos ? buffer_.size() : found;
  if (found == std::string::npos) return std::nullopt;
  return found;
}

// The line from begin_ to `end`, where its '\n' stands, if it has one.
InputLine TextInput::take(size_t end) {
  std::string_view text(buffer_.data() + begin_, end - begin_);
  begin_ = searched_ = std::min(end + 1, buffer_.size());
  if (++number_ == 1 && dropped_ == 0 && text.starts_with(kByteOrderMark)) text.remove_prefix(3);
  if (text.ends_with('\r')) text.remove_suffix(1);
  const size_t size = std::exchange(dropped_, 0) + text.size();
  InputLine line{source_.name + ":" + std::to_string(number_), "", ""};
  if (size > kMostBytes) {
    line.problem = with_thousands(static_cast<int64_t>(size)) + " bytes; a line may have at most " +
                   with_thousands(kMaxLineBytes);
  } else if (text.find('\0') != std::string_view::npos) {
    line.problem = "a NUL byte";
  } else if (!is_valid_utf8(text)) {
    line.problem = "not UTF-8";
  } else {
    line.text = text;
  }
  return line;
}

}  // namespace stretto::data
