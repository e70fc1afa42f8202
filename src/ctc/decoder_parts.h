#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ctc/ctc_labels.h"
#include "ctc/ctc_options.h"
#include "text/ngram/hot_words.h"
#include "text/ngram/lexicon.h"
#include "text/ngram/ngram_model.h"

namespace stretto::ctc {

/// What a language model scores.
enum class LmUnit : uint8_t { kNone, kWords, kLabels };

/// What searches share, unchanged while they go on.
struct DecoderParts {
  CtcLabels labels;
  CtcOptions options;
  std::unique_ptr<const text::NgramModel> lm;  ///< null = none
  LmUnit lm_unit = LmUnit::kNone;
  std::vector<text::LexiconEntry> lexicon;  ///< empty = any labels may follow each other
  text::LexiconTrie trie;
  /// Tokens of the language model: of each entry of the lexicon, or of each label; -1 = unknown.
  std::vector<int32_t> tokens;
  text::HotWords hot_words;
  int64_t num_left_out = 0;  ///< words of the lexicon that have no spelling

  bool has_lexicon() const { return !lexicon.empty(); }
  int32_t num_labels() const { return static_cast<int32_t>(labels.size()); }
};

/// Opens what the options name. Throws as CtcDecoder().
DecoderParts make_decoder_parts(CtcLabels labels, CtcOptions options, const text::Speller& spell,
                                const std::filesystem::path& cache_dir);

}  // namespace stretto::ctc
