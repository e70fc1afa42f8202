#include "data/documents/lanes.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace stretto::data {
namespace {

class Lanes final : public BatchSource {
 public:
  Lanes(std::shared_ptr<const Documents> documents, const LaneSetting& setting)
      : documents_(std::move(documents)),
        lanes_(setting.lanes),
        groups_(setting.groups),
        stretches_(stretches_of(setting)) {}

  int64_t num_batches() const override { return groups_ * stretches_; }
  Order order() const override { return Order::kLanes; }

  Batch load(int64_t epoch, int64_t index) const override {
    Batch batch = stream_batch();
    for_each_lane(epoch, index, [&](int64_t lane, int64_t part, int64_t stretch) {
      append_stretch(*documents_, range_of(part, stretch), id_of(part, stretch), batch);
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
  StreamRange range_of(int64_t part, int64_t stretch) const {
    const uint64_t begin = part_begin(part), length = part_begin(part + 1) - begin;
    return {begin + place_in(length, stretch, stretches_),
            begin + place_in(length, stretch + 1, stretches_)};
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
    return static_cast<int64_t>((longest + length - 1) / length);
  }

  std::shared_ptr<const Documents> documents_;
  int64_t lanes_, groups_, stretches_;
};

}  // namespace

std::unique_ptr<BatchSource> make_lanes(std::shared_ptr<const Documents> documents,
                                        const LaneSetting& setting) {
  if (setting.length < 2)
    throw std::invalid_argument("a stretch of a lane has at least two tokens");
  if (setting.groups < 1 || setting.groups > setting.lanes) {
    throw std::invalid_argument("there are at least as many lanes as groups of them");
  }
  return std::make_unique<Lanes>(std::move(documents), setting);
}

}  // namespace stretto::data
