#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

/// What a validation shows of its work. A task makes samples, the loop carries them, the report
/// draws each by its kind.
namespace stretto::report {

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

using Sample = std::variant<TextPairSample, RowsSample>;

}  // namespace stretto::report
