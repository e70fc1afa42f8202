#include "data/documents/document_lines.h"

#include <memory>
#include <utility>

#include "base/error.h"

namespace stretto::data {

bool is_blank_line(std::string_view line) {
  return line.find_first_not_of(" \t\r\f\v") == std::string_view::npos;
}

DocumentLines::DocumentLines(std::unique_ptr<ByteStream> bytes, std::string name, DocumentEnd end,
                             BadSamples* bad)
    : lines_(std::move(bytes), std::move(name)), end_(end), bad_(bad) {}

DocumentLines::DocumentLines(const std::string& path, DocumentEnd end, BadSamples* bad)
    : lines_(path), end_(end), bad_(bad) {}

bool DocumentLines::next(std::string_view& line, bool& begins_document) {
  const bool keeps_blank = end_ == DocumentEnd::kEachLine;
  begins_document = keeps_blank || end_ == DocumentEnd::kLine || lines_.line_number() == 0;
  while (true) {
    try {
      if (!lines_.next(line)) return false;
      if (keeps_blank || !is_blank_line(line)) return true;
      begins_document = true;
    } catch (const SampleError& error) {
      const SampleError fault = with_advice(error);
      if (bad_ == nullptr) throw fault;
      if (!bad_->skips()) throw_all(fault);
      bad_->add(fault);
    }
  }
}

/// Text of one endless line can be read in another way.
SampleError DocumentLines::with_advice(const SampleError& error) const {
  if (end_ != DocumentEnd::kEachLine || !lines_.refused_long()) return error;
  return {error.file(), error.fault(),
          "text without line ends is read with data.format = \"documents\"; a single line of this "
          "kind can be split or removed"};
}

/// Looks for more such lines in the rest of the file. What else is wrong there comes behind them.
void DocumentLines::throw_all(const SampleError& first) {
  bad_->add(first);
  std::string_view line;
  for (bool more = true; more;) {
    try {
      more = lines_.next(line);
    } catch (const SampleError& error) {
      bad_->add(with_advice(error));
    } catch (const Error&) {
      break;
    }
  }
  bad_->end_file();
  throw first;  // not reached: there was one
}

}  // namespace stretto::data
