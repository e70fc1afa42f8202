#include "search/space.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "config/schema.h"

namespace stretto::search {
namespace {

constexpr int kDigits = 5, kAllDigits = 17;

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  char text[64];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, digits - 1);
  return number_of(std::string(text, end.ptr)).value_or(value);
}

// In [0, 1), of a stream that no other parameter, trial or attempt reads.
double uniform(uint64_t seed, uint64_t trial, uint64_t attempt, size_t parameter) {
  return RandomStream(mix64(mix64(seed, trial), attempt), parameter).uniform();
}

// Significant digits of a value: five of the interval's width.
int digits_in(double min, double max) {
  const double zoom = std::max(std::abs(min), std::abs(max)) / (max - min);
  if (!(zoom > 1)) return kDigits;
  return static_cast<int>(std::min<double>(kAllDigits, kDigits + std::ceil(std::log10(zoom))));
}

double scaled(const Parameter& parameter, double value) {
  return parameter.kind == Parameter::Kind::kLog ? std::log(value) : value;
}

double unscaled(const Parameter& parameter, double value) {
  return parameter.kind == Parameter::Kind::kLog ? std::exp(value) : value;
}

std::string text_of(const Parameter& parameter, double value) {
  if (!parameter.integer)
    return config::number_text(std::clamp(value, parameter.min, parameter.max));
  return config::number_text(
      std::clamp(std::round(value), std::ceil(parameter.min), std::floor(parameter.max)));
}

}  // namespace

std::string Parameter::at(double u) const {
  if (is_discrete()) {
    const auto size = static_cast<double>(values.size());
    return values[std::min(values.size() - 1, static_cast<size_t>(u * size))];
  }
  if (kind == Kind::kInt) return text_of(*this, std::floor(min + u * (max - min + 1)));
  const double low = scaled(*this, min), high = scaled(*this, max);
  const double value = unscaled(*this, low + u * (high - low));
  return text_of(*this, integer ? value : rounded(value, digits_in(min, max)));
}

bool Parameter::contains(const std::string& value) const {
  if (is_discrete()) return std::find(values.begin(), values.end(), value) != values.end();
  const auto number = number_of(value);
  if (!number || !(*number >= min && *number <= max)) return false;
  return !integer || *number == std::round(*number);
}

uint64_t Parameter::num_values() const {
  if (is_discrete()) return values.size();
  return integer ? static_cast<uint64_t>(std::floor(max) - std::ceil(min)) + 1 : kEndless;
}

std::vector<std::string> Parameter::grid() const {
  if (is_discrete()) return values;
  const bool all_whole = count == 0 && kind == Kind::kInt && num_values() <= kMostOfGrid;
  const auto points = all_whole ? static_cast<int64_t>(num_values()) : count;
  const double low = scaled(*this, min), high = scaled(*this, max);
  std::vector<std::string> all;
  for (int64_t i = 0; i < points; ++i) {
    const double share =
        points == 1 ? 0.5 : static_cast<double>(i) / static_cast<double>(points - 1);
    const double value = unscaled(*this, low + share * (high - low));
    // The bounds themselves, and not what the logarithm makes of them.
    const double inner = integer ? value : rounded(value, digits_in(min, max));
    std::string text = text_of(*this, share == 0 ? min : share == 1 ? max : inner);
    if (all.empty() || all.back() != text) all.push_back(std::move(text));
  }
  return all;
}

double Parameter::position(const std::string& value) const {
  if (kind == Kind::kCategorical) {
    const auto place = std::find(values.begin(), values.end(), value) - values.begin();
    const auto last = static_cast<double>(values.size()) - 1;
    return last <= 0 ? 0.5 : std::min(1.0, static_cast<double>(place) / last);
  }
  double low = min, high = max;
  if (kind == Kind::kNumbers) {
    low = high = number_of(values.front()).value_or(0);
    for (const auto& text : values) {
      low = std::min(low, number_of(text).value_or(low));
      high = std::max(high, number_of(text).value_or(high));
    }
  }
  const double from = scaled(*this, low), to = scaled(*this, high);
  const double here = scaled(*this, number_of(value).value_or(low));
  return to > from ? std::clamp((here - from) / (to - from), 0.0, 1.0) : 0.5;
}

