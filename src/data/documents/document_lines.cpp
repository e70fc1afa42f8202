#include "data/documents/document_lines.h"

#include <memory>
#include <utility>

namespace stretto::data {
namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\f\v") == std::string_view::npos;
}

}  // namespace

DocumentLines::DocumentLines(std::unique_ptr<ByteStream> bytes, std::string name, DocumentEnd end)
    : lines_(std::move(bytes), std::move(name)), end_(end) {}

DocumentLines::DocumentLines(const std::string& path, DocumentEnd end) : lines_(path), end_(end) {}

bool DocumentLines::next(std::string_view& line, bool& begins_document) {
  begins_document = end_ == DocumentEnd::kLine || lines_.line_number() == 0;
  while (lines_.next(line)) {
    if (!is_blank(line)) return true;
    begins_document = true;
  }
  return false;
}

}  // namespace stretto::data
