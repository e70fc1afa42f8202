#include "distributed/watch/peer_watch.h"

#include <sys/prctl.h>

#include <ctime>
#include <thread>

namespace stretto::distributed {

void PeerWatch::set_peers(std::vector<Peer> peers) {
  const std::lock_guard lock(mutex_);
  peers_ = std::move(peers);
}

std::string PeerWatch::name_of(int rank) const {
  const std::lock_guard lock(mutex_);
  std::string name = "rank " + std::to_string(rank);
  if (static_cast<size_t>(rank) < peers_.size()) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    name += " (host " + peer.host + ", pid " + std::to_string(peer.pid) + ")";
  }
  return name;
}

void PeerWatch::alarm(int rank, const std::string& how, Clock::time_point throw_from) {
  const std::string text = name_of(rank) + " is lost: " + how;
  const std::lock_guard lock(mutex_);
  lost_rank_ = rank;
  text_ = text;
  throw_from_ = throw_from;
  heeded_.store(false, std::memory_order_relaxed);
  alarmed_.store(true, std::memory_order_release);
}

void PeerWatch::lost(int rank, const std::string& how) {
  {
    const std::lock_guard lock(mutex_);
    if (certain_) return;
    certain_ = true;
  }
  alarm(rank, how, Clock::now() + kGrace);
}

void PeerWatch::left(int rank, Clock::duration patience) {
  if (alarmed()) return;
  alarm(rank, "it ended while others still waited for it", Clock::now() + patience);
}

void PeerWatch::check() const {
  if (!alarmed()) return;
  {
    const std::lock_guard lock(mutex_);
    heeded_.store(true, std::memory_order_relaxed);
    if (Clock::now() < throw_from_) return;
  }
  throw news();
}

void PeerWatch::wait_for_news() const {
  const auto end = Clock::now() + 2 * kGrace;
  for (; Clock::now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(5))) check();
  if (alarmed()) throw news();
}

PeerLost PeerWatch::news() const {
  const std::lock_guard lock(mutex_);
  return {lost_rank_, text_, kStartAgain};
}

void Pauses::pause() {
  // The system may stretch a sleep by its slack, 50 µs unless the thread asks for less.
  static thread_local const bool slack_set = ::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0) == 0;
  (void)slack_set;
  if (Clock::now() - began_ > kWorked) {
    next_ = kFirst;
    return;
  }
  const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(next_.count()) * 1000};
  ::nanosleep(&time, nullptr);
  next_ = std::min(next_ * 3 / 2, kLongest);
}

}  // namespace stretto::distributed
