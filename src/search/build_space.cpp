#include "search/build_space.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/text.h"
#include "config/schema.h"
#include "search/path_values.h"

namespace stretto::search {
namespace {

constexpr double kMostWhole = 9e15;  // that a double holds exactly

/// Notes what is wrong with one block.
class BlockCheck {
 public:
  BlockCheck(size_t number, const config::Origins& origins, std::vector<config::Problem>& problems)
      : number_(number), origins_(origins), problems_(problems) {}

  /// @param name  of the block's key that is blamed
  void wrong(const std::string& name, const std::string& what, const std::string& hint) {
    const std::string key = space_key(number_, name);
    is_sound_ = false;
    if (config::is_unreliable(problems_, key)) return;
    problems_.push_back({origins_.of(key), what, hint, key, origins_.order_of(key)});
  }
  bool given(const std::string& name) const { return origins_.given(space_key(number_, name)); }
  bool is_sound() const { return is_sound_; }

 private:
  size_t number_;
  const config::Origins& origins_;
  std::vector<config::Problem>& problems_;
  bool is_sound_ = true;
};

std::string plain_number(const std::string& text) {
  try {
    size_t end = 0;
    const double value = std::stod(text, &end);
    return end == text.size() ? config::number_text(value) : text;
  } catch (const std::exception&) {
    return text;
  }
}

// A value as points have it.
std::string as_value(const Parameter& parameter, const std::string& text) {
  return parameter.kind == Parameter::Kind::kCategorical ? canonical_value(parameter.key, text)
                                                         : plain_number(text);
}

template <class Options>
Parameter parameter_of(const Options& options) {
  Parameter parameter{.key = options.key};
  if constexpr (std::is_same_v<Options, CategoricalOptions>) {
    parameter.values = options.values;
  } else if constexpr (std::is_same_v<Options, NumbersOptions>) {
    parameter.kind = Parameter::Kind::kNumbers;
    for (const double value : options.values) {
      parameter.values.push_back(config::number_text(value));
    }
  } else {
    parameter.min = static_cast<double>(options.min);
    parameter.max = static_cast<double>(options.max);
    parameter.count = options.count;
    parameter.kind = Parameter::Kind::kDouble;
    if constexpr (std::is_same_v<Options, IntOptions>) {
      parameter.kind = Parameter::Kind::kInt;
      parameter.integer = true;
    }
    if constexpr (std::is_same_v<Options, LogOptions>) {
      parameter.kind = Parameter::Kind::kLog;
      parameter.integer = options.integer;
    }
  }
  return parameter;
}

std::string twice(std::vector<std::string> values) {
  std::sort(values.begin(), values.end());
  const auto found = std::adjacent_find(values.begin(), values.end());
  return found == values.end() ? "" : *found;
}

void check_values(const Parameter& parameter, BlockCheck& check) {
  if (parameter.values.empty()) {
    return check.wrong("values", "has no value, so that the space has no points",
                       "write the values to try: values = [\"a\", \"b\"]");
  }
  if (const auto value = twice(parameter.values); !value.empty()) {
    check.wrong("values", "has `" + printable(value) + "` twice", "leave one of them out");
  }
}

void check_bounds(const Parameter& parameter, bool is_grid, BlockCheck& check) {
  for (const char* bound : {"min", "max"}) {
    if (!check.given(bound)) check.wrong(bound, "is missing", "give both min and max");
  }
  if (!check.is_sound()) return;
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!finite(parameter.min) || !finite(parameter.max)) {
    return check.wrong("max", "must be finite", "give numbers");
  }
  if (parameter.min > parameter.max) {
    return check.wrong("max", "is less than min, so that the space has no points", "exchange them");
  }
  if (parameter.kind == Parameter::Kind::kLog && parameter.min <= 0) {
    return check.wrong("min", "must be above 0, since its logarithm counts",
                       "a double has any bounds: name = \"double\"");
  }
  if (parameter.integer &&
      std::max(std::abs(parameter.min), std::abs(parameter.max)) > kMostWhole) {
    return check.wrong("max", "is too large for a whole number", "take bounds within 9e15");
  }
  if (parameter.integer && std::ceil(parameter.min) > std::floor(parameter.max)) {
    return check.wrong("max", "leaves no whole number, so that the space has no points",
                       "take wider bounds");
  }
  if (is_grid && parameter.grid().empty()) {
    check.wrong("count", "is needed: a grid has no end of points otherwise",
                "count = 4 takes both bounds and two values between them");
  }
}

// The parameter that a condition names: of those above it.
std::optional<size_t> parent_of(const std::string& key, const Space& above, BlockCheck& check) {
  std::optional<size_t> found;
  std::vector<std::string> keys;
  for (size_t i = 0; i < above.parameters.size(); ++i) {
    keys.push_back(above.parameters[i].key);
    if (keys.back() != key) continue;
    if (found) {
      check.wrong("when", "`" + printable(key) + "` is no one hyperparameter: it stands twice",
                  "name one that stands once");
      return std::nullopt;
    }
    found = i;
  }
  if (!found) {
    const std::string near = closest(key, keys);
    check.wrong("when", "`" + printable(key) + "` is no hyperparameter above this one",
                near.empty() ? "a condition names the key of a block [[space]] that stands above"
                             : "did you mean `" + near + "`?");
  }
  return found;
}

void add_condition(const std::string& text, const Space& above, bool begins, Parameter& parameter,
                   BlockCheck& check) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return check.wrong("when", "`" + printable(text) + "` is no condition",
                       "write KEY=VALUE: \"optim.name=sgd\"");
  }
  const auto parent = parent_of(trim(text.substr(0, equals)), above, check);
  if (!parent) return;
  const Parameter& owner = above.parameters[*parent];
  if (!owner.is_discrete() && !owner.integer) {
    return check.wrong("when", "`" + owner.key + "` is continuous: it has hardly ever one value",
                       "name a hyperparameter of few values");
  }
  const std::string value = as_value(owner, trim(text.substr(equals + 1)));
  if (begins && !owner.contains(value)) {
    const std::string near = closest(value, owner.values);
    return check.wrong(
        "when", "`" + printable(text) + "` never holds: `" + owner.key + "` has no such value here",
        near.empty() ? "name one of its values" : "did you mean `" + near + "`?");
  }
  const auto known = std::find_if(parameter.when.begin(), parameter.when.end(),
                                  [&](const Condition& c) { return c.parameter == *parent; });
  if (known != parameter.when.end()) {
    known->values.push_back(value);
  } else {
    parameter.when.push_back({.parameter = *parent, .values = {value}});
  }
}

