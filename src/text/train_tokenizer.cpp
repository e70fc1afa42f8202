#include "text/train_tokenizer.h"

#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "text/byte_bpe.h"
#include "text/merge_training.h"
#include "text/pretrained_kind.h"
#include "text/word_splits.h"

namespace stretto::text {
namespace {

/// Counts words of which a text has most many times: each is a string once. The sorted map, whose
/// order merges depend on, is made of what is there at the end.
class WordCounter {
 public:
  void add(std::string_view word) {
    const auto found = counts_.find(word);
    if (found != counts_.end()) {
      ++found->second;
    } else {
      counts_.emplace(word, 1);
    }
  }
  std::map<std::string, int64_t> sorted() const { return {counts_.begin(), counts_.end()}; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> counts_;
};

WordCounts bert_words(const std::vector<std::string>& lines, bool lowercase) {
  const BertNormalizer normalizer({.lowercase = lowercase});
  WordCounter counts;
  NormalizedText normalized;
  std::vector<ByteRange> words;
  for (const std::string& line : lines) {
    normalizer.normalize(line, false, normalized);
    words.clear();
    split_at_punctuation(normalized.text, words);
    for (const ByteRange& word : words) counts.add(word.of(normalized.text));
  }
  return counts.sorted();
}

WordCounts byte_words(const std::vector<std::string>& lines) {
  WordCounter raw;
  std::vector<ByteRange> words;
  for (const std::string& line : lines) {
    words.clear();
    split_by_class(line, words);
    for (const ByteRange& word : words) raw.add(word.of(line));
  }
  WordCounts counts;
  for (const auto& [word, count] : raw.sorted()) {
    std::string spelt;
    for (const char byte : word) spelt += byte_alphabet()[static_cast<unsigned char>(byte)];
    counts[spelt] = count;
  }
  return counts;
}

TrainedMerges trained(const WordCounts& words, const MergeTraining& training) {
  TrainedMerges merges = train_merges(words, training);
  const int64_t smallest = std::ssize(merges.vocab);
  if (smallest > training.vocab_size) {
    throw Error(ExitCode::kUsage,
                "tokenizer.vocab_size: " + std::to_string(training.vocab_size) +
                    " pieces cannot hold the " + std::to_string(smallest) +
                    " characters and special tokens",
                "set tokenizer.vocab_size=" + std::to_string(smallest) + " or more");
  }
  return merges;
}

TokenizerSpec train_wordpiece(const std::vector<std::string>& lines, const SpecTraining& options) {
  TokenizerSpec spec;
  spec.vocab = trained(bert_words(lines, options.lowercase),
                       {.vocab_size = options.vocab_size,
                        .min_frequency = options.min_frequency,
                        .limit_alphabet = options.limit_alphabet,
                        .continuing_prefix = spec.continuing_prefix,
                        .specials = {kBertKind.specials.begin(), kBertKind.specials.end()},
                        .initial_alphabet = {}})
                   .vocab;
  make_bert(spec, options.lowercase);
  return spec;
}

TokenizerSpec train_byte_bpe(const std::vector<std::string>& lines, const SpecTraining& options) {
  MergeTraining training{.vocab_size = options.vocab_size,
                         .min_frequency = options.min_frequency,
                         .limit_alphabet = 0,
                         .continuing_prefix = "",
                         .specials = {kRobertaKind.specials.begin(), kRobertaKind.specials.end()},
                         .initial_alphabet = {byte_alphabet().begin(), byte_alphabet().end()}};
  TrainedMerges merges = trained(byte_words(lines), training);
  TokenizerSpec spec;
  spec.vocab = std::move(merges.vocab);
  spec.merges = std::move(merges.merges);
  make_pretrained(spec, kRobertaKind);
  return spec;
}

}  // namespace

TokenizerSpec train_tokenizer(const std::vector<std::string>& lines, const SpecTraining& options) {
  if (lines.empty()) {
    throw Error(ExitCode::kBadData, "there is no text to train a tokenizer on",
                "look at the training text that [data] names: it holds no usable line");
  }
  return options.model == TokenizerSpec::Model::kWordPiece ? train_wordpiece(lines, options)
                                                           : train_byte_bpe(lines, options);
}

}  // namespace stretto::text
