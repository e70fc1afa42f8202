#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/bad_samples.h"
#include "data/byte_stream.h"
#include "data/documents/document_lines.h"

namespace stretto::data {

/// Longest piece of a document. A shorter document is one piece, and is tokenised as a whole.
inline constexpr size_t kMaxPieceBytes = size_t{1} << 20;

/// How documents of exact text are told apart.
struct ExactDocuments {
  DocumentEnd end = DocumentEnd::kFile;
  std::string marker = {};  ///< of DocumentEnd::kMarker
};

/// The documents of a file with their bytes as they stand there, in pieces: with line ends, also
/// CR LF, blank lines, spaces and a byte order mark. Each file begins a document. What tells
/// documents apart is not part of one:
///
///     kFile        nothing: a file is a document
///     kMarker      a line that is the marker
///     kBlankLine   blank lines in a row
///     kLine        the LF that ends a line; blank lines are no documents
///
/// A longer document than kMaxPieceBytes is cut behind a line end. A longer line is cut in front of
/// a space, or between two characters. A line may have any length, and memory is a few pieces.
class ExactText {
 public:
  /// @param name  what messages call the input
  /// @param bad   collects bad lines of several files; null: the first one is an error at once
  ExactText(std::unique_ptr<ByteStream> bytes, std::string name, ExactDocuments documents,
            BadSamples* bad = nullptr);
  /// Opens a path of `[data]`: plain, `.gz`, `.zst` or a zip member. Throws as open_bytes() does.
  ExactText(const std::string& path, ExactDocuments documents, BadSamples* bad = nullptr);

  /// @param piece            valid until the next call; not empty
  /// @param begins_document  whether it is the first of one
  /// A line with a NUL byte is left out as BadSamples says; of a line that is longer than a piece,
  /// the rest is. Or the rest of the file is read at once, and throws Error(kBadData) with up to
  /// ten such lines.
  bool next(std::string_view& piece, bool& begins_document);

  int64_t line_number() const { return line_number_; }  ///< in which the last piece begins, from 1

 private:
  /// A line with its end, or a part of one that is longer than a piece.
  struct Part {
    std::string_view text;
    int64_t line = 0;
    bool begins_line = false, is_whole_line = false;
  };
  bool fetch();
  bool take_part();
  bool fill();
  bool is_sound();
  bool is_stopping() const { return bad_ != nullptr && bad_->is_stopping(); }
  bool ends_document() const;

  std::unique_ptr<ByteStream> bytes_;
  std::string name_;
  ExactDocuments documents_;
  BadSamples* bad_;
  std::string buffer_;
  size_t begin_ = 0, searched_ = 0;  // searched_ bytes behind begin_ have no line end
  bool at_end_ = false;
  int64_t lines_ended_ = 0;
  bool in_line_ = false, leaves_out_ = false;  // leaves_out_ the rest of this line
  Part part_;
  bool has_part_ = false;
  std::string piece_;
  bool begins_ = true;  // the next piece begins a document
  int64_t line_number_ = 0;
};

}  // namespace stretto::data
