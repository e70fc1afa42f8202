#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/cache_files.h"
#include "data/labelled/labelled_set.h"
#include "data/labelled/labelled_texts.h"
#include "data/length_batches.h"
#include "data/sample_store.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// Labelled texts as a tokenizer encodes them: ids lie in the cache, and a batch has those of its
/// own samples alone. The id of a sample is its place in the files.
class LabelledSamples final : public LengthSamples {
 public:
  struct Parts {
    std::shared_ptr<const LabelledTexts> texts;
    SampleStore tokens;
    std::string name;  ///< of the store of tokens, for messages
    StoredIds ids, segments;
  };
  /// As open_labelled_samples() makes them.
  LabelledSamples(Parts parts, const Labels* labels, LabelledCounts found);

  const LengthRuns& runs() const override { return order_.runs; }
  int64_t sample_at(uint64_t position) const override { return order_.samples[position]; }
  Batch empty_batch() const override;
  /// Throws Error(kIo) where the ids are not those that were verified: the file was written to.
  void append(int64_t epoch, int64_t sample, Batch& batch) const override;

  const LabelledTexts& texts() const { return *parts_.texts; }
  int64_t size() const { return texts().size(); }
  int64_t num_tokens() const { return num_tokens_; }
  const LabelledCounts& counts() const { return counts_; }
  bool from_cache() const { return parts_.tokens.from_cache() && texts().from_cache(); }
  /// The column of labels or values alone, of all samples; the other columns are empty.
  Batch labels() const;
  /// How often each label occurs, [num_labels]; nothing of values.
  std::vector<int64_t> label_counts(int64_t num_labels) const;

 private:
  void append_labels(int64_t sample, Batch& batch) const;

  Parts parts_;
  bool has_values_;
  std::vector<int64_t> numbers_;  ///< of the texts' labels, those of the run
  LabelledCounts counts_;
  int64_t num_tokens_ = 0;
  LengthOrder order_;
};

/// The texts of open_labelled_texts(), encoded once and kept beside them. Where nothing can be
/// kept, they are encoded into memory.
/// @param labels  null for numbers
/// Throws as open_labelled_texts(), text::TextEncoder and require_samples() do.
std::shared_ptr<const LabelledSamples> open_labelled_samples(std::span<const std::string> paths,
                                                             const LabelledOptions& options,
                                                             const text::Tokenizer& tokenizer,
                                                             const Labels* labels);

/// Where the keys of `[data]` keep them.
LabelledCache labelled_cache_of(const LabelledOptions& options);
/// The texts of the training files, with any label that they have. Throws as require_samples().
std::shared_ptr<const LabelledTexts> open_training_texts(const LabelledOptions& options);

}  // namespace stretto::data
