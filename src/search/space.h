#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"

namespace stretto::search {

/// A hyperparameter is part of a point only while an earlier one has one of these values.
struct Condition {
  size_t parameter = 0;             ///< its number in the space
  std::vector<std::string> values;  ///< texts as in a Point
};

/// The number of values of what is continuous.
inline constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max();
/// No grid has more values of one parameter.
inline constexpr uint64_t kMostOfGrid = 100'000;

/// One hyperparameter of a space: a key of the configuration and the values that it may take.
struct Parameter {
  enum class Kind : uint8_t { kCategorical, kNumbers, kInt, kDouble, kLog };

  std::string key;
  Kind kind = Kind::kCategorical;
  std::vector<std::string> values;  ///< of kCategorical and kNumbers
  double min = 0, max = 0;          ///< of the others, both included
  bool integer = false;             ///< kInt, and kLog that is rounded
  int64_t count = 0;                ///< points of a grid; 0 = all whole numbers
  std::vector<Condition> when;      ///< all must hold

  bool is_discrete() const { return kind == Kind::kCategorical || kind == Kind::kNumbers; }
  bool has_order() const { return kind != Kind::kCategorical; }

  /// The value at `u` in [0, 1) of the parameter's own scale, as text. A value of an interval has
  /// five significant digits, more where the interval is narrow.
  std::string at(double u) const;
  /// Whether `value` is one of its values.
  bool contains(const std::string& value) const;
  /// Its values in a grid; empty when a continuous one has no count, and when there are more than
  /// kMostOfGrid.
  std::vector<std::string> grid() const;
  /// How many values it has; kEndless for a continuous one.
  uint64_t num_values() const;
  /// Where a value stands on the parameter's scale, 0 at the least and 1 at the greatest; of
  /// categorical values by their order. 0.5 when there is one alone.
  double position(const std::string& value) const;
};

/// The values of a space's parameters, by their numbers; those that are no part of it are absent.
using Point = std::vector<std::optional<std::string>>;

/// The hyperparameters of a search.
struct Space {
  std::vector<Parameter> parameters;

  /// An upper bound of the number of points, those of every condition counted; kEndless = many.
  uint64_t num_points() const;
  /// Whether parameter `number` is part of a point that has `point`'s values below that number.
  bool is_active(size_t number, const Point& point) const;
  /// Whether the point has exactly the active parameters, each with one of its values.
  bool contains(const Point& point) const;

  /// A point that depends on nothing but these numbers, each parameter on a stream of its own, so
  /// that a narrowed neighbour moves nothing else.
  /// @param given  values that are not drawn, by parameter
  Point draw(uint64_t seed, uint64_t trial, uint64_t attempt, const Point& given = {}) const;

  /// "optim.lr=0.001 model.d_model=128"; what makes two points the same.
  std::string text(const Point& point) const;
  /// What `stretto train` is given: one "KEY=VALUE" for each value.
  std::vector<std::string> overrides(const Point& point) const;
};

/// The points of a space's grid, one after the other: the last parameter changes fastest.
class Grid {
 public:
  /// @param space  must live as long as this
  explicit Grid(const Space& space);
  /// Absent when a parameter has no grid.
  std::optional<Point> first() const;
  /// The point behind `point`; absent at the end.
  std::optional<Point> next(const Point& point) const;
  /// How many points there are; `most` + 1 stands for any greater number.
  uint64_t size(uint64_t most) const;

 private:
  std::optional<Point> completed(Point point, size_t from) const;
  bool is_named(size_t number, const std::string& value) const;
  uint64_t size_behind(size_t from, Point& point, uint64_t most) const;

  const Space& space_;
  std::vector<std::vector<std::string>> values_;  // of each parameter
};

}  // namespace stretto::search
