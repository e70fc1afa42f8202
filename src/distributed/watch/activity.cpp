#include "distributed/watch/activity.h"

namespace stretto::distributed {
namespace {

/// Notes a collective for as long as it lives.
class Noted {
 public:
  Noted(Activity& activity, size_t channel, Collective what)
      : activity_(activity), channel_(channel) {
    activity_.enter(channel_, what);
  }
  ~Noted() { activity_.leave(channel_); }
  Noted(const Noted&) = delete;
  Noted& operator=(const Noted&) = delete;

 private:
  Activity& activity_;
  size_t channel_;
};

class NotedTransport : public Transport {
 public:
  NotedTransport(std::shared_ptr<Transport> inner, std::shared_ptr<Activity> activity)
      : inner_(std::move(inner)),
        activity_(std::move(activity)),
        channel_(activity_->open_channel()) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const char* name() const override { return inner_->name(); }
  bool on_device() const override { return inner_->on_device(); }
  int device() const override { return inner_->device(); }
  void all_reduce(Buffer data) override {
    const auto note = noting(Collective::kAllReduce);
    inner_->all_reduce(data);
  }
  void reduce(Buffer data, int root) override {
    const auto note = noting(Collective::kReduce);
    inner_->reduce(data, root);
  }
  void broadcast(Buffer data, int root) override {
    const auto note = noting(Collective::kBroadcast);
    inner_->broadcast(data, root);
  }
  void reduce_scatter(Buffer data, std::span<const int64_t> begins) override {
    const auto note = noting(Collective::kReduceScatter);
    inner_->reduce_scatter(data, begins);
  }
  void all_gather(Buffer data, std::span<const int64_t> begins) override {
    const auto note = noting(Collective::kAllGather);
    inner_->all_gather(data, begins);
  }
  void exchange(Buffer send, Buffer receive, std::span<const int64_t> begins) override {
    const auto note = noting(Collective::kExchange);
    inner_->exchange(send, receive, begins);
  }
  std::vector<std::string> all_gather_bytes(const std::string& mine) override {
    const auto note = noting(Collective::kAllGatherBytes);
    return inner_->all_gather_bytes(mine);
  }
  void barrier() override {
    const auto note = noting(Collective::kBarrier);
    inner_->barrier();
  }
  std::shared_ptr<Transport> duplicate() override {
    const auto note = noting(Collective::kDuplicate);
    return noted(inner_->duplicate(), activity_);
  }
  void check_peers() const override { inner_->check_peers(); }

 private:
  Noted noting(Collective what) { return {*activity_, channel_, what}; }

  std::shared_ptr<Transport> inner_;
  std::shared_ptr<Activity> activity_;
  size_t channel_;
};

}  // namespace

const char* name_of(Collective what) {
  switch (what) {
    case Collective::kNone:
      return "none";
    case Collective::kAllReduce:
      return "all_reduce";
    case Collective::kReduce:
      return "reduce";
    case Collective::kBroadcast:
      return "broadcast";
    case Collective::kReduceScatter:
      return "reduce_scatter";
    case Collective::kAllGather:
      return "all_gather";
    case Collective::kExchange:
      return "exchange";
    case Collective::kAllGatherBytes:
      return "all_gather_bytes";
    case Collective::kBarrier:
      return "barrier";
    case Collective::kDuplicate:
      return "duplicate";
  }
  return "unknown";  // another process said it
}

uint64_t ChannelState::packed() const {
  return begun << 8 | static_cast<uint64_t>(what) << 1 | (inside ? 1u : 0u);
}

ChannelState ChannelState::unpacked(uint64_t word) {
  return {.begun = word >> 8,
          .what = static_cast<Collective>(word >> 1 & 127),
          .inside = (word & 1) != 0};
}

void Activity::enter(size_t channel, Collective what) {
  if (channel >= kChannels) return;
  const auto before = ChannelState::unpacked(words_[channel].load(std::memory_order_relaxed));
  words_[channel].store(ChannelState{before.begun + 1, what, true}.packed(),
                        std::memory_order_relaxed);
}

void Activity::leave(size_t channel) {
  if (channel >= kChannels) return;
  words_[channel].fetch_and(~uint64_t{1}, std::memory_order_relaxed);
}

Activity::States Activity::states() const {
  States states;
  for (size_t i = 0; i < kChannels; ++i) {
    states[i] = ChannelState::unpacked(words_[i].load(std::memory_order_relaxed));
  }
  return states;
}

std::shared_ptr<Transport> noted(std::shared_ptr<Transport> inner,
                                 std::shared_ptr<Activity> activity) {
  return std::make_shared<NotedTransport>(std::move(inner), std::move(activity));
}

}  // namespace stretto::distributed
