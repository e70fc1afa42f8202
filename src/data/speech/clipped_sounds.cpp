#include "data/speech/clipped_sounds.h"

#include <cmath>
#include <cstddef>

#include "base/log.h"
#include "base/text.h"

namespace stretto::data {
namespace {

constexpr float kFullScale = 0.99F;  // 127 of 128, in files of 8 bits
constexpr size_t kShortestRun = 3, kClippedShare = 1000;

}  // namespace

bool is_clipped(std::span<const float> samples) {
  size_t clipped = 0;
  for (size_t i = 0; i < samples.size();) {
    size_t end = i + 1;
    if (std::fabs(samples[i]) >= kFullScale) {
      while (end < samples.size() && samples[end] == samples[i]) ++end;
      if (end - i >= kShortestRun) clipped += end - i;
    }
    i = end;
  }
  return clipped > 0 && clipped * kClippedShare >= samples.size();
}

void ClippedSounds::look(int64_t number, std::span<const float> samples, const std::string& path) {
  if (!is_clipped(samples)) return;
  const std::scoped_lock guard(lock_);
  if (!found_.insert(number).second) return;
  if (first_.empty()) first_ = path;
  const auto count = static_cast<int64_t>(found_.size());
  if (count != next_told_) return;
  next_told_ *= 10;
  log::warn(clipped_text(count, first_));
}

int64_t ClippedSounds::count() const {
  const std::scoped_lock guard(lock_);
  return static_cast<int64_t>(found_.size());
}

std::string ClippedSounds::first() const {
  const std::scoped_lock guard(lock_);
  return first_;
}

std::string clipped_text(int64_t count, const std::string& first) {
  return counted(count, "sound") + (count == 1 ? " is" : " are") + " clipped, such as " + first +
         ": peaks are cut off at full scale; record at a lower level where you can";
}

}  // namespace stretto::data
