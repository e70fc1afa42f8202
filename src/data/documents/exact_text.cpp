#include "data/documents/exact_text.h"

#include <utility>

#include "base/error.h"
#include "data/lines.h"

namespace stretto::data {
namespace {

constexpr size_t kReadAtOnce = size_t{256} << 10;
constexpr size_t kMaxCharacterBytes = 4;

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u;
}

/// Where a line that goes on behind `text` is cut: never at its begin.
size_t place_to_cut(std::string_view text) {
  const size_t space = text.rfind(' ');
  if (space != std::string_view::npos && space > 0) return space;
  // Its last character may go on behind it.
  size_t last = text.size() - 1;
  while (continues_character(text[last]) && last + kMaxCharacterBytes > text.size()) --last;
  return static_cast<unsigned char>(text[last]) < 0x80u ? text.size() : last;
}

std::string_view without(std::string_view text, char end) {
  if (text.ends_with(end)) text.remove_suffix(1);
  return text;
}

}  // namespace

ExactText::ExactText(std::unique_ptr<ByteStream> bytes, std::string name, ExactDocuments documents,
                     BadSamples* bad)
    : bytes_(std::move(bytes)),
      name_(std::move(name)),
      documents_(std::move(documents)),
      bad_(bad) {}

ExactText::ExactText(const std::string& path, ExactDocuments documents, BadSamples* bad)
    : ExactText(open_bytes(path), path, std::move(documents), bad) {}

bool ExactText::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  const size_t size = buffer_.size();
  buffer_.resize(size + kReadAtOnce);
  size_t got = 0;
  try {
    got = bytes_->read(buffer_.data() + size, kReadAtOnce);
  } catch (const Error&) {
    if (!is_stopping()) throw;  // else the bad lines before it are told
  }
  buffer_.resize(size + got);
  at_end_ = got == 0;
  return got > 0;
}

/// The next part, whatever it is. It does not depend on how many bytes a read gives.
bool ExactText::take_part() {
  size_t length = 0;
  while (length == 0) {
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const std::string_view reach = rest.substr(0, kMaxPieceBytes);
    const size_t end = reach.find('\n', searched_);
    if (end != std::string_view::npos) {
      length = end + 1;
    } else if (reach.size() == kMaxPieceBytes) {
      length = place_to_cut(reach);
    } else {
      searched_ = reach.size();
      if (at_end_ || !fill()) length = reach.size();
      if (length == 0 && at_end_) return false;
    }
  }
  const auto text = std::string_view(buffer_).substr(begin_, length);
  const bool ends_line = text.ends_with('\n');
  const bool ends_input = at_end_ && begin_ + length == buffer_.size();
  part_ = {.text = text,
           .line = lines_ended_ + 1,
           .begins_line = !in_line_,
           .is_whole_line = !in_line_ && (ends_line || ends_input)};
  begin_ += length;
  searched_ = 0;
  in_line_ = !ends_line;
  lines_ended_ += ends_line ? 1 : 0;
  return true;
}

/// Whether the part may be used. A bad one is an error, or it is left out with the rest of its
/// line.
bool ExactText::is_sound() {
  const bool left_out = std::exchange(leaves_out_, leaves_out_ && in_line_);
  if (left_out) return false;
  const size_t nul = part_.text.find('\0');
  if (nul == std::string_view::npos) return !is_stopping();
  const auto error = nul_byte_error(name_, part_.line, static_cast<int64_t>(nul) + 1);
  if (bad_ == nullptr) throw error;
  bad_->add(error);
  leaves_out_ = in_line_;
  return false;
}

bool ExactText::fetch() {
  while (!has_part_) {
    if (!take_part()) {
      if (is_stopping()) bad_->end_file();
      return false;
    }
    has_part_ = is_sound();
  }
  return true;
}

bool ExactText::ends_document() const {
  if (!part_.is_whole_line || documents_.end == DocumentEnd::kFile) return false;
  const std::string_view line = without(part_.text, '\n');
  if (documents_.end != DocumentEnd::kMarker) return is_blank_line(line);
  return without(line, '\r') == documents_.marker;
}

bool ExactText::next(std::string_view& piece, bool& begins_document) {
  const bool by_line = documents_.end == DocumentEnd::kLine;
  piece_.clear();
  while (fetch()) {
    const bool ends = ends_document();
    const bool is_full = by_line || piece_.size() + part_.text.size() > kMaxPieceBytes;
    if (!piece_.empty() && (ends || is_full)) break;  // the next call begins with this part
    has_part_ = false;
    if (ends || (by_line && part_.begins_line)) begins_ = true;
    if (ends) continue;
    const bool is_first = piece_.empty();
    piece_ += by_line ? without(part_.text, '\n') : part_.text;
    if (!is_first || piece_.empty()) continue;
    line_number_ = part_.line;
    begins_document = std::exchange(begins_, false);
  }
  piece = piece_;
  return !piece_.empty();
}

}  // namespace stretto::data
