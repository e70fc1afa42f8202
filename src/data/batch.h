#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <variant>
#include <vector>

namespace stretto::data {

/// One value, or `width` of them, for each step of every sequence: the sequences one after the
/// other without padding, with their boundaries. Ids, frames, pixels, labels.
template <class T>
struct Ragged {
  std::vector<T> values;  ///< [rows * width]
  std::vector<int32_t> offsets{
      0};             ///< [sequences + 1]; sequence i is rows offsets[i] to offsets[i+1]
  int64_t width = 1;  ///< values in a row

  int64_t num_rows() const { return offsets.back(); }
  int64_t num_sequences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  /// Rows of sequence `i`.
  int64_t length(int64_t i) const {
    return offsets[static_cast<size_t>(i) + 1] - offsets[static_cast<size_t>(i)];
  }
  int64_t max_length() const {
    int64_t longest = 0;
    for (int64_t i = 0; i < num_sequences(); ++i) longest = std::max(longest, length(i));
    return longest;
  }
  /// Values of sequence `i`, in its rows' order.
  std::span<const T> sequence(int64_t i) const {
    const auto begin = static_cast<size_t>(offsets[static_cast<size_t>(i)] * width);
    return {values.data() + begin, static_cast<size_t>(length(i) * width)};
  }

  /// One more sequence of whole rows. Throws std::length_error above 2^31 - 1 rows.
  void append(std::span<const T> sequence) {
    values.insert(values.end(), sequence.begin(), sequence.end());
    close_sequence();
  }
  void append(const std::vector<T>& sequence) { append(std::span<const T>(sequence)); }
  /// Ends a sequence whose values stand at the end of `values` already.
  void close_sequence() {
    const int64_t rows = static_cast<int64_t>(values.size()) / width;
    if (rows > std::numeric_limits<int32_t>::max()) {
      throw std::length_error("batch: more than 2^31 - 1 rows in one column");
    }
    offsets.push_back(static_cast<int32_t>(rows));
  }
};

/// Ids of words, sub-words or labels.
using PackedTokens = Ragged<int64_t>;

/// A column holds one thing of every sample. A family of tasks names its own columns, as
/// data/pairs/pair_columns.h does.
using Column = std::variant<PackedTokens, Ragged<float>, Ragged<uint8_t>>;

/// One micro-batch: samples, and for each the sequences of all columns.
struct Batch {
  std::vector<int64_t> sample_ids;  ///< [sequences]; identity of each sample in its data
  std::vector<Column> columns;      ///< of as many sequences each
  /// [sequences]: the lane of each sample, whose state a model takes from one update to the next
  /// (parallel/carry.h); empty where samples continue nothing.
  std::vector<int32_t> lanes = {};
  /// Which of several mixed sources it comes from (data/mixed_batches.h); of a single one 0.
  int64_t stream = 0;
  /// The epoch of training that it was loaded for, from 0: with the seed and its id, all that the
  /// augmentation of a sample depends on. Evaluation has epoch 0 alone.
  int64_t epoch = 0;

  int64_t num_sequences() const { return static_cast<int64_t>(sample_ids.size()); }
  /// Throws std::out_of_range or std::bad_variant_access where there are no such values.
  template <class T>
  const Ragged<T>& column(size_t number) const {
    return std::get<Ragged<T>>(columns.at(number));
  }
  template <class T>
  Ragged<T>& column(size_t number) {
    return std::get<Ragged<T>>(columns.at(number));
  }
};

/// Micro-batches one after the other as one batch; what accumulation must be equal to. Throws
/// std::invalid_argument where their columns are of different kinds, they of different streams or
/// epochs, or only some of them have lanes.
Batch concatenate(const std::vector<Batch>& parts);

/// Sequences [begin, end) of a batch.
Batch part(const Batch& batch, int64_t begin, int64_t end);

/// One of `parts` stretches of neighbouring sequences that together are the batch, with about
/// equally many rows of all columns. Empty only where there are fewer sequences than parts.
Batch even_part(const Batch& batch, int64_t number, int64_t parts);

}  // namespace stretto::data
