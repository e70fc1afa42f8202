#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/batch.h"
#include "data/length_batches.h"

namespace stretto::tasks {

/// In alphabetical order; the place of a label is its number.
using Labels = std::vector<std::string>;

/// The labels of the lines of these files.
Labels find_labels(const std::vector<std::string>& files);

/// The columns of a batch of labelled lines: the bytes of each line, and the number of its label.
enum LabelColumn : size_t { kText = 0, kLabel = 1 };

/// Adds a line of text as one more sequence: its bytes and a line end.
void add_line(std::string_view line, data::PackedTokens& lines);

/// All lines of these files. Each is a label, a tab and a text.
///
/// Throws Error(kBadData), with file and line, for a line without a tab, and for a label that is
/// not one of `labels`.
data::Batch read_labelled_lines(const std::vector<std::string>& files, const Labels& labels);

/// Lines in the order of their lengths, of which micro-batches are cut.
class LinesByLength : public data::LengthSamples {
 public:
  explicit LinesByLength(data::Batch lines);

  const data::LengthRuns& runs() const override { return order_.runs; }
  int64_t sample_at(uint64_t position) const override { return order_.samples[position]; }
  data::Batch empty_batch() const override;
  void append(int64_t epoch, int64_t sample, data::Batch& batch) const override;

  const data::Batch& lines() const { return lines_; }

 private:
  data::Batch lines_;
  data::LengthOrder order_;
};

}  // namespace stretto::tasks
