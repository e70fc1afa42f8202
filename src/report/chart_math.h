#pragma once

#include <string>
#include <vector>

namespace stretto::report {

struct Point {
  double x = 0, y = 0;
};

/// Values for the ticks of an axis inside [low, high]: multiples of 1, 2 or 5 times a power of ten,
/// at most `max_ticks` and, but for an empty range, at least two.
std::vector<double> nice_ticks(double low, double high, int max_ticks);

/// The same for a logarithmic axis (0 < low <= high): 1, 2, 5 times powers of ten, only powers of
/// ten over many decades, and the ticks of a linear axis within less than a factor of three.
std::vector<double> nice_log_ticks(double low, double high, int max_ticks);

/// Ticks for an axis that may begin lower than its data: those of nice_ticks or nice_log_ticks,
/// with one more in front when the first would leave the foot of the axis without a label.
std::vector<double> axis_ticks(double low, double high, int max_ticks, bool logarithmic);

/// The labels of one axis, all in one format: the same unit (none, k, M, G or one power of ten) and
/// the same number of decimals; over decades each tick has its own unit or decimals, but all are
/// plain or all scientific. Zero is "0".
std::vector<std::string> tick_labels(const std::vector<double>& ticks);

/// A lone number as a label: "0.0005", "2.5", "1,200", "40k", "3M", "2e-5".
std::string tick_label(double value);

/// At most `max_points` of a curve, keeping first and last, and from each stretch between the least
/// and the greatest point, so that no spike is lost. Points keep their order.
std::vector<Point> downsample(const std::vector<Point>& points, size_t max_points);

/// Median of five (a lone spike is no trend), then an exponential moving average in both directions
/// (so that it does not lag) over about `window` points, corrected for the missing past at both
/// ends.
std::vector<Point> smooth(const std::vector<Point>& points, double window);

/// The value below which a share `q` (0..1) of the values lies; 0 for none.
double quantile(std::vector<double> values, double q);

}  // namespace stretto::report
