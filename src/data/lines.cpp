#include "data/lines.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/bad_samples.h"

namespace stretto::data {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteStream> bytes, std::string name)
    : bytes_(std::move(bytes)), name_(std::move(name)), buffer_(2 * kReadBytes, '\0') {
  while (end_ < 3 && fill()) {
  }
  if (std::string_view(buffer_.data(), end_).starts_with("\xEF\xBB\xBF")) begin_ = 3;
}

LineReader::LineReader(const std::string& path) : LineReader(open_bytes(path), path) {}

/// Makes room behind what is still unread, and reads on. @return false at the end of the input
bool LineReader::fill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kReadBytes) buffer_.resize(end_ + kReadBytes);
  const size_t got = bytes_->read(buffer_.data() + end_, kReadBytes);
  end_ += got;
  at_end_ = got == 0;
  return !at_end_;
}

/// Length of the next line without its '\n'; false when the input has no more lines.
bool LineReader::find_end(size_t& length) {
  size_t searched = 0;
  while (true) {
    const char* from = buffer_.data() + begin_ + searched;
    if (const void* found = std::memchr(from, '\n', end_ - begin_ - searched)) {
      length = static_cast<size_t>(static_cast<const char*>(found) - buffer_.data()) - begin_;
      return true;
    }
    searched = end_ - begin_;
    if (searched > static_cast<size_t>(kMaxLineBytes) + 1) throw_too_long();
    if (!fill()) break;
  }
  length = end_ - begin_;
  return length > 0;
}

bool LineReader::next(std::string_view& line) {
  size_t length = 0;
  refused_long_ = false;
  const bool any = find_end(length);
  if (!any) return false;
  ++line_number_;
  line = {buffer_.data() + begin_, length};
  if (line_number_ == 1 && begin_ + length == end_) require_line_ends(line);
  begin_ = std::min(begin_ + length + 1, end_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() > static_cast<size_t>(kMaxLineBytes)) {
    begin_ = static_cast<size_t>(line.data() - buffer_.data());
    --line_number_;
    throw_too_long();
  }
  if (const size_t nul = line.find('\0'); nul != std::string_view::npos) {
    refused_quotes_ = std::count(line.begin(), line.end(), '"');
    throw nul_byte_error(name_, line_number_, static_cast<int64_t>(nul) + 1);
  }
  return true;
}

/// One '\r' may be text; several without any '\n' are the line ends of an old Macintosh,
/// which some spreadsheets still write.
/// @param text  from the begin of the file on
void LineReader::require_line_ends(std::string_view text) const {
  if (text.find('\n') != std::string_view::npos) return;
  if (std::count(text.begin(), text.end(), '\r') < 2) return;
  throw Error(ExitCode::kBadData,
              name_ + ": lines end with CR alone, and LF ends a line, so this is one line",
              "convert the file with `tr '\\r' '\\n' < OLD > NEW`");
}

/// Reads on to the end of the line to tell how long it is; keeps nothing of it.
void LineReader::throw_too_long() {
  if (line_number_ == 0) require_line_ends({buffer_.data() + begin_, end_ - begin_});
  int64_t length = 0;
  refused_quotes_ = 0;
  refused_long_ = true;
  const auto count_quotes = [&](size_t end) {
    refused_quotes_ += std::count(buffer_.data() + begin_, buffer_.data() + end, '"');
  };
  while (true) {
    const void* found = std::memchr(buffer_.data() + begin_, '\n', end_ - begin_);
    if (found != nullptr) {
      const auto rest = static_cast<const char*>(found) - (buffer_.data() + begin_);
      length += rest;
      count_quotes(begin_ + static_cast<size_t>(rest));
      begin_ += static_cast<size_t>(rest) + 1;
      break;
    }
    length += static_cast<int64_t>(end_ - begin_);
    count_quotes(end_);
    begin_ = end_;
    if (!fill()) break;
  }
  ++line_number_;
  throw SampleError(
      name_,
      ":" + std::to_string(line_number_) + ": this line has " + with_thousands(length) +
          " bytes; a line may have at most " + with_thousands(kMaxLineBytes),
      "split this line, or remove it here and in the files that go with this one line by line");
}

SampleError nul_byte_error(const std::string& name, int64_t line, int64_t column) {
  return SampleError(
      name,
      ":" + std::to_string(line) + ":" + std::to_string(column) +
          ": a NUL byte, so this is not UTF-8 text",
      "UTF-16 text: convert it with `iconv -f UTF-16 -t UTF-8`; a compressed file needs its .gz or "
      ".zst ending; stray NUL bytes: remove them with `tr -d '\\000'`");
}

bool column_of(std::string_view line, int64_t column, char separator, std::string_view& value) {
  for (int64_t i = 1; i < column; ++i) {
    const size_t end = line.find(separator);
    if (end == std::string_view::npos) return false;
    line.remove_prefix(end + 1);
  }
  value = line.substr(0, line.find(separator));
  return true;
}

}  // namespace stretto::data
