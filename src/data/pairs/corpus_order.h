#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/length_batches.h"
#include "data/pairs/corpus_files.h"

namespace stretto::data {

/// How often an epoch sees each pair. A weight w gives every pair of an input floor(w) samples, and
/// one more with probability w - floor(w), by a hash of (seed, pair): the same in every epoch.
struct SampleWeights {
  std::vector<double> weights;  ///< one for each input; empty = 1 each
  uint64_t seed = 0;
  uint64_t key() const;  ///< 0 when every pair is one sample; the seed counts only where it matters
};

/// The samples of a corpus sorted by (target length, source length), stable by sample id, in a
/// mapped file beside the corpus; samples are numbered in the order of their pairs.
class CorpusOrder {
 public:
  /// All of it is verified: 4 bytes a sample (8 with weights), at the speed of memory.
  /// @param damaged  the file for which there is none although there was an order; else left alone
  /// @return nothing when `folder` has no valid order for these weights
  static std::optional<CorpusOrder> find(const std::filesystem::path& folder,
                                         const CorpusMeta& meta, uint64_t weights_key,
                                         int64_t threads, std::string& damaged);
  /// Makes it, with two counting sorts in mapped files: a few bytes of heap whatever the size.
  /// The caller holds the corpus' lock. Throws Error(kBadData) when weights leave no sample.
  /// @param damaged  the file of the corpus whose checksums are wrong, when there is one
  /// @return false, and nothing was made, when there is one
  static bool build(const std::filesystem::path& folder, const CorpusMeta& meta,
                    const SampleWeights& weights, int64_t threads, std::string& damaged);

  uint64_t num_samples() const { return num_samples_; }
  uint64_t src_tokens() const { return src_tokens_; }
  uint64_t tgt_tokens() const { return tgt_tokens_; }
  /// With the lengths of source and target, as the columns of a batch stand.
  const LengthRuns& runs() const { return runs_; }
  uint64_t sample_at(uint64_t position) const { return words()[position]; }
  uint64_t pair_of(uint64_t sample) const {
    return has_pairs_ ? words()[num_samples_ + sample] : sample;
  }

 private:
  static std::optional<CorpusOrder> read_head(const std::filesystem::path& path,
                                              const CorpusMeta& meta);
  const uint32_t* words() const {
    return reinterpret_cast<const uint32_t*>(file_->unchecked().data());
  }
  std::optional<CheckedFile> file_;  ///< there once find() has returned it
  uint64_t num_samples_ = 0, src_tokens_ = 0, tgt_tokens_ = 0;
  bool has_pairs_ = false;
  std::vector<uint64_t> sums_;  ///< from the head, on their way into file_
  LengthRuns runs_{.num_columns = 2};
};

}  // namespace stretto::data
