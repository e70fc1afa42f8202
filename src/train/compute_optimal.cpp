#include "train/compute_optimal.h"

#include <cstddef>
#include <span>
#include <vector>

#include "base/text.h"
#include "report/power_law.h"

namespace stretto::train {
namespace {

constexpr double kTail = 1.0 / 8;  // of the run: what came before is warm-up
constexpr double kTwice = 0.693;   // ln 2: gains are for e times as much

// What is won by so many times more updates, and by so many times more weights.
struct MarginalGains {
  double by_updates = 0, by_size = 0;

  bool are_over() const { return by_updates < by_size; }
};

std::optional<MarginalGains> gains_at_end(std::span<const report::Point> curve,
                                          double size_exponent) {
  if (curve.empty()) return std::nullopt;
  const double last = curve.back().x;
  size_t first = 0;
  while (curve[first].x < kTail * last) ++first;
  const auto tail = curve.subspan(first);
  if (static_cast<int64_t>(tail.size()) < kFewestValidations) return std::nullopt;
  const auto law = report::fit_power_law(tail);
  if (!law) return std::nullopt;
  return MarginalGains{law->exponent * law->excess(last), size_exponent * law->floor};
}

}  // namespace

std::optional<std::string> compute_optimal_reason(const std::map<int64_t, double>& quality,
                                                  int64_t every, double size_exponent) {
  std::vector<report::Point> curve;
  for (const auto& [step, value] : quality) {
    if (step > 0 && step % every == 0) curve.push_back({static_cast<double>(step), -value});
  }
  const auto gains = gains_at_end(curve, size_exponent);
  if (!gains || !gains->are_over()) return std::nullopt;
  const auto before = gains_at_end(std::span(curve).first(curve.size() - 1), size_exponent);
  if (!before || !before->are_over()) return std::nullopt;
  return "a larger model would gain more from here on: twice the time lowers the loss by about " +
         fixed(kTwice * gains->by_updates, 4) + " with this one and by " +
         fixed(kTwice * gains->by_size, 4) + " with a larger one (train.stop)";
}

}  // namespace stretto::train
