#include "data/documents/lanes.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace stretto::data {
namespace {

constexpr double kLeastDrawn = 5;

/// Where the stretches of an epoch begin and end, as shares of a part: [stretches + 1], from 0 to
/// 1; null = evenly.
using Cuts = std::shared_ptr<const std::vector<double>>;

/// The cuts of an epoch whose stretches have drawn lengths.
Cuts drawn_cuts(const LaneSetting& setting, int64_t epoch, int64_t stretches) {
  const uint64_t key = mix64(setting.seed, static_cast<uint64_t>(epoch));
  std::vector<double> ends{0};
  for (int64_t i = 0; i < stretches; ++i) {
    RandomStream random(key, static_cast<uint64_t>(i));
    const bool is_halved = random.uniform() < setting.halved;
    const double mean = static_cast<double>(setting.length) / (is_halved ? 2 : 1);
    ends.push_back(ends.back() + std::max(kLeastDrawn, mean + setting.deviation * random.normal()));
  }
  const double all = ends.back();
  for (double& end : ends) end /= all;
  return std::make_shared<const std::vector<double>>(std::move(ends));
}

class Lanes final : public BatchSource {
 public:
  Lanes(std::shared_ptr<const Documents> documents, const LaneSetting& setting)
      : documents_(std::move(documents)),
        lanes_(setting.lanes),
        groups_(setting.groups),
        setting_(setting),
        stretches_(stretches_of(setting)) {}

  int64_t num_batches() const override { return groups_ * stretches_; }
  Order order() const override { return Order::kLanes; }

  Batch load(int64_t epoch, int64_t index) const override {
    Batch batch = stream_batch();
    const Cuts cuts = cuts_of(epoch);
    for_each_lane(epoch, index, [&](int64_t lane, int64_t part, int64_t stretch) {
      append_stretch(*documents_, range_of(part, stretch, cuts), id_of(part, stretch), batch);
      batch.lanes.push_back(static_cast<int32_t>(lane));
    });
    return batch;
  }

  std::vector<int64_t> sample_ids(int64_t epoch, int64_t index) const override {
    std::vector<int64_t> ids;
    for_each_lane(epoch, index, [&](int64_t /*lane*/, int64_t part, int64_t stretch) {
      ids.push_back(id_of(part, stretch));
    });
    return ids;
  }

  std::vector<int32_t> lanes(int64_t epoch, int64_t index) const override {
    std::vector<int32_t> found;
    for_each_lane(epoch, index, [&](int64_t lane, int64_t /*part*/, int64_t /*stretch*/) {
      found.push_back(static_cast<int32_t>(lane));
    });
    return found;
  }

  double rate_factor(int64_t epoch, int64_t index) const override {
    const Cuts cuts = cuts_of(epoch);
    if (!cuts) return 1;
    const auto i = static_cast<size_t>(index / groups_);
    const double part = static_cast<double>(documents_->num_ids()) / static_cast<double>(lanes_);
    const double others = part - static_cast<double>(stretches_);
    const double length = 1 + others * ((*cuts)[i + 1] - (*cuts)[i]);  // of lanes on average
    return length / static_cast<double>(setting_.length);
  }

 private:
  /// each(lane, part, stretch) of a micro-batch.
  template <class Each>
  void for_each_lane(int64_t epoch, int64_t index, const Each& each) const {
    if (index < 0 || index >= num_batches()) throw std::out_of_range("lanes: no such micro-batch");
    for (int64_t lane = index % groups_; lane < lanes_; lane += groups_) {
      each(lane, (lane + epoch % lanes_) % lanes_, index / groups_);
    }
  }

  uint64_t part_begin(int64_t part) const { return place_in(documents_->num_ids(), part, lanes_); }
  /// Where piece `number` of `count` begins, of pieces of about equal length.
  static uint64_t place_in(uint64_t length, int64_t number, int64_t count) {
    const auto k = static_cast<uint64_t>(number), n = static_cast<uint64_t>(count);
    return length / n * k + length % n * k / n;  // length * k / n, without its overflow
  }
  /// Where a stretch begins in a part of so many tokens.
  uint64_t place_of(int64_t stretch, uint64_t length, const Cuts& cuts) const {
    if (!cuts) return place_in(length, stretch, stretches_);
    // A token for each stretch, and of the others its share.
    const double others = static_cast<double>(length) - static_cast<double>(stretches_);
    const double share = others * (*cuts)[static_cast<size_t>(stretch)];
    return static_cast<uint64_t>(stretch) + static_cast<uint64_t>(share);
  }
  StreamRange range_of(int64_t part, int64_t stretch, const Cuts& cuts) const {
    const uint64_t begin = part_begin(part), length = part_begin(part + 1) - begin;
    return {begin + place_of(stretch, length, cuts), begin + place_of(stretch + 1, length, cuts)};
  }
  /// Those of the last epochs are kept.
  Cuts cuts_of(int64_t epoch) const {
    if (setting_.deviation <= 0) return nullptr;
    const std::lock_guard lock(mutex_);
    Cuts& cuts = cuts_[epoch];
    if (cuts) return cuts;
    cuts = drawn_cuts(setting_, epoch, stretches_);
    const Cuts made = cuts;
    if (cuts_.size() > kEpochsKept) {
      cuts_.erase(cuts_.begin()->first == epoch ? std::prev(cuts_.end()) : cuts_.begin());
    }
    return made;
  }
  int64_t id_of(int64_t part, int64_t stretch) const { return part * stretches_ + stretch; }

  /// Stretches of each part, as many as the longest one needs. As a stretch has at least two
  /// tokens, a part that is one token shorter has one for each of them, too.
  int64_t stretches_of(const LaneSetting& setting) const {
    const uint64_t tokens = documents_->num_ids();
    const auto count = static_cast<uint64_t>(setting.lanes);
    if (tokens / 2 < count) {
      throw Error(ExitCode::kBadData,
                  "a text of " + counted(static_cast<int64_t>(tokens), "token") +
                      " is too short for " + counted(setting.lanes, "lane"),
                  "train on more text, or with fewer lanes");
    }
    const auto length = static_cast<uint64_t>(setting.length);
    const uint64_t longest = (tokens + count - 1) / count;
    if (setting.deviation <= 0) return static_cast<int64_t>((longest + length - 1) / length);
    // As many as have their usual length; no more than a part has tokens.
    const double usual = static_cast<double>(length) * (1 - setting.halved / 2);
    const auto wanted = static_cast<int64_t>(std::ceil(static_cast<double>(longest) / usual));
    return std::min(wanted, static_cast<int64_t>(tokens / count));
  }

  static constexpr size_t kEpochsKept = 3;  // validation and prefetch read neighbours

  std::shared_ptr<const Documents> documents_;
  int64_t lanes_, groups_;
  LaneSetting setting_;
  int64_t stretches_;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, Cuts> cuts_;  // by epoch
};

}  // namespace

std::unique_ptr<BatchSource> make_lanes(std::shared_ptr<const Documents> documents,
                                        const LaneSetting& setting) {
  if (setting.length < 2)
    throw std::invalid_argument("a stretch of a lane has at least two tokens");
  if (setting.groups < 1 || setting.groups > setting.lanes) {
    throw std::invalid_argument("there are at least as many lanes as groups of them");
  }
  if (setting.deviation < 0 || setting.halved < 0 || setting.halved > 1) {
    throw std::invalid_argument("a deviation is not negative, and a share of stretches in [0, 1]");
  }
  return std::make_unique<Lanes>(std::move(documents), setting);
}

}  // namespace stretto::data
