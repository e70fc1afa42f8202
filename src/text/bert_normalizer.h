#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

/// What BERT does to text before it is cut (Devlin et al. 2019, `BasicTokenizer`).
struct BertNormalizerOptions {
  bool clean_text = true;             ///< removes control characters; white space becomes U+0020
  bool handle_chinese_chars = true;   ///< spaces around ideographs
  std::optional<bool> strip_accents;  ///< NFD, then no marks; not given = as `lowercase`
  bool lowercase = true;
};

/// Text and where each of its bytes comes from.
struct NormalizedText {
  std::string text;
  /// For each byte of `text`, the byte at which its character begins in the original. Left empty
  /// where the caller wants none. A character that moved in NFD's canonical order counts as the one
  /// whose place it took.
  std::vector<uint32_t> origin;
};

class BertNormalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options);

  /// @param line  well-formed UTF-8, less than 4 GiB
  /// @param out   cleared first
  void normalize(std::string_view line, bool with_origin, NormalizedText& out) const;

 private:
  class Decomposition;

  bool clean_text_, handle_chinese_chars_, strip_accents_, lowercase_;
  std::array<char, 128> ascii_;  ///< what each becomes; NUL = nothing
};

}  // namespace stretto::text
