#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "data/checked_file.h"
#include "data/content_hash.h"
#include "data/pairs/corpus.h"
#include "data/pairs/corpus_files.h"
#include "data/pairs/corpus_order.h"

namespace stretto::data {

/// The files of one cached corpus, mapped. Everything that is read is verified first, block by
/// block; a damaged file is reported by name, and never read.
class CorpusMaps {
 public:
  CorpusMaps(const std::filesystem::path& folder, const CorpusMeta& meta);

  /// Appends the ids of a side of a pair (0 = source, 1 = target) to `out`.
  /// @return nullptr, or the name of the file that is damaged; then `out` is as it was
  const char* append_ids(uint64_t pair, int side, int64_t vocab_size,
                         std::vector<int64_t>& out) const;
  /// The line of one side of a pair, in a corpus that keeps its text.
  const char* read_text(uint64_t pair, int side, std::string& out) const;

  const CorpusMeta& meta() const { return meta_; }
  /// The stamp of the head: it changes when another build stands in the folder.
  const FileStamp& stamp() const { return stamp_; }

 private:
  struct Span {
    uint64_t begin = 0, end = 0;
  };
  const char* find(uint64_t pair, int side, Span& span) const;

  CorpusMeta meta_;
  FileStamp stamp_;
  CheckedFile ids_, starts_, src_lens_;
  std::optional<CheckedFile> text_, text_ends_;
};

/// Where a corpus comes from, for when its files turn out to be damaged.
class CorpusSource {
 public:
  virtual ~CorpusSource() = default;
  /// Maps of the same corpus without the damage; throws Error when there can be none.
  /// @param file  what is damaged
  virtual std::unique_ptr<const CorpusMaps> replace(const CorpusMaps& damaged,
                                                    const std::string& file) = 0;
};

/// A cached corpus and an order of its samples, both mapped: memory does not grow with the corpus.
///
/// Damage is found when it is first read, perhaps in the middle of an epoch. Then the thread that
/// found it has the corpus made again, the others that meet the damage wait, and all go on with the
/// new maps: the same ids in the same places.
class MappedCorpus final : public Corpus {
 public:
  struct Parts {
    std::filesystem::path folder;
    CorpusMeta meta;
    CorpusOrder order;
    bool from_cache = false;
    int64_t src_vocab_size = 0, tgt_vocab_size = 0;
    std::shared_ptr<CorpusSource> source;
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
  /// Appends the sample to a batch.
  void append(int64_t sample, Batch& batch) const;

 private:
  /// Calls use(maps) until it finds no damage; it returns the name of the file with some, or
  /// nullptr.
  template <class Use>
  void read(const Use& use) const;
  std::vector<int64_t> ids(int64_t sample, int side) const;
  std::string text(int64_t sample, int side) const;
  uint64_t pair_of(int64_t sample) const;

  Parts parts_;
  uint64_t cache_bytes_ = 0;
  mutable std::mutex replacing_;
  mutable std::vector<std::unique_ptr<const CorpusMaps>> all_maps_;  ///< some thread may read any
  mutable std::atomic<const CorpusMaps*> maps_ = nullptr;            ///< the newest
};

}  // namespace stretto::data
