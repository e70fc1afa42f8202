#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/batch.h"
#include "data/pairs/corpus.h"
#include "data/pairs/corpus_order.h"
#include "data/sample_store.h"

/// Pairs as a sample store (data/sample_store.h) holds them.
namespace stretto::data {

/// Part of the key: a change of the parts, or of the rules of pairs, makes new stores.
inline constexpr uint64_t kCorpusVersion = 6;

enum CorpusPart : size_t {
  /// Pair 0's source, pair 0's target, pair 1's source, …: uint16, or uint32 where a vocabulary has
  /// more than 65,536.
  kPairIds,
  kPairEnds,       ///< uint64 [pairs]: the id behind each pair
  kSourceLengths,  ///< uint32 [pairs]: ids of each source; the rest of a pair is its target
  kPairTexts,      ///< the lines of both sides in the order of the ids; nothing for training
  kPairTextEnds,   ///< uint64 [2 * pairs]; nothing for training
  kNumCorpusParts,
};

/// What the head of the store knows.
struct CorpusFacts {
  uint64_t id_bytes = 2;
  bool has_text = false;
  FilterCounts filters = {};
  TextCounts src_counts = {}, tgt_counts = {};
  std::vector<uint64_t> input_ends = {};  ///< pairs up to and with each input, in order
};

/// The words of the head. @param files  of all inputs, for what was left out
std::vector<uint64_t> words_of(const CorpusFacts& facts, std::span<const std::string> files);

/// Nothing where the head and the parts do not belong together.
std::optional<CorpusFacts> corpus_facts(const SampleStore& store,
                                        std::span<const std::string> files);

/// A corpus of a store that has such facts, and of a store with an order of its samples. Both are
/// mapped: memory does not grow with the corpus.
class StoredCorpus final : public Corpus {
 public:
  struct Parts {
    SampleStore pairs;
    CorpusFacts facts;
    CorpusOrder order;
    std::filesystem::path folder;  ///< of the pairs
    int64_t src_vocab_size = 0, tgt_vocab_size = 0;
  };
  explicit StoredCorpus(Parts parts);

  int64_t num_pairs() const override { return static_cast<int64_t>(order().num_samples()); }
  int64_t num_src_tokens() const override { return static_cast<int64_t>(order().src_tokens()); }
  int64_t num_tgt_tokens() const override { return static_cast<int64_t>(order().tgt_tokens()); }
  const FilterCounts& filters() const override { return parts_.facts.filters; }
  const TextCounts& src_counts() const override { return parts_.facts.src_counts; }
  const TextCounts& tgt_counts() const override { return parts_.facts.tgt_counts; }
  uint64_t cache_bytes() const override { return parts_.pairs.num_bytes() + order().num_bytes(); }
  std::filesystem::path cache_path() const override { return parts_.folder; }
  bool from_cache() const override { return parts_.pairs.from_cache(); }
  std::vector<int64_t> src(int64_t sample) const override;
  std::vector<int64_t> tgt(int64_t sample) const override;
  /// Throws std::logic_error for a training corpus, which does not keep its text.
  std::string tgt_text(int64_t sample) const override;
  std::string src_text(int64_t sample) const override;

  const CorpusOrder& order() const { return parts_.order; }
  /// Appends the sample to a batch. Throws Error(kIo) where its ids are not those that were
  /// verified: the file was written to.
  void append(int64_t sample, Batch& batch) const;

 private:
  uint64_t pair_of(int64_t sample) const;
  /// Appends the ids of one side of a pair: 0 = source, 1 = target.
  void append_ids(uint64_t pair, int side, std::vector<int64_t>& ids) const;
  std::string text(int64_t sample, int side) const;

  Parts parts_;
  std::span<const uint64_t> ends_;
  std::span<const uint32_t> src_lens_;
};

}  // namespace stretto::data
