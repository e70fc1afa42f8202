#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/labelled/labelled_scan.h"
#include "data/sample_store.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// Where stores of labelled texts are kept.
struct LabelledCache {
  std::string dir;      ///< data.cache_dir; empty = the user's cache folder
  int64_t threads = 1;  ///< that verify and tokenise
};

/// The samples of some files: texts, labels, places. Safe to use from several threads. What is read
/// of them throws Error(kIo) where it is not what was verified: the file was written to.
class LabelledTexts {
 public:
  int64_t size() const { return facts_.rows; }
  bool has_pairs() const { return has_pairs_; }
  std::string_view text(int64_t sample) const;
  std::string_view text2(int64_t sample) const;  ///< of pairs
  /// Places in LabelledFacts::labels.
  std::span<const uint32_t> labels(int64_t sample) const;
  double value(int64_t sample) const;  ///< with LabelKind::kNumber
  /// "a.tsv:17", for messages.
  std::string place(int64_t sample) const;

  const LabelledFacts& facts() const { return facts_; }
  /// A hash of the content of the files and of how they are read; 0 = not in the cache.
  uint64_t key() const { return key_; }
  bool from_cache() const { return store_.from_cache(); }
  /// Why they could not be kept, where the system is to blame.
  const std::string& refusal() const { return refusal_; }

 private:
  friend class LabelledTextsBuild;
  std::string_view text_at(size_t number) const;
  SampleStore store_;
  std::string name_;  ///< of the store, for messages
  LabelledFacts facts_;
  std::vector<std::string> paths_;
  std::string refusal_;
  uint64_t key_ = 0;
  bool has_pairs_ = false;
};

/// Finds the texts in the cache, or reads the files and keeps them there. They are found by the
/// files' content and by how they are read, so that a file that moves is the same one; a file is
/// opened once to be told apart (FileDigest) and once to be read. While a StartMemory lives, all
/// calls share them. Where nothing can be kept, each call reads the files into memory:
/// LabelledTexts::key() is 0 then.
///
/// @param facts  as scan_labelled() fills it, so that they are known where this throws
/// @return null where the budget ended
/// Throws as scan_labelled(); Error(kBadData) for a file that changes while it is read.
std::shared_ptr<const LabelledTexts> open_labelled_texts(const LabelledInput& input,
                                                         const LabelledCache& cache,
                                                         const ReadBudget& budget,
                                                         LabelledFacts& facts);
/// The same to their end.
std::shared_ptr<const LabelledTexts> open_labelled_texts(const LabelledInput& input,
                                                         const LabelledCache& cache);

/// Each text, and behind it its second text, as a line: what a tokenizer is trained on. Its key is
/// that of the texts.
/// @param open  gives the texts when the first line is asked for
std::unique_ptr<text::LineSource> lines_of(
    std::function<std::shared_ptr<const LabelledTexts>()> open);

}  // namespace stretto::data