// Whether no point has both, by a condition on one parameter with other values.
bool exclude_each_other(const Parameter& a, const Parameter& b) {
  for (const auto& one : a.when) {
    for (const auto& other : b.when) {
      if (one.parameter != other.parameter) continue;
      const bool shared = std::any_of(one.values.begin(), one.values.end(), [&](const auto& value) {
        return std::find(other.values.begin(), other.values.end(), value) != other.values.end();
      });
      if (!shared) return true;
    }
  }
  return false;
}

/// @param begins  a search that goes on keeps the keys that earlier releases took
void check_key(const Parameter& parameter, const Space& above, bool begins, BlockCheck& check) {
  const std::string& key = parameter.key;
  if (key.empty()) {
    return check.wrong("key", "is missing", "name a key of the configuration: key = \"optim.lr\"");
  }
  if (key.find('=') != std::string::npos) {
    check.wrong("key", "`" + printable(key) + "` is no key: there is a = in it",
                "values stand in the keys values, min and max");
  }
  if (key == "train.max_steps") {
    check.wrong("key", "is the length of a trial, by which trials are compared",
                "set it in search.config or search.overrides");
  }
  if (begins && (key == "train.max_epochs" || key == "train.max_hours")) {
    check.wrong("key", "ends trials before their length, by which trials are compared",
                "set it in search.config or search.overrides, where it is the same for all");
  }
  if (key == "run.threads") {
    check.wrong("key", "is set for each trial by search.slots_per_trial", "leave the block out");
  }
  for (const auto& other : above.parameters) {
    if (other.key == key && !exclude_each_other(other, parameter)) {
      check.wrong("key", "`" + key + "` is there already, in a block above",
                  "leave one out, or give both a `when` with other values of one key");
    }
  }
}

/// Reads one text of `search.points`, and notes what is wrong with it.
class PointReader {
 public:
  /// @param must_fit  its values must be in the space, which may have become narrower otherwise
  PointReader(const Space& space, bool must_fit, const config::Origins& origins,
              std::vector<config::Problem>& problems)
      : space_(space), must_fit_(must_fit), origins_(origins), problems_(problems) {}

