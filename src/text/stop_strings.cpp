#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

namespace stretto::text {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopStrings::add(std::string_view part) {
  if (stopped_) return {};
  const size_t seen = held_.size();
  held_ += part;
  for (size_t end = seen + 1; end <= held_.size(); ++end) {
    const std::string_view text = std::string_view(held_).substr(0, end);
    size_t longest = 0;
    for (const std::string& stop : stops_) {
      if (text.ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest == 0) continue;
    stopped_ = true;
    held_.resize(end - longest);
    return std::exchange(held_, {});
  }
  const size_t kept = held_back();
  std::string known = held_.substr(0, held_.size() - kept);
  held_.erase(0, known.size());
  return known;
}

std::string StopStrings::finish() {
  return std::exchange(held_, {});
}

/// Bytes at the end of the text that a stop string begins with, of the stop string that has most of
/// them.
size_t StopStrings::held_back() const {
  size_t most = 0;
  for (const std::string& stop : stops_) {
    for (size_t size = std::min(stop.size() - 1, held_.size()); size > most; --size) {
      if (!std::string_view(held_).ends_with(std::string_view(stop).substr(0, size))) continue;
      most = size;
      break;
    }
  }
  return most;
}

}  // namespace stretto::text
