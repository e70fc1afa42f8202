#include "text/stream_decoder.h"

#include <string_view>

namespace stretto::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Bytes of `text` that stay, whatever tokens follow. A character that is not whole yet shows as
/// U+FFFD: one, or one for each of its up to three bytes.
size_t certain_bytes(std::string_view text) {
  constexpr int kMostBytes = 3;
  for (int i = 0; i < kMostBytes && text.ends_with(kReplacement); ++i) {
    text.remove_suffix(kReplacement.size());
  }
  return text.size();
}

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, const std::vector<int64_t>& context)
    : tokenizer_(tokenizer), window_(context), given_(tokenizer.decode(context)) {
  shorten(given_);
}

std::string StreamDecoder::add(int64_t id) {
  window_.push_back(id);
  const std::string text = tokenizer_.decode(window_);
  const size_t certain = certain_bytes(text);
  std::string fresh = take(text, certain);
  if (window_.size() > kWindow && certain == text.size() && given_.size() == text.size()) {
    shorten(text);
  }
  return fresh;
}

std::string StreamDecoder::finish() {
  const std::string text = tokenizer_.decode(window_);
  return take(text, text.size());
}

// Text that was returned cannot be taken back. Should a tokenizer change it all the same, nothing
// is returned until its text goes on from there again.
std::string StreamDecoder::take(const std::string& text, size_t end) {
  if (end <= given_.size() || !text.starts_with(given_)) return {};
  std::string fresh = text.substr(given_.size(), end - given_.size());
  given_.append(fresh);
  return fresh;
}

// Fewer tokens will do where their text is the end of what all of them say. Tokenizers treat what
// comes first otherwise, and all else alike: a text that is not empty goes on as any other.
void StreamDecoder::shorten(const std::string& text) {
  if (window_.size() <= kKept) return;
  const std::vector<int64_t> last(window_.end() - kKept, window_.end());
  std::string short_text = tokenizer_.decode(last);
  if (short_text.empty() || !text.ends_with(short_text)) return;
  window_ = last;
  given_ = std::move(short_text);
}

}  // namespace stretto::text
