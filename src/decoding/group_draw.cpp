#include "decoding/group_draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace stretto::decoding {
namespace {

constexpr size_t kGroups = 4096;
constexpr double kPerNat = 128;         // groups; 32 nats below the likeliest token they end
constexpr double kFarWeight = 1.3e-14;  // of a token behind all groups at most: exp(-32)

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// The weight at which each group begins.
const std::array<double, kGroups>& first_weights() {
  static const std::array<double, kGroups> weights = [] {
    std::array<double, kGroups> all{};
    for (size_t i = 0; i < kGroups; ++i) all[i] = std::exp(-static_cast<double>(i) / kPerNat);
    return all;
  }();
  return weights;
}

/// exp(-x) for x in [0, 1 / kPerNat], to the last digits: the next term is below 4e-16.
double near_one(double x) {
  return 1 - x * (1 - x * (1.0 / 2) * (1 - x * (1.0 / 3) * (1 - x * 0.25 * (1 - x * 0.2))));
}

/// Several at a time, since one maximum waits for the one before.
float highest_of(std::span<const float> row) {
  constexpr size_t kParts = 16;
  std::array<float, kParts> parts{};
  parts.fill(kLowest);
  const float* values = row.data();
  size_t i = 0;
  for (; i + kParts <= row.size(); i += kParts) {
    for (size_t j = 0; j < kParts; ++j) {
      parts[j] = values[i + j] > parts[j] ? values[i + j] : parts[j];
    }
  }
  float highest = kLowest;
  for (; i < row.size(); ++i) highest = values[i] > highest ? values[i] : highest;
  for (const float part : parts) highest = part > highest ? part : highest;
  return highest;
}

/// Tokens by their distance from the likeliest one. The likeliest weighs 1.
class Groups {
 public:
  Groups(std::span<const float> row, float highest, double temperature)
      : row_(row), highest_(highest), scale_(kPerNat / temperature) {
    constexpr double kEnd = kGroups;
    for (const float x : row) {
      const double distance = distance_of(x);
      if (!(distance < kEnd)) continue;  // far, forbidden, or no number
      const auto group = static_cast<int32_t>(distance);
      masses_[static_cast<size_t>(group)] += near_one((distance - group) / kPerNat);
    }
    for (size_t i = 0; i < kGroups; ++i) {
      masses_[i] *= first_weights()[i];
      total_ += masses_[i];
    }
    // Each addition may be off by 2^-53 of the total. There are at most five for each token and two
    // for each group: both ways sum the total and its parts, and one of them what top-p keeps.
    const auto count = static_cast<double>(row.size());
    slack_ = 8 * (count + kEnd) * 0x1p-53 * total_ + 2 * count * kFarWeight;
  }

  double total() const { return total_; }

  struct Found {
    int64_t token;
    double mass;  ///< of the tokens up to this one
  };
  /// The token with which the mass from the likeliest on exceeds `mass`. Nothing where that is less
  /// than certain.
  std::optional<Found> token_at(double mass) const {
    double before = 0;
    size_t group = 0;
    while (group < kGroups && before + masses_[group] <= mass) before += masses_[group++];
    if (group == kGroups) return {};
    for (const int64_t token : sorted(group)) {
      const double behind = before + weight_of(token, group);
      if (behind > mass) {
        const bool is_first = before == 0;
        const bool is_clear = (is_first || before < mass - slack_) && behind > mass + slack_;
        return is_clear ? std::optional(Found{token, behind}) : std::nullopt;
      }
      before = behind;
    }
    return {};
  }

 private:
  double distance_of(float x) const { return (highest_ - static_cast<double>(x)) * scale_; }
  double weight_of(int64_t token, size_t group) const {
    const double distance = distance_of(row_[static_cast<size_t>(token)]);
    return first_weights()[group] * near_one((distance - static_cast<double>(group)) / kPerNat);
  }

  std::vector<int64_t> sorted(size_t group) const {
    const double begin = static_cast<double>(group), highest = highest_, scale = scale_;
    std::vector<int64_t> tokens;
    for (size_t i = 0; i < row_.size(); ++i) {
      const double distance = (highest - static_cast<double>(row_[i])) * scale;
      // A branch that is almost never taken, since half of all tokens may lie on either side.
      if (!(std::abs(distance - (begin + 0.5)) <= 0.5)) continue;
      if (distance >= begin && distance < begin + 1) tokens.push_back(static_cast<int64_t>(i));
    }
    std::ranges::sort(tokens, [this](int64_t a, int64_t b) {
      const float left = row_[static_cast<size_t>(a)], right = row_[static_cast<size_t>(b)];
      return left != right ? left > right : a < b;
    });
    return tokens;
  }

  std::span<const float> row_;
  double highest_, scale_;
  std::array<double, kGroups> masses_{};
  double total_ = 0, slack_ = 0;
};

}  // namespace

std::optional<int64_t> draw_by_groups(std::span<const float> row, double uniform,
                                      const GroupDrawRules& rules) {
  constexpr double kColdest = 1e-3, kHottest = 1e3;
  if (!(rules.temperature >= kColdest && rules.temperature <= kHottest)) return {};
  const float highest = highest_of(row);
  if (!std::isfinite(highest)) return {};
  const Groups groups(row, highest, rules.temperature);
  double mass = groups.total();
  if (rules.top_p < 1) {
    const auto last = groups.token_at(rules.top_p * mass);
    if (!last) return {};
    mass = last->mass;
  }
  const auto found = groups.token_at(uniform * mass);
  return found ? std::optional(found->token) : std::nullopt;
}

}  // namespace stretto::decoding
