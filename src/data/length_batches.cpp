#include "data/length_batches.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/random.h"

namespace stretto::data {
namespace {

/// What a batch has so far, against its bounds.
class BatchRoom {
 public:
  explicit BatchRoom(const LengthBounds& bounds)
      : bounds_(bounds), rows_(bounds.max_rows.size(), 0) {}

  /// How many samples of these lengths fit in, beside those that are there.
  int64_t room_for(std::span<const uint32_t> lengths) const {
    int64_t most = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (bounds_.max_rows[i] == 0 || lengths[i] == 0) continue;
      most = std::min(most, (bounds_.max_rows[i] - rows_[i]) / int64_t{lengths[i]});
    }
    if (bounds_.max_samples > 0) most = std::min(most, bounds_.max_samples - samples_);
    return most;
  }

  void take(int64_t samples, std::span<const uint32_t> lengths) {
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i] += samples * int64_t{lengths[i]};
    samples_ += samples;
  }

  void clear() {
    std::fill(rows_.begin(), rows_.end(), 0);
    samples_ = 0;
  }

  bool empty() const { return samples_ == 0; }

 private:
  const LengthBounds& bounds_;
  std::vector<int64_t> rows_;
  int64_t samples_ = 0;
};

/// First position of each batch in the length order, and the end. Runs of equal lengths are cut by
/// division, so that this costs O(runs + batches), not O(samples).
std::vector<uint64_t> cut_batches(const LengthRuns& runs, const LengthBounds& bounds) {
  if (bounds.max_rows.size() != runs.num_columns) {
    throw std::invalid_argument("length batches: one bound for each column that has a length");
  }
  std::vector<uint64_t> starts{0};
  BatchRoom batch(bounds);
  for (size_t run = 0; run < runs.size(); ++run) {
    const auto lengths = runs.lengths_of(run);
    uint64_t position = runs.begins[run];
    while (position < runs.begins[run + 1]) {
      auto take = static_cast<int64_t>(runs.begins[run + 1] - position);
      take = std::min(take, batch.room_for(lengths));
      if (take <= 0 && !batch.empty()) {
        starts.push_back(position);
        batch.clear();
        continue;
      }
      if (take <= 0 && bounds.too_long) throw bounds.too_long(lengths);
      take = std::max<int64_t>(take, 1);
      batch.take(take, lengths);
      position += static_cast<uint64_t>(take);
    }
  }
  if (!batch.empty()) starts.push_back(runs.begins.back());
  return starts;
}

/// Sorts samples by their lengths in one column; those of one length keep their order. Lengths are
/// counted, where they are not too many to have a count each.
void sort_by(const std::vector<uint32_t>& lengths, std::vector<uint32_t>& samples) {
  constexpr uint32_t kMostCounted = uint32_t{1} << 16;
  const auto longest = std::max_element(lengths.begin(), lengths.end());
  if (longest == lengths.end()) return;
  if (*longest > kMostCounted) {
    std::stable_sort(samples.begin(), samples.end(),
                     [&](uint32_t a, uint32_t b) { return lengths[a] < lengths[b]; });
    return;
  }
  std::vector<size_t> places(size_t{*longest} + 2);  // where those of each length begin
  for (const uint32_t length : lengths) ++places[size_t{length} + 1];
  std::partial_sum(places.begin(), places.end(), places.begin());
  std::vector<uint32_t> sorted(samples.size());
  for (const uint32_t sample : samples) sorted[places[lengths[sample]]++] = sample;
  samples.swap(sorted);
}

class LengthBatches final : public BatchSource {
 public:
  LengthBatches(std::shared_ptr<const LengthSamples> samples, const LengthBounds& bounds,
                Shuffle shuffle, uint64_t seed)
      : samples_(std::move(samples)),
        starts_(cut_batches(samples_->runs(), bounds)),
        shuffle_(shuffle),
        seed_(seed) {}

  int64_t num_batches() const override { return static_cast<int64_t>(starts_.size()) - 1; }

  Batch load(int64_t epoch, int64_t index) const override {
    Batch batch = samples_->empty_batch();
    visit(epoch, index, [&](int64_t sample) { samples_->append(epoch, sample, batch); });
    return batch;
  }

