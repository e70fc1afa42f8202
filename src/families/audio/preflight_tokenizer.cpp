#include "families/audio/preflight_tokenizer.h"

#include <utility>

#include "data/speech/transcripts.h"
#include "data/tokenizer_store.h"

namespace stretto::experiment {

bool is_tokenizer_at_hand(const text::TargetOptions& options, const PreflightOptions& how,
                          Preflight& found) {
  const auto tokenizer = options.tokenizer_options();
  if (how.full || text::names_tokenizer(tokenizer) || tokenizer.type == "char" ||
      tokenizer.type == "word") {
    return true;
  }
  found.unread.push_back({"tokenizer.type", "the tokenizer, which training makes"});
  return false;
}

std::shared_ptr<const text::Tokenizer> preflight_tokenizer(
    const text::TargetOptions& options, std::shared_ptr<const data::SpeechSet> training,
    uint64_t seed, const std::string& cache_dir, const PreflightOptions& how) {
  const auto tokenizer = options.tokenizer_options();
  std::unique_ptr<text::LineSource> lines;
  if (!text::names_tokenizer(tokenizer)) {
    lines = data::transcript_lines(std::move(training), options);
  }
  return how.keeps ? data::open_tokenizers(tokenizer, seed, lines.get(), cache_dir).src
                   : text::make_tokenizers(tokenizer, seed, lines.get(), nullptr).src;
}

}  // namespace stretto::experiment
