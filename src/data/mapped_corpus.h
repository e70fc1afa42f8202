#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/corpus.h"
#include "data/corpus_files.h"
#include "data/corpus_order.h"

namespace stretto::data {

/// A cached corpus and an order of its samples, both mapped: memory does not grow with the corpus.
class MappedCorpus final : public Corpus {
 public:
  struct Parts {
    std::filesystem::path folder;
    CorpusMeta meta;
    CorpusOrder order;
    bool from_cache = false;
    int64_t src_vocab_size = 0, tgt_vocab_size = 0;
  };
  explicit MappedCorpus(Parts parts);

  int64_t num_pairs() const override;
  int64_t num_src_tokens() const override;
  int64_t num_tgt_tokens() const override;
  const FilterCounts& filters() const override { return parts_.meta.filters; }
  const TextCounts& src_counts() const override { return parts_.meta.src_counts; }
  const TextCounts& tgt_counts() const override { return parts_.meta.tgt_counts; }
  uint64_t cache_bytes() const override { return cache_bytes_; }
  std::filesystem::path cache_path() const override { return parts_.folder; }
  bool from_cache() const override { return parts_.from_cache; }
  std::vector<int64_t> src(int64_t sample) const override;
  std::vector<int64_t> tgt(int64_t sample) const override;
  /// Throws std::logic_error for a training corpus, which does not keep its text.
  std::string tgt_text(int64_t sample) const override;
  std::string src_text(int64_t sample) const override;

  const CorpusOrder& order() const { return parts_.order; }
  /// Appends the sample to a batch; throws Error(kBadData) when the cache is damaged.
  void append(int64_t sample, Batch& batch) const;

 private:
  struct Span {
    uint64_t begin = 0, middle = 0, end = 0;
  };
  Span find(int64_t sample) const;
  void read(uint64_t begin, uint64_t end, int64_t vocab_size, std::vector<int64_t>& out) const;
  std::string text(int64_t sample, uint64_t side) const;
  [[noreturn]] void throw_damaged() const;

  Parts parts_;
  MappedFile ids_, starts_, src_lens_, text_, text_ends_;
  uint64_t cache_bytes_ = 0;
};

}  // namespace stretto::data
