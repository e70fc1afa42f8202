#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "data/labelled/labelled_file.h"
#include "data/labelled/labels.h"

namespace stretto::data {

/// Files of labelled texts, one after the other.
struct LabelledInput {
  std::vector<std::string> paths;
  LabelledColumns columns = {};
  /// A row with another label is a bad sample; null: any label will do.
  const Labels* labels = nullptr;
};

/// How far a look at files may go: so many rows, and no longer than this.
struct ReadBudget {
  int64_t rows = std::numeric_limits<int64_t>::max();
  std::chrono::steady_clock::time_point end = std::chrono::steady_clock::time_point::max();
};

/// A header that may be a sample: LabelledReader::header_as_row().
struct HeaderRow {
  size_t file = 0;  ///< place in LabelledInput::paths
  LabelledRow row;
};

/// What files of labelled texts hold, beside the texts.
struct LabelledFacts {
  int64_t rows = 0;          ///< that are samples
  int64_t other_labels = 0;  ///< rows that are none, since LabelledInput::labels lacks their label
  int64_t skipped = 0;       ///< rows with LabelledColumns::skipped_label
  std::vector<std::string> labels;  ///< of the samples, each once, as they first occur
  std::vector<HeaderRow> headers;
  LeftOut left_out;
  /// "a.tsv behind line 17": where the budget ended; empty: all was read.
  std::string unread;
};

/// A sample. @param labels  their places in LabelledFacts::labels
using LabelledSink =
    std::function<void(size_t file, const LabelledRow&, std::span<const uint32_t>)>;

/// Reads files once: the one loop over rows of every command. What is known of them is in `facts`
/// even where it throws, as LabelledReader does. A row that will be refused with its file is not
/// passed on.
void scan_labelled(const LabelledInput& input, const ReadBudget& budget, LabelledFacts& facts,
                   const LabelledSink& sink = nullptr);

/// "a.tsv:17"
std::string place_of(const LabelledInput& input, const HeaderRow& header);

}  // namespace stretto::data
