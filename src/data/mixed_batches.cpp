#include "data/mixed_batches.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace stretto::data {
namespace {

/// A place in an epoch of the mixture.
struct MixedPlace {
  size_t source = 0;
  int64_t number = 0;  ///< among the places of its source
};

// (a.number + 1/2) / counts[a.source] against the other, in whole numbers, so that no rounding
// decides. Fewer than 2^31 micro-batches: the products stay below 2^63.
bool stands_before(const MixedPlace& a, const MixedPlace& b, const std::vector<int64_t>& counts) {
  const int64_t left = (2 * a.number + 1) * counts[b.source];
  const int64_t right = (2 * b.number + 1) * counts[a.source];
  return left != right ? left < right : a.source < b.source;
}

class MixedBatches final : public BatchSource {
 public:
  explicit MixedBatches(std::vector<MixedSource> sources) : sources_(std::move(sources)) {
    if (sources_.empty()) throw std::invalid_argument("mix_batches: no source");
    for (const MixedSource& source : sources_) counts_.push_back(count_of(source));
    for (size_t k = 0; k < sources_.size(); ++k) {
      for (int64_t j = 0; j < counts_[k]; ++j) places_.push_back({k, j});
    }
    std::sort(places_.begin(), places_.end(), [this](const MixedPlace& a, const MixedPlace& b) {
      return stands_before(a, b, counts_);
    });
  }

  int64_t num_batches() const override { return static_cast<int64_t>(places_.size()); }

  Batch load(int64_t epoch, int64_t index) const override {
    const MixedPlace& place = at(index);
    const MixedSource& source = sources_[place.source];
    const auto [own_epoch, own_index] = own_place(epoch, place);
    Batch batch = source.batches->load_for_training(own_epoch, own_index);
    for (int64_t& id : batch.sample_ids) id += source.first_sample_id;
    batch.stream = static_cast<int64_t>(place.source);
    return batch;
  }

  // A source that is repeated has more epochs than the mixture.
  Batch load_for_training(int64_t epoch, int64_t index) const override {
    return load(epoch, index);
  }

  std::vector<int64_t> sample_ids(int64_t epoch, int64_t index) const override {
    const MixedPlace& place = at(index);
    const MixedSource& source = sources_[place.source];
    const auto [own_epoch, own_index] = own_place(epoch, place);
    auto ids = source.batches->sample_ids(own_epoch, own_index);
    for (int64_t& id : ids) id += source.first_sample_id;
    return ids;
  }

  double rate_factor(int64_t epoch, int64_t index) const override {
    const MixedPlace& place = at(index);
    const auto [own_epoch, own_index] = own_place(epoch, place);
    return sources_[place.source].batches->rate_factor(own_epoch, own_index);
  }

 private:
  static int64_t count_of(const MixedSource& source) {
    const int64_t own = source.batches == nullptr ? 0 : source.batches->num_batches();
    if (own < 1) throw std::invalid_argument("mix_batches: a source without micro-batches");
    if (source.batches->order() == Order::kLanes) {
      throw std::invalid_argument("mix_batches: a source whose micro-batches continue lanes");
    }
    if (!(source.repeat > 0)) throw std::invalid_argument("mix_batches: repeat must be above 0");
    const double wanted = std::round(source.repeat * static_cast<double>(own));
    constexpr double kMost = 2147483647;
    if (wanted > kMost) throw std::invalid_argument("mix_batches: over 2^31 - 1 micro-batches");
    return std::max<int64_t>(1, static_cast<int64_t>(wanted));
  }

  const MixedPlace& at(int64_t index) const {
    if (index < 0 || index >= num_batches()) {
      throw std::out_of_range("batch " + std::to_string(index) + " of " +
                              std::to_string(num_batches()));
    }
    return places_[static_cast<size_t>(index)];
  }

  std::pair<int64_t, int64_t> own_place(int64_t epoch, const MixedPlace& place) const {
    const int64_t run = epoch * counts_[place.source] + place.number;
    const int64_t own = sources_[place.source].batches->num_batches();
    return {run / own, run % own};
  }

  std::vector<MixedSource> sources_;
  std::vector<int64_t> counts_;     // of an epoch, by source
  std::vector<MixedPlace> places_;  // in the order of an epoch
};

}  // namespace

std::unique_ptr<BatchSource> mix_batches(std::vector<MixedSource> sources) {
  return std::make_unique<MixedBatches>(std::move(sources));
}

}  // namespace stretto::data
