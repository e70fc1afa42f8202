#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// What a validation shows of its work. A task makes samples, the loop carries them, the report
/// draws each by its kind.
namespace stretto::report {

/// The most code points of one text of a sample, and the most samples, that a report shows.
inline constexpr size_t kMaxText = 1500, kMaxSamples = 50;
/// The most stretches and references that one MarkedTextSample shows.
inline constexpr size_t kMaxStretches = 64, kMaxReferences = 16;
/// The most rows and columns of a MatrixSample.
inline constexpr size_t kMaxMatrix = 40;

/// A text that was made of another, with where the model looked.
struct TextPairSample {
  std::string input, output, reference;
  std::vector<std::string> input_pieces, output_pieces;
  /// [output pieces][input pieces], or of those alone that are drawn; may be empty
  std::vector<std::vector<float>> attention = {};
};

/// Anything that can be told in rows of a label and a text.
struct RowsSample {
  std::vector<std::pair<std::string, std::string>> rows;
};

/// A text with marked stretches: what was found in it, and what should have been.
struct MarkedTextSample {
  /// A stretch of the text; output and reference may overlap.
  struct Stretch {
    std::string text;
    bool is_output = false, is_reference = false;
    bool operator==(const Stretch&) const = default;
  };
  std::string request;        ///< what was to be found; its heading is TextPairWords::request
  std::vector<Stretch> text;  ///< one after the other; a long text is cut around its marks
  std::string output;         ///< empty: nothing was found
  std::vector<std::string> references;  ///< empty: nothing was to be found
  std::string note;                     ///< beside the output: "exact, 0.93"
};

/// How often each pair occurred: a confusion matrix.
struct MatrixSample {
  std::string title;         ///< "Confusion matrix"
  std::string row_title;     ///< what the rows are: "label"
  std::string column_title;  ///< "predicted"
  std::vector<std::string> rows, columns;
  std::vector<std::vector<int64_t>> counts;  ///< [rows][columns], none below 0
};

/// Something to hear or to see: a file as it would lie on disk (report/media.h has the kinds and
/// how large they may be).
struct MediaSample {
  std::string mime;       ///< "audio/wav", "image/png" or "image/jpeg"
  std::string bytes;      ///< empty: nothing to play or to draw, and `note` says why
  std::string words;      ///< what it is: the text that was spoken, a caption
  std::string note = {};  ///< beside the words: "2.1 s"
  /// What else is told of it, as of a RowsSample: its label, what was recognised, the loss.
  std::vector<std::pair<std::string, std::string>> rows = {};
};

using Sample =
    std::variant<TextPairSample, RowsSample, MarkedTextSample, MatrixSample, MediaSample>;

}  // namespace stretto::report
