#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/batch.h"
#include "data/batch_source.h"

namespace stretto::tasks {

/// In alphabetical order; the place of a label is its number.
using Labels = std::vector<std::string>;

/// The labels that stand in these files, one on each line.
Labels find_labels(const std::vector<std::string>& label_files);

/// The columns of a batch of labelled lines: the bytes of each line, and the number of its label.
enum LabelColumn : size_t { kText = 0, kLabel = 1 };

/// Adds a line of text as one more sequence: its bytes and a line end.
void add_line(std::string_view line, data::PackedTokens& lines);

/// Lines of text with their labels. The whole text is in memory.
///
/// @param text_files, label_files  equally many, in step line by line
/// Throws Error(kBadData), with file and line, for a line without a label, a label without a line,
/// and a label that is not one of `labels`.
data::Batch read_labelled_lines(const std::vector<std::string>& text_files,
                                const std::vector<std::string>& label_files, const Labels& labels);

/// Micro-batches of lines in an order that depends on seed and epoch alone.
class ShuffledLines : public data::BatchSource {
 public:
  /// @param size  lines of a micro-batch; the last one of an epoch may have fewer
  ShuffledLines(data::Batch lines, int64_t size, uint64_t seed)
      : lines_(std::move(lines)), size_(size), seed_(seed) {}

  int64_t num_batches() const override { return (lines_.num_sequences() + size_ - 1) / size_; }
  data::Batch load(int64_t epoch, int64_t index) const override;

  const data::Batch& lines() const { return lines_; }

 private:
  data::Batch lines_;
  int64_t size_;
  uint64_t seed_;
};

}  // namespace stretto::tasks
