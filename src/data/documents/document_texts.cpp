#include "data/documents/document_texts.h"

#include <algorithm>
#include <stdexcept>

#include "base/text.h"

namespace stretto::data {
namespace {

using Texts = std::variant<DocumentLines, ExactText, JsonDocuments>;

Texts open_texts(const std::string& path, const DocumentInput& input, BadSamples* bad) {
  const bool is_exact = input.text == DocumentText::kExact;
  switch (input.end) {
    case DocumentEnd::kJsonLine:
      if (is_exact) return JsonDocuments(path, input.json_key, bad);
      break;
    case DocumentEnd::kFile:
    case DocumentEnd::kMarker:
      if (is_exact) return ExactText(path, {.end = input.end, .marker = input.marker}, bad);
      break;
    case DocumentEnd::kEachLine:
      if (is_exact) throw std::invalid_argument("exact text has no documents of blank lines");
      return DocumentLines(path, input.end, bad);
    case DocumentEnd::kBlankLine:
    case DocumentEnd::kLine:
      if (is_exact) return ExactText(path, {.end = input.end, .marker = {}}, bad);
      return DocumentLines(path, input.end, bad);
  }
  throw std::invalid_argument("documents of joined lines end at blank lines or line ends");
}

}  // namespace

DocumentTexts::DocumentTexts(const std::string& path, const DocumentInput& input, BadSamples* bad)
    : texts_(open_texts(path, input, bad)) {}

bool DocumentTexts::next(std::string_view& text, bool& begins_document) {
  return std::visit([&](auto& texts) { return texts.next(text, begins_document); }, texts_);
}

int64_t DocumentTexts::line_number() const {
  return std::visit([](const auto& texts) { return texts.line_number(); }, texts_);
}

std::string reading_key(const DocumentInput& input) {
  std::string key;
  switch (input.end) {
    case DocumentEnd::kBlankLine:
      key = " blank_line";
      break;
    case DocumentEnd::kLine:
      key = " line";
      break;
    case DocumentEnd::kEachLine:
      key = " each_line";
      break;
    case DocumentEnd::kJsonLine:
      key = " json " + std::to_string(input.json_key.size()) + " " + input.json_key;
      break;
    case DocumentEnd::kFile:
      key = " file";
      break;
    case DocumentEnd::kMarker:
      key = " marker " + std::to_string(input.marker.size()) + " " + input.marker;
      break;
  }
  return input.text == DocumentText::kExact ? key + " exact" : key;
}

int64_t lines_in(std::string_view text) {
  const auto ends = std::count(text.begin(), text.end(), '\n');
  return ends + (text.empty() || text.ends_with('\n') ? 0 : 1);
}

InvalidLines invalid_lines(std::string_view text, int64_t line) {
  InvalidLines found;
  for (; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    if (!is_valid_utf8(text.substr(0, end))) {
      if (found.count++ == 0) found.first = line;
    }
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return found;
}

}  // namespace stretto::data
