#include "search/places.h"

#include <algorithm>
#include <utility>

namespace stretto::search {

Places::Places(std::vector<Host> hosts, TrialSize size, Clock::duration pause)
    : all_(std::move(hosts)), size_(size), pause_(pause) {
  for (const auto& host : all_) {
    hosts_.push_back({.host = host, .free_slots = host.slots, .free_gpus = host.gpus});
  }
}

size_t Places::room(const Host& host) const {
  int64_t trials = host.slots / size_.slots;
  if (size_.gpus > 0) {
    trials = std::min(trials, static_cast<int64_t>(host.gpus.size()) / size_.gpus);
  }
  return static_cast<size_t>(trials);
}

size_t Places::capacity() const {
  size_t trials = 0;
  for (const auto& host : all_) trials += room(host);
  return trials;
}

std::optional<Places::Place> Places::take(Clock::time_point now) {
  const auto gpus = static_cast<std::ptrdiff_t>(size_.gpus);
  for (size_t i = 0; i < hosts_.size(); ++i) {
    State& state = hosts_[i];
    if (state.failures >= kMostFailures || now < state.usable_from) continue;
    if (state.free_slots < size_.slots || std::ssize(state.free_gpus) < gpus) continue;
    const auto first = state.free_gpus.begin();
    Place place{.host = i, .gpus = {first, first + gpus}};
    state.free_gpus.erase(first, first + gpus);
    state.free_slots -= size_.slots;
    return place;
  }
  return std::nullopt;
}

// GPUs in their first order, so that the same trials get the same ones.
void Places::release(const Place& place) {
  State& state = hosts_[place.host];
  state.free_slots += size_.slots;
  std::vector<std::string> free;
  const auto is_in = [](const std::vector<std::string>& gpus, const std::string& gpu) {
    return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
  };
  for (const auto& gpu : state.host.gpus) {
    if (is_in(state.free_gpus, gpu) || is_in(place.gpus, gpu)) free.push_back(gpu);
  }
  state.free_gpus = std::move(free);
}

void Places::give_back(const Place& place) {
  release(place);
  hosts_[place.host].failures = 0;
}

bool Places::give_back_failed(const Place& place, Clock::time_point now) {
  release(place);
  State& state = hosts_[place.host];
  const auto pause = pause_ * (int64_t{1} << (2 * std::min(state.failures, kMostFailures)));
  state.usable_from = now + pause;
  return ++state.failures >= kMostFailures;
}

bool Places::any_left() const {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const State& state) {
    return state.failures < kMostFailures && room(state.host) > 0;
  });
}

}  // namespace stretto::search
