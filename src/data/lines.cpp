#include "data/lines.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/pairs/corpus.h"

namespace stretto::data {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

/// One line after the other of several inputs, or of one column of them.
class Lines final : public text::LineSource {
 public:
  Lines(std::vector<std::string> paths, int64_t column)
      : paths_(std::move(paths)), column_(column) {}

  bool next(std::string& line) override {
    std::string_view view;
    while (true) {
      if (reader_ != nullptr && reader_->next(view)) break;
      if (next_path_ == paths_.size()) return false;
      reader_ = std::make_unique<LineReader>(paths_[next_path_++]);
    }
    if (column_ > 0 && !tsv_column(view, column_, view)) {
      throw_missing_column(reader_->name(), reader_->line_number(), column_);
    }
    line.assign(view);
    return true;
  }

 private:
  std::vector<std::string> paths_;
  int64_t column_;  ///< 0 = the whole line
  size_t next_path_ = 0;
  std::unique_ptr<LineReader> reader_;
};

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
  const bool any = find_end(length);
  if (!any) return false;
  ++line_number_;
  line = {buffer_.data() + begin_, length};
  begin_ = std::min(begin_ + length + 1, end_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.size() > static_cast<size_t>(kMaxLineBytes)) {
    begin_ = static_cast<size_t>(line.data() - buffer_.data());
    --line_number_;
    throw_too_long();
  }
  if (const size_t nul = line.find('\0'); nul != std::string_view::npos) {
    throw Error(ExitCode::kBadData,
                name_ + ":" + std::to_string(line_number_) + ":" + std::to_string(nul + 1) +
                    ": a NUL byte, so this is not UTF-8 text",
                "UTF-16 text: convert it with `iconv -f UTF-16 -t UTF-8`; a compressed file needs "
                "its .gz or .zst ending; stray NUL bytes: remove them with `tr -d '\\000'`");
  }
  return true;
}

/// Reads on to the end of the line to tell how long it is; keeps nothing of it.
void LineReader::throw_too_long() {
  int64_t length = 0;
  while (true) {
    const void* found = std::memchr(buffer_.data() + begin_, '\n', end_ - begin_);
    if (found != nullptr) {
      length += static_cast<const char*>(found) - (buffer_.data() + begin_);
      break;
    }
    length += static_cast<int64_t>(end_ - begin_);
    begin_ = end_;
    if (!fill()) break;
  }
  throw Error(ExitCode::kBadData,
              name_ + ":" + std::to_string(line_number_ + 1) + ": this line has " +
                  with_thousands(length) + " bytes; a line may have at most " +
                  with_thousands(kMaxLineBytes),
              "text is read sentence by sentence: split this line, or remove it on both sides");
}

bool tsv_column(std::string_view line, int64_t column, std::string_view& value) {
  for (int64_t i = 1; i < column; ++i) {
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return false;
    line.remove_prefix(tab + 1);
  }
  value = line.substr(0, line.find('\t'));
  return true;
}

void throw_missing_column(const std::string& name, int64_t line_number, int64_t column) {
  throw Error(ExitCode::kBadData,
              name + ":" + std::to_string(line_number) + ": this line has no column " +
                  std::to_string(column),
              "columns are separated by one tab and counted from 1: look at data.src_column and "
              "data.tgt_column, or repair the line");
}

std::unique_ptr<text::LineSource> open_lines(const std::vector<std::string>& paths) {
  return std::make_unique<Lines>(paths, 0);
}

std::unique_ptr<text::LineSource> open_tsv_column(const std::vector<std::string>& paths,
                                                  int64_t column) {
  return std::make_unique<Lines>(paths, column);
}

}  // namespace stretto::data
