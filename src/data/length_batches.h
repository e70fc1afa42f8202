#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "data/batch_source.h"

/// Micro-batches of samples that are about equally long, for any columns of a batch.
namespace stretto::data {

/// How samples that are sorted by their lengths fall into runs of equal lengths.
struct LengthRuns {
  size_t num_columns = 1;              ///< that have a length
  std::vector<uint32_t> lengths = {};  ///< [runs * num_columns], in rows
  std::vector<uint64_t> begins = {0};  ///< [runs + 1]: first positions, and the number of samples

  size_t size() const { return begins.size() - 1; }
  std::span<const uint32_t> lengths_of(size_t run) const {
    return {lengths.data() + run * num_columns, num_columns};
  }
  /// The samples from begins.back() up to `end`. Throws std::invalid_argument where the number of
  /// lengths is another one.
  void add(std::span<const uint32_t> lengths_of_run, uint64_t end);
};

/// What a family of tasks brings: its samples in the order of their lengths. All functions are
/// called from several threads at once.
class LengthSamples {
 public:
  virtual ~LengthSamples() = default;
  virtual const LengthRuns& runs() const = 0;
  /// The sample that stands at a position of the order.
  virtual int64_t sample_at(uint64_t position) const = 0;
  /// A batch without samples that samples can be appended to.
  virtual Batch empty_batch() const = 0;
  /// Appends the id of a sample and its sequences of all columns.
  virtual void append(int64_t epoch, int64_t sample, Batch& batch) const = 0;
};

/// The order of samples in memory, by the lengths of their first column, then of the second and so
/// on; of equal lengths by number.
struct LengthOrder {
  std::vector<uint32_t> samples;
  LengthRuns runs;
};
/// @param lengths  [columns], each [samples]
LengthOrder order_by_length(const std::vector<std::vector<uint32_t>>& lengths);

struct LengthBounds {
  std::vector<int64_t> max_rows;  ///< of a batch, [columns that have a length]; 0 = no bound
  int64_t max_samples = 0;        ///< of a batch; 0 = any number
  /// The error about a sample of these lengths that is above a bound by itself; empty = such a
  /// sample is a batch of its own.
  std::function<Error(std::span<const uint32_t> lengths)> too_long = {};
};

enum class Shuffle : uint8_t { kNo, kEachEpoch };

/// The most micro-batches that so many samples make, whatever their lengths: each but the last has
/// as many samples as fit if all are the longest.
///
/// @param longest  rows that no sample exceeds in any column
int64_t most_batches(int64_t samples, int64_t longest, const LengthBounds& bounds);

/// Batches that are cut from the order of lengths, greedily, from short to long: once, for all
/// epochs. With a shuffle, samples of equal lengths change places in each epoch, and so do the
/// batches: both are pure functions of (seed, epoch, index).
///
/// Throws what `bounds.too_long` makes, and std::invalid_argument where bounds and columns are not
/// equally many.
std::unique_ptr<BatchSource> make_length_batches(std::shared_ptr<const LengthSamples> samples,
                                                 const LengthBounds& bounds, Shuffle shuffle,
                                                 uint64_t seed);

}  // namespace stretto::data
