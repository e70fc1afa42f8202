#include "distributed/watch/stall_watch.h"

#include <algorithm>

#include "base/text.h"
#include "distributed/agreement.h"

namespace stretto::distributed {
namespace {

std::string ranks_in_words(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_list(ranks);
}

std::string collective_in_words(const ChannelState& state) {
  return "collective " + std::to_string(state.begun) + " (" + name_of(state.what) + ")";
}

std::string seconds_in_words(Clock::duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return fixed(seconds, seconds < 10 ? 1 : 0) + " s";
}

/// Ranks that are in the same collective.
struct CollectiveRanks {
  ChannelState state;
  std::vector<int> ranks;
};

}  // namespace

StallWatch::StallWatch(int size, Clock::duration timeout)
    : ranks_(static_cast<size_t>(size)), limits_{.timeout = timeout} {}

void StallWatch::watch_stalls(Clock::duration warn_after, Clock::duration stall,
                              Clock::time_point now) {
  limits_.warn_after = warn_after;
  limits_.stall = stall;
  watching_since_ = now;
}

void StallWatch::hear(int rank, const Activity::States& states, Clock::time_point now) {
  Rank& one = ranks_[static_cast<size_t>(rank)];
  for (size_t i = 0; i < states.size(); ++i) {
    if (one.known && one.states[i] == states[i]) continue;
    one.states[i] = states[i];
    one.since[i] = one.moved = now;
    one.warned = false;
  }
  one.known = true;
}

void StallWatch::pause(Clock::duration gap) {
  for (Rank& one : ranks_) {
    for (auto& since : one.since) since += gap;
    one.moved += gap;
  }
  if (watching_since_) *watching_since_ += gap;
}

void StallWatch::forget(int rank) {
  ranks_[static_cast<size_t>(rank)].forgotten = true;
}

std::optional<StallWatch::Finding> StallWatch::judge_mismatch(size_t channel,
                                                              Clock::time_point now) const {
  std::vector<CollectiveRanks> all;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Rank& one = ranks_[rank];
    if (one.forgotten) continue;
    const ChannelState& state = one.states[channel];
    if (!one.known || !state.inside || now - one.since[channel] < limits_.timeout) return {};
    auto same = std::find_if(all.begin(), all.end(),
                             [&](const CollectiveRanks& other) { return other.state == state; });
    if (same == all.end()) same = all.insert(all.end(), {state, {}});
    same->ranks.push_back(static_cast<int>(rank));
  }
  if (all.size() < 2) return {};
  // The fewest are named, of as many those that are behind.
  std::stable_sort(all.begin(), all.end(), [](const CollectiveRanks& a, const CollectiveRanks& b) {
    if (a.ranks.size() != b.ranks.size()) return a.ranks.size() < b.ranks.size();
    return a.state.begun < b.state.begun;
  });
  Finding finding{.rank = all[0].ranks[0],
                  .how = "it waits in " + collective_in_words(all[0].state),
                  .lost = true};
  if (all[0].ranks.size() > 1) finding.how += " as do all of " + ranks_in_words(all[0].ranks);
  for (size_t i = 1; i < all.size(); ++i) {
    finding.how += ", " + ranks_in_words(all[i].ranks) + " in " + collective_in_words(all[i].state);
  }
  finding.how += ": they would wait for each other for ever";
  return finding;
}

std::optional<StallWatch::Finding> StallWatch::judge_stall(size_t channel, Clock::time_point now) {
  // The collective that was begun by the fastest of those that wait.
  const Rank* first = nullptr;
  std::vector<int> waiting;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Rank& one = ranks_[rank];
    const ChannelState& state = one.states[channel];
    if (one.forgotten || !one.known || !state.inside ||
        now - one.since[channel] < limits_.warn_after) {
      continue;
    }
    if (first == nullptr || state.begun > first->states[channel].begun) {
      first = &one;
      waiting.clear();
    }
    if (state == first->states[channel]) waiting.push_back(static_cast<int>(rank));
  }
  if (first == nullptr) return {};
  const ChannelState& awaited = first->states[channel];
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& one = ranks_[rank];
    const ChannelState& state = one.states[channel];
    if (one.forgotten || !one.known || state.inside || state.begun >= awaited.begun) continue;
    const auto begin = std::max({one.moved, first->since[channel], *watching_since_});
    const Clock::duration idle = now - begin;
    const bool lost = limits_.stall > Clock::duration::zero() && idle >= limits_.stall;
    if (!lost && (one.warned || idle < limits_.warn_after)) continue;
    one.warned = true;
    return Finding{.rank = static_cast<int>(rank),
                   .how = "it began and ended no collective for " + seconds_in_words(idle) +
                          ", and " + ranks_in_words(waiting) +
                          (waiting.size() == 1 ? " waits" : " wait") + " for it in " +
                          collective_in_words(awaited),
                   .lost = lost};
  }
  return {};
}

std::optional<StallWatch::Finding> StallWatch::judge(Clock::time_point now) {
  for (size_t channel = 0; channel < Activity::kChannels; ++channel) {
    if (auto finding = judge_mismatch(channel, now)) return finding;
    if (!watching_since_) continue;
    if (auto finding = judge_stall(channel, now)) return finding;
  }
  return {};
}

}  // namespace stretto::distributed
