#include "data/documents/tokenizer_lines.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "data/documents/document_texts.h"

namespace stretto::data {
namespace {

class TokenizerLines final : public text::LineSource {
 public:
  explicit TokenizerLines(DocumentInput input)
      : input_(std::move(input)), bad_(input_.bad_samples) {}

  bool next(std::string& line) override {
    while (rest_.empty()) {
      if (!next_text()) return false;
    }
    const size_t end = rest_.find('\n');
    const size_t length = end == std::string_view::npos ? rest_.size() : end + 1;
    line.assign(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return true;
  }

 private:
  bool next_text() {
    bool begins = false;
    while (!texts_ || !texts_->next(rest_, begins)) {
      rest_ = {};
      if (next_path_ == input_.paths.size()) return false;
      texts_.emplace(input_.paths[next_path_++], input_, &bad_);
    }
    return true;
  }

  DocumentInput input_;
  BadSamples bad_;
  size_t next_path_ = 0;
  std::optional<DocumentTexts> texts_;
  std::string_view rest_;  ///< of the text that texts_ gave
};

}  // namespace

std::unique_ptr<text::LineSource> open_tokenizer_lines(DocumentInput input) {
  return std::make_unique<TokenizerLines>(std::move(input));
}

}  // namespace stretto::data
