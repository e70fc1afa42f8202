#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/bad_samples.h"
#include "data/lines.h"

namespace stretto::data {

/// Where a document ends; at the end of each file in any case.
enum class DocumentEnd : uint8_t {
  kBlankLine,
  kLine,      ///< each line is one, but for blank ones
  kEachLine,  ///< of joined lines alone: each line is one, a blank one too, which may have no token
  kFile,      ///< of exact text alone: each file is one
  kMarker,    ///< of exact text alone: at a line that is a marker
  kJsonLine,  ///< of exact text alone: each line is a JSON object, whose text is one
};

/// Nothing, or nothing but ASCII white space.
bool is_blank_line(std::string_view line);

/// The lines of documents in plain text, but for kEachLine without those that are blank. Each file
/// begins a document.
class DocumentLines {
 public:
  /// @param end   kBlankLine, kLine or kEachLine
  /// @param name  what messages call the input
  /// @param bad   collects bad lines of several files; null: the first one is an error at once
  DocumentLines(std::unique_ptr<ByteStream> bytes, std::string name, DocumentEnd end,
                BadSamples* bad = nullptr);
  /// Opens a path of `[data]`: plain, `.gz`, `.zst` or a zip member. Throws as open_bytes() does.
  DocumentLines(const std::string& path, DocumentEnd end, BadSamples* bad = nullptr);

  /// @param line             as it stands there, valid until the next call
  /// @param begins_document  whether it is the first line of one
  /// A line that LineReader refuses is left out of its document as BadSamples says. Or the rest of
  /// the file is read at once, and throws Error(kBadData) with up to ten such lines.
  bool next(std::string_view& line, bool& begins_document);

  int64_t line_number() const { return lines_.line_number(); }  ///< of the last line, from 1

 private:
  [[noreturn]] void throw_all(const SampleError& first);
  SampleError with_advice(const SampleError& error) const;

  LineReader lines_;
  DocumentEnd end_;
  BadSamples* bad_;
};

}  // namespace stretto::data
