#include "metrics/value_pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "metrics/sums.h"

namespace stretto::metrics {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// Pearson correlation: differences from the mean are scaled to length 1 first, by way of a largest
/// one of 1, so that no square overflows or vanishes.
double correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return kNoNumber;
  const auto centred = [](std::span<const double> values) {
    const double mean =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    std::vector<double> out(values.begin(), values.end());
    double largest = 0;
    for (double& value : out) {
      value -= mean;
      largest = std::max(largest, std::abs(value));
    }
    for (double& value : out) value /= largest;
    return out;
  };
  const auto length = [](std::span<const double> values) {
    return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
  };
  const auto is_constant = [](std::span<const double> values) {
    return std::all_of(values.begin(), values.end(),
                       [&](double value) { return value == values.front(); });
  };
  if (is_constant(a) || is_constant(b)) return kNoNumber;
  const auto from_mean_a = centred(a), from_mean_b = centred(b);
  const double length_a = length(from_mean_a), length_b = length(from_mean_b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += from_mean_a[i] / length_a * (from_mean_b[i] / length_b);
  }
  return std::isnan(sum) ? sum : std::clamp(sum, -1.0, 1.0);
}

bool has_nan(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
}

}  // namespace

ValuePairs::ValuePairs(int64_t num_samples) {
  if (num_samples < 0) throw std::invalid_argument("a negative number of samples");
  num_samples_ = static_cast<size_t>(num_samples);
  sums_.resize(3 * num_samples_);
}

void ValuePairs::add(int64_t sample, double gold, double predicted) {
  require_index(sample, static_cast<int64_t>(num_samples_), "sample");
  const auto at = static_cast<size_t>(sample);
  if (sums_[2 * num_samples_ + at] != 0) {
    throw std::invalid_argument("sample " + std::to_string(sample) + " is added twice");
  }
  sums_[at] = gold;
  sums_[num_samples_ + at] = predicted;
  sums_[2 * num_samples_ + at] = 1;
}

void ValuePairs::set_sums(std::span<const double> sums) {
  take_sums(sums_, sums);
}

/// A sample that several processes added has the mean of what they gave.
ValuePairs::Columns ValuePairs::added() const {
  Columns columns;
  for (size_t i = 0; i < num_samples_; ++i) {
    const double times = sums_[2 * num_samples_ + i];
    if (times == 0) continue;
    columns.gold.push_back(sums_[i] / times);
    columns.predicted.push_back(sums_[num_samples_ + i] / times);
  }
  return columns;
}

double ValuePairs::pearson() const {
  const auto columns = added();
  return correlation(columns.gold, columns.predicted);
}

double ValuePairs::spearman() const {
  const auto columns = added();
  if (has_nan(columns.gold) || has_nan(columns.predicted)) return kNoNumber;
  return correlation(average_ranks(columns.gold), average_ranks(columns.predicted));
}

double ValuePairs::mean_squared_error() const {
  const auto columns = added();
  double sum = 0;
  for (size_t i = 0; i < columns.gold.size(); ++i) {
    const double difference = columns.gold[i] - columns.predicted[i];
    sum += difference * difference;
  }
  return columns.gold.empty() ? kNoNumber : sum / static_cast<double>(columns.gold.size());
}

std::vector<double> average_ranks(std::span<const double> values) {
  if (has_nan(values)) throw std::invalid_argument("a NaN has no rank");
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
  }
  return ranks;
}

}  // namespace stretto::metrics