uint64_t Space::num_points() const {
  uint64_t all = 1;
  for (const auto& parameter : parameters) {
    const uint64_t here = std::max<uint64_t>(1, parameter.num_values());
    if (all > kEndless / here) return kEndless;
    all *= here;
  }
  return all;
}

bool Space::is_active(size_t number, const Point& point) const {
  const auto holds = [&](const Condition& condition) {
    const auto& value = point[condition.parameter];
    return value && std::find(condition.values.begin(), condition.values.end(), *value) !=
                        condition.values.end();
  };
  const auto& when = parameters[number].when;
  return std::all_of(when.begin(), when.end(), holds);
}

bool Space::contains(const Point& point) const {
  if (point.size() != parameters.size()) return false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (is_active(i, point) != point[i].has_value()) return false;
    if (point[i] && !parameters[i].contains(*point[i])) return false;
  }
  return true;
}

Point Space::draw(uint64_t seed, uint64_t trial, uint64_t attempt, const Point& given) const {
  Point point(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!is_active(i, point)) continue;
    if (i < given.size() && given[i]) {
      point[i] = given[i];
    } else {
      point[i] = parameters[i].at(uniform(seed, trial, attempt, i));
    }
  }
  return point;
}

std::string Space::text(const Point& point) const {
  return join(overrides(point), " ");
}

std::vector<std::string> Space::overrides(const Point& point) const {
  std::vector<std::string> words;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (point[i]) words.push_back(parameters[i].key + "=" + *point[i]);
  }
  return words;
}

Grid::Grid(const Space& space) : space_(space) {
  for (const auto& parameter : space.parameters) values_.push_back(parameter.grid());
}

// With the first values of the active parameters behind `from`.
std::optional<Point> Grid::completed(Point point, size_t from) const {
  point.resize(from);
  point.resize(values_.size());
  for (size_t i = from; i < values_.size(); ++i) {
    if (!space_.is_active(i, point)) continue;
    if (values_[i].empty()) return std::nullopt;
    point[i] = values_[i].front();
  }
  return point;
}

std::optional<Point> Grid::first() const {
  return completed({}, 0);
}

uint64_t Grid::size(uint64_t most) const {
  Point point(values_.size());
  return size_behind(0, point, most);
}

// Whether a condition of a later parameter goes by this value.
bool Grid::is_named(size_t number, const std::string& value) const {
  for (const auto& parameter : space_.parameters) {
    for (const auto& condition : parameter.when) {
      const auto& named = condition.values;
      if (condition.parameter != number) continue;
      if (std::find(named.begin(), named.end(), value) != named.end()) return true;
    }
  }
  return false;
}

// Those with the values that `point` has before `from`. Values that no condition names have the
// same number of points behind them, which is counted once.
uint64_t Grid::size_behind(size_t from, Point& point, uint64_t most) const {
  while (from < values_.size() && !space_.is_active(from, point)) ++from;
  if (from == values_.size()) return 1;
  uint64_t points = 0, others = 0;
  std::string other;
  for (const auto& value : values_[from]) {
    if (points > most) break;
    if (!is_named(from, value)) {
      other = value;
      ++others;
      continue;
    }
    point[from] = value;
    points += size_behind(from + 1, point, most);
  }
  if (others > 0 && points <= most) {
    point[from] = other;
    points += others * size_behind(from + 1, point, most);
  }
  point[from].reset();
  return std::min(points, most + 1);
}

std::optional<Point> Grid::next(const Point& point) const {
  for (size_t back = values_.size(); back-- > 0;) {
    if (!point[back]) continue;
    const auto place = std::find(values_[back].begin(), values_[back].end(), *point[back]);
    if (place == values_[back].end() || place + 1 == values_[back].end()) continue;
    Point next = point;
    next[back] = *(place + 1);
    return completed(std::move(next), back + 1);
  }
  return std::nullopt;
}

}  // namespace stretto::search