  std::vector<int64_t> sample_ids(int64_t epoch, int64_t index) const override {
    std::vector<int64_t> ids;
    visit(epoch, index, [&](int64_t sample) { ids.push_back(sample); });
    return ids;
  }

 private:
  /// The samples of a batch in their order.
  template <class Take>
  void visit(int64_t epoch, int64_t index, const Take& take) const {
    if (index < 0 || index >= num_batches()) {
      throw std::out_of_range("batch " + std::to_string(index) + " of " +
                              std::to_string(num_batches()));
    }
    const uint64_t key = mix64(seed_, static_cast<uint64_t>(epoch));
    auto cut = static_cast<uint64_t>(index);
    if (shuffle_ == Shuffle::kEachEpoch) {
      cut = Permutation(static_cast<uint64_t>(num_batches()), key)(cut);
    }
    const auto& begins = samples_->runs().begins;
    size_t run = run_at(starts_[cut]);
    for (uint64_t position = starts_[cut]; position < starts_[cut + 1]; ++position) {
      while (begins[run + 1] <= position) ++run;
      take(samples_->sample_at(shuffled(position, run, key)));
    }
  }

  size_t run_at(uint64_t position) const {
    const auto& begins = samples_->runs().begins;
    return static_cast<size_t>(std::upper_bound(begins.begin(), begins.end(), position) -
                               begins.begin()) -
           1;
  }

  uint64_t shuffled(uint64_t position, size_t run, uint64_t key) const {
    if (shuffle_ == Shuffle::kNo) return position;
    const auto& begins = samples_->runs().begins;
    const uint64_t begin = begins[run], size = begins[run + 1] - begin;
    return begin + Permutation(size, mix64(key, run))(position - begin);
  }

  std::shared_ptr<const LengthSamples> samples_;
  std::vector<uint64_t> starts_;
  Shuffle shuffle_;
  uint64_t seed_;
};

}  // namespace

void LengthRuns::add(std::span<const uint32_t> lengths_of_run, uint64_t end) {
  if (lengths_of_run.size() != num_columns) {
    throw std::invalid_argument("length runs: one length for each column");
  }
  lengths.insert(lengths.end(), lengths_of_run.begin(), lengths_of_run.end());
  begins.push_back(end);
}

LengthOrder order_by_length(const std::vector<std::vector<uint32_t>>& lengths) {
  const size_t size = lengths.at(0).size();
  LengthOrder order{.samples = std::vector<uint32_t>(size),
                    .runs = {.num_columns = lengths.size()}};
  for (const auto& column : lengths) {
    if (column.size() != size) {
      throw std::invalid_argument("length order: each sample has a length in each column");
    }
  }
  std::iota(order.samples.begin(), order.samples.end(), 0);
  // Each sort keeps the order of equals: in the end the first column decides first.
  for (size_t c = lengths.size(); c-- > 0;) sort_by(lengths[c], order.samples);
  std::vector<uint32_t> here(lengths.size());
  for (size_t i = 0; i < size; ++i) {
    const uint32_t sample = order.samples[i];
    const auto differs = [&](const auto& column) {
      return column[order.samples[i + 1]] != column[sample];
    };
    if (i + 1 < size && std::none_of(lengths.begin(), lengths.end(), differs)) continue;
    for (size_t c = 0; c < lengths.size(); ++c) here[c] = lengths[c][sample];
    order.runs.add(here, i + 1);
  }
  return order;
}

int64_t most_batches(int64_t samples, int64_t longest, const LengthBounds& bounds) {
  if (samples <= 0) return 0;
  int64_t fit = bounds.max_samples > 0 ? bounds.max_samples : samples;
  for (const int64_t rows : bounds.max_rows) {
    if (rows > 0) fit = std::min(fit, rows / std::max<int64_t>(1, longest));
  }
  return (samples - 1) / std::max<int64_t>(1, fit) + 1;
}

std::unique_ptr<BatchSource> make_length_batches(std::shared_ptr<const LengthSamples> samples,
                                                 const LengthBounds& bounds, Shuffle shuffle,
                                                 uint64_t seed) {
  return std::make_unique<LengthBatches>(std::move(samples), bounds, shuffle, seed);
}

}  // namespace stretto::data
