#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/bad_samples.h"
#include "data/batch_source.h"
#include "data/pairs/data_options.h"
#include "text/subword_sampling.h"
#include "text/tokenizer.h"

namespace stretto::data {

enum class Split { kTrain, kValid, kTest };

/// Whose line of a pair it is; the cache keeps the numbers.
enum class Side : uint8_t { kSource = 0, kTarget = 1, kSecondSource = 2 };

/// Where a line stands that was left out or changed.
struct FilteredLine {
  int64_t input = 0;          ///< pairs of files in the order of the lists, then TSV files
  int64_t line = 0;           ///< from 1; 0 = no line
  Side side = Side::kSource;  ///< at fault; of what two sources are together, the first
};
/// The first lines of one kind, in the order of the corpus.
using FirstLines = std::array<FilteredLine, 3>;

/// Pairs that were left out or changed, why, and the first of each kind.
struct FilterCounts {
  int64_t kept = 0, empty = 0, too_long = 0, ratio = 0, invalid_utf8 = 0, truncated = 0,
          replaced = 0;
  FirstLines first_empty{}, first_too_long{}, first_ratio{}, first_invalid_utf8{},
      first_truncated{}, first_replaced{};
  LeftOut left_out;  ///< pairs that data.bad_samples left out: no rule above judged them
};

/// How well a tokenizer knows one side of the pairs that were kept, each counted once.
struct TextCounts {
  int64_t words = 0;    ///< split at white space, before truncation
  int64_t pieces = 0;   ///< tokens without end-of-sentence, before weights
  int64_t unknown = 0;  ///< of the pieces: `<unk>`
  int64_t cut = 0;      ///< beside the pieces: those that truncation cut off

  double unknown_rate() const;     ///< in [0, 1]; 0 without pieces
  double pieces_per_word() const;  ///< both before truncation; 0 without words
  double cut_rate() const;         ///< share of pieces and cut ones together; 0 without any
};

/// What truncation took: "3.1 % of the source's tokens, 0.40 % of the target's"; empty = nothing.
std::string cut_text(const TextCounts& src, const TextCounts& tgt);

/// A tokenised, memory-mapped parallel corpus with its length order; see `BatchSource`.
///
/// Built on first use (in parallel, several processes may want it at once) and kept in the cache
/// folder under a key of contents, tokenizer and filter options; a build that is killed leaves
/// nothing that a later one could mistake for a cache.
class Corpus {
 public:
  virtual ~Corpus() = default;
  virtual int64_t num_pairs() const = 0;  ///< after filters; weights count
  virtual int64_t num_src_tokens() const = 0;
  virtual int64_t num_tgt_tokens() const = 0;
  virtual const FilterCounts& filters() const = 0;
  virtual const TextCounts& src_counts() const = 0;  ///< kept in the cache
  virtual const TextCounts& tgt_counts() const = 0;
  virtual uint64_t cache_bytes() const = 0;
  virtual std::filesystem::path cache_path() const = 0;
  virtual bool from_cache() const = 0;

  /// Pair `sample` in corpus order (0 .. num_pairs), end-of-sentence included.
  virtual std::vector<int64_t> src(int64_t sample) const = 0;
  virtual std::vector<int64_t> tgt(int64_t sample) const = 0;
  /// The original target line, for references; validation and test only, for a training corpus
  /// keeps no text and throws std::logic_error.
  virtual std::string tgt_text(int64_t sample) const = 0;
  virtual std::string src_text(int64_t sample) const = 0;
};

/// Throws Error(kUsage) for missing files and a tokenizer without end-of-sentence, Error(kBadData)
/// for unequal line counts, an empty corpus or (by options) bad lines, each with file and line.
/// Validation and test corpora keep every pair with text on both sides, in order: over-long
/// sentences are truncated, bytes that are not UTF-8 replaced (where invalid_utf8 is
/// "error": an error).
///
/// @param seed     draws the fractions of `data.train_weights`; the same pairs in every epoch
/// @param threads  for hashing and tokenising; 0 = one a core; the result does not depend on it
std::shared_ptr<const Corpus> open_corpus(const DataOptions& options, Split split,
                                          const text::TokenizerPair& tokenizers, uint64_t seed,
                                          int64_t threads);

/// What draws segmentations of training sentences anew; null = they stay as they are.
struct SubwordSamplers {
  std::shared_ptr<const text::SubwordSampler> src, tgt;
};

/// Shuffled training batches: a pure function of (seed, epoch, index). Throws Error(kUsage) when a
/// pair is longer than `data.max_tokens`.
///
/// Batches are cut by the lengths that the cache has. A segmentation that is drawn is a function of
/// (seed, epoch, sample, side); it has at most twice the tokens of the cached one, and never more
/// than `data.max_src_tokens` or `data.max_tgt_tokens` with end-of-sentence. The first of four
/// draws that keeps these bounds is taken, else the cached one. So a batch has at most twice
/// `data.max_tokens`.
std::unique_ptr<BatchSource> make_train_batches(std::shared_ptr<const Corpus> corpus,
                                                const DataOptions& options, uint64_t seed,
                                                SubwordSamplers samplers = {});

/// Batches in order of length, each pair exactly once, for validation; epoch is ignored. A pair
/// longer than `max_tokens` is a batch of its own.
/// @param max_samples  of a batch; 0 = any number
std::unique_ptr<BatchSource> make_eval_batches(std::shared_ptr<const Corpus> corpus,
                                               int64_t max_tokens, int64_t max_samples = 0);

}  // namespace stretto::data
