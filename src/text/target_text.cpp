#include "text/target_text.h"

#include <utility>

#include "base/text.h"

namespace stretto::text {

TargetText::TargetText(const TargetOptions& options)
    : rules_(options.normalise),
      lexicon_(options.type == "phonemes" && !options.lexicon.empty()
                   ? read_pronunciations(options.lexicon)
                   : nullptr),
      word_boundary_(options.word_boundary),
      keeps_unknown_(options.unknown == "keep"),
      skips_unknown_(options.unknown == "skip") {}

std::string TargetText::target(std::string_view text, const Unknown& unknown) const {
  std::string normalised = rules_.apply(text);
  if (!lexicon_) return normalised;
  std::vector<std::string> phonemes;
  for (const auto& word : split_words(normalised)) {
    const std::string_view found = lexicon_->of(word);
    if (found.empty() && unknown) unknown(word);
    if (found.empty() && !keeps_unknown_) continue;
    if (!phonemes.empty() && !word_boundary_.empty()) phonemes.push_back(word_boundary_);
    // No vocabulary has this text: it becomes the unknown token.
    phonemes.emplace_back(found.empty() ? std::string_view("<unk>") : found);
  }
  return join(phonemes, " ");
}

}  // namespace stretto::text
