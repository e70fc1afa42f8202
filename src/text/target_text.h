#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/pronunciations.h"
#include "text/target_options.h"
#include "text/text_rules.h"

namespace stretto::text {

/// From a text to what a tokenizer encodes, by `[tokenizer]`: rules, then pronunciations. Safe to
/// use from several threads.
class TargetText {
 public:
  /// Throws as TextRules and read_pronunciations() do.
  explicit TargetText(const TargetOptions& options);

  using Unknown = std::function<void(std::string_view word)>;
  /// The text by the rules, as people read it: what scores compare.
  std::string normalised(std::string_view text) const { return rules_.apply(text); }
  /// The same as a tokenizer takes it: with a lexicon, phonemes between spaces.
  /// @param unknown  is told words that the lexicon lacks; empty = nobody is. Where they are kept,
  ///                 `<unk>` stands for them, else nothing
  std::string target(std::string_view text, const Unknown& unknown = {}) const;

  bool keeps_unknown() const { return keeps_unknown_; }
  bool skips_unknown() const { return skips_unknown_; }

 private:
  TextRules rules_;
  std::shared_ptr<const Pronunciations> lexicon_;  ///< null: none
  std::string word_boundary_;
  bool keeps_unknown_, skips_unknown_;
};

}  // namespace stretto::text
