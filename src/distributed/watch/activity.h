#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "distributed/process_group.h"

namespace stretto::distributed {

/// Which operation of a ProcessGroup.
enum class Collective : uint8_t {
  kNone,
  kAllReduce,
  kReduce,
  kBroadcast,
  kReduceScatter,
  kAllGather,
  kExchange,
  kAllGatherBytes,
  kBarrier,
  kDuplicate,
};
/// "all_reduce"; "unknown" for a number that is none of them.
const char* name_of(Collective what);

/// What a rank does on one channel: its newest collective, and whether it is still in it.
struct ChannelState {
  uint64_t begun = 0;  ///< collectives so far, the newest included
  Collective what = Collective::kNone;
  bool inside = false;

  bool operator==(const ChannelState&) const = default;
  uint64_t packed() const;  ///< for one atomic word and for the wire
  static ChannelState unpacked(uint64_t word);
};

/// What a rank does on each of its channels: the threads in collectives write it, the heartbeat
/// reads it. All ranks open their channels in the same order, so a number means the same on each.
class Activity {
 public:
  /// Channels that are followed; what happens on later ones is not seen.
  static constexpr size_t kChannels = 4;
  using States = std::array<ChannelState, kChannels>;

  size_t open_channel() { return opened_.fetch_add(1); }
  void enter(size_t channel, Collective what);
  void leave(size_t channel);
  States states() const;

 private:
  std::atomic<size_t> opened_ = 0;
  std::array<std::atomic<uint64_t>, kChannels> words_{};
};

/// A channel that does what `inner` does and notes it in `activity`; so do its duplicates.
std::shared_ptr<Transport> noted(std::shared_ptr<Transport> inner,
                                 std::shared_ptr<Activity> activity);

}  // namespace stretto::distributed
