#include "audio/augment_keys.h"

#include <algorithm>

#include "base/text.h"

namespace stretto::audio {

bool AugmentKeys::is_empty() const {
  const bool changes_time = !speeds.empty() || speed_range > 0 || stretch_range > 0;
  const bool adds = (!impulse_files.empty() && impulse_probability > 0) ||
                    (!noise_files.empty() && noise_file_probability > 0) || noise_probability > 0;
  return !changes_time && !adds && feature_masks == 0 && time_masks == 0;
}

double AugmentKeys::most_speed() const {
  const double most = speeds.empty() ? 1 : *std::max_element(speeds.begin(), speeds.end());
  return std::max(most, 1 + speed_range) * (1 + stretch_range);
}

std::vector<KeyConflict> augment_conflicts(const AugmentKeys& keys, const std::string& section) {
  std::vector<KeyConflict> conflicts;
  const auto key = [&](const std::string& name) { return section + "." + name; };
  const auto check_range = [&](const std::string& least, double low, const std::string& most,
                               double high) {
    if (low <= high) return;
    conflicts.push_back({.keys = {key(least), key(most)},
                         .what = "is above " + key(most) + ", " + shortest(high),
                         .hint = "the range goes from " + least + " to " + most});
  };
  if (!keys.speeds.empty() && keys.speed_range > 0) {
    conflicts.push_back({.keys = {key("speed_range"), key("speeds")},
                         .what = "stands beside " + key("speeds"),
                         .hint = "set speed_range = 0, or leave speeds empty"});
  }
  if (!keys.noise_files.empty()) check_range("min_snr", keys.min_snr, "max_snr", keys.max_snr);
  if (keys.noise_probability > 0) {
    check_range("min_noise_level", keys.min_noise_level, "max_noise_level", keys.max_noise_level);
  }
  return conflicts;
}

}  // namespace stretto::audio
