#include "launcher/noise_filter.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace stretto::launcher {
namespace {

constexpr std::string_view kEventLibrary = "[warn] Epoll ";

}  // namespace

// How far the held text is the bracket that Open MPI's lines begin with.
NoiseFilter::Mark NoiseFilter::mark() const {
  constexpr size_t kLongestHost = 255;
  const size_t common = std::min(held_.size(), kEventLibrary.size());
  if (held_.compare(0, common, kEventLibrary, 0, common) == 0) {
    return common == kEventLibrary.size() ? Mark::kWhole : Mark::kBegun;
  }
  size_t i = 1;
  const auto in_host = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '-'; };
  while (i < held_.size() && in_host(static_cast<unsigned char>(held_[i]))) ++i;
  if (i > kLongestHost) return Mark::kNone;
  // Open MPI fills up to five digits: [node7:00047].
  if (i < held_.size() && held_[i] == ':') {
    for (++i; i < held_.size() && held_[i] == '0';) ++i;
  } else if (i < held_.size()) {
    return Mark::kNone;
  }
  const std::string tail = pid_ + "]";
  const size_t length = std::min(tail.size(), held_.size() - i);
  if (held_.compare(i, length, tail, 0, length) != 0) return Mark::kNone;
  return length == tail.size() ? Mark::kWhole : Mark::kBegun;
}

std::string NoiseFilter::pass(std::string_view chunk) {
  held_ += chunk;
  std::string shown;
  while (!held_.empty()) {
    if (in_noise_) {
      const size_t end = std::min(held_.find('\n'), held_.size() - 1) + 1;
      in_noise_ = held_[end - 1] != '\n';
      withheld_ += held_.substr(0, end);
      held_.erase(0, end);
      continue;
    }
    const size_t bracket = held_.find('[');
    shown += held_.substr(0, bracket);
    held_.erase(0, bracket);
    if (held_.empty()) break;
    const Mark found = mark();
    if (found == Mark::kBegun) break;
    in_noise_ = found == Mark::kWhole;
    if (found == Mark::kNone) {
      shown += '[';
      held_.erase(0, 1);
    }
  }
  return shown;
}

std::string NoiseFilter::rest() {
  return std::exchange(held_, {});
}

}  // namespace stretto::launcher