  Point read(const std::string& text) {
    Point point(space_.parameters.size());
    std::vector<std::string> names;
    for (const auto& word : point_words(text)) {
      names.push_back(word.substr(0, word.find('=')));
      read_word(word, point);
    }
    if (const auto name = twice(names); !name.empty()) {
      wrong("`" + printable(text) + "` has `" + printable(name) + "` twice",
            "leave one of them out");
    }
    if (must_fit_) check_conditions(point);
    return point;
  }

 private:
  void read_word(const std::string& word, Point& point) {
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const std::string value = equals < word.size() ? word.substr(equals + 1) : "";
    bool is_known = false, fits = false;
    std::vector<std::string> keys;
    for (size_t i = 0; i < space_.parameters.size(); ++i) {
      const Parameter& parameter = space_.parameters[i];
      keys.push_back(parameter.key);
      if (parameter.key != name) continue;
      is_known = true;
      if (!parameter.contains(as_value(parameter, value))) continue;
      fits = true;
      point[i] = as_value(parameter, value);
    }
    const std::string near = closest(name, keys);
    if (!is_known) {
      wrong("`" + printable(word) + "`: there is no block [[space]] of that key",
            near.empty() ? "a point has values of hyperparameters alone, without spaces in them"
                         : "did you mean `" + near + "`?");
    } else if (!fits && must_fit_) {
      wrong("`" + printable(word) + "` is not in the space",
            "take one of its values, or widen it before the search begins");
    }
  }

  // Where a key has several blocks, the one whose conditions may hold counts.
  void check_conditions(const Point& point) {
    for (size_t i = 0; i < point.size(); ++i) {
      const Parameter& parameter = space_.parameters[i];
      if (!point[i] || may_hold(parameter, point)) continue;
      bool has_another_block = false;
      for (size_t k = 0; k < point.size(); ++k) {
        const Parameter& other = space_.parameters[k];
        has_another_block |= other.key == parameter.key && point[k] && may_hold(other, point);
      }
      if (has_another_block) continue;
      wrong("`" + parameter.key + "=" + printable(*point[i]) +
                "` is no part of this point: its `when` does not hold there",
            "leave it out, or give the values that its `when` names");
    }
  }

  static bool may_hold(const Parameter& parameter, const Point& point) {
    return std::all_of(parameter.when.begin(), parameter.when.end(), [&](const Condition& one) {
      const auto& value = point[one.parameter];
      return !value || std::find(one.values.begin(), one.values.end(), *value) != one.values.end();
    });
  }

  void wrong(const std::string& what, const std::string& hint) {
    const std::string key = "search.points";
    problems_.push_back({origins_.of(key), what, hint, key, origins_.order_of(key)});
  }

  const Space& space_;
  bool must_fit_;
  const config::Origins& origins_;
  std::vector<config::Problem>& problems_;
};

}  // namespace

Space build_space(const SearchFileOptions& options, const config::Origins& origins,
                  const SpaceUse& use, std::vector<config::Problem>& problems) {
  const bool is_grid = options.method.is<GridOptions>();
  Space space;
  if (options.space.empty() && !config::is_unreliable(problems, "space")) {
    problems.push_back({origins.of("space"), "the space has no points: there is no block [[space]]",
                        "add one for each hyperparameter, with key, name and values or bounds",
                        "space", origins.order_of("space")});
  }
  for (size_t i = 0; i < options.space.size(); ++i) {
    BlockCheck check(i, origins, problems);
    Parameter parameter = options.space[i].visit([](const auto& o) { return parameter_of(o); });
    const auto& when = options.space[i].visit(
        [](const auto& o) -> const std::vector<std::string>& { return o.when; });
    for (const auto& condition : when) {
      add_condition(condition, space, use.begins, parameter, check);
    }
    check_key(parameter, space, use.begins, check);
    if (parameter.is_discrete()) {
      check_values(parameter, check);
    } else {
      check_bounds(parameter, is_grid, check);
    }
    space.parameters.push_back(std::move(parameter));
  }
  return space;
}

std::vector<Point> build_points(const SearchOptions& options, const Space& space,
                                const config::Origins& origins, const SpaceUse& use,
                                std::vector<config::Problem>& problems) {
  std::vector<Point> points;
  for (const auto& text : options.points) {
    const bool must_fit = use.begins || points.size() >= use.used_points;
    points.push_back(PointReader(space, must_fit, origins, problems).read(text));
  }
  return points;
}

}  // namespace stretto::search
