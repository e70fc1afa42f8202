#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "tests/experiment/recipes.h"

namespace stretto::testing {

/// The recipes that come with Stretto, one after another, each time with one to five numbers that
/// their types hardly hold: what computes with them must not overflow. One seed makes the same
/// overrides everywhere.
class ExtremeValues {
 public:
  struct Made {
    std::filesystem::path recipe;
    std::vector<std::string> overrides;  ///< "data.max_tokens=-9223372036854775808"
  };

  /// @param source  the folder of Stretto's sources
  ExtremeValues(const std::filesystem::path& source, uint64_t seed) : random_(seed) {
    auto recipes = shipped_recipes(source);
    std::sort(recipes.begin(), recipes.end());  // folders are listed in any order
    for (const auto& path : recipes) {
      try {
        numbers_.push_back({path, numbers_of(path)});
      } catch (const Error&) {
        // Its data is not here.
      }
    }
  }

  size_t num_recipes() const { return numbers_.size(); }

  Made next() {
    const auto& [recipe, numbers] = numbers_[made_++ % numbers_.size()];
    Made made{.recipe = recipe, .overrides = {}};
    for (size_t i = 1 + random_() % 5; i > 0; --i) {
      const auto& number = numbers[random_() % numbers.size()];
      const auto& values = number.is_integer ? integers() : reals();
      made.overrides.push_back(number.path + "=" + values[random_() % values.size()]);
    }
    return made;
  }

 private:
  struct Number {
    std::string path;
    bool is_integer;
  };

  static std::vector<Number> numbers_of(const std::filesystem::path& recipe) {
    auto loaded = experiment::load_experiment(recipe, {});
    std::vector<Number> found;
    for (const auto& key : experiment::experiment_schema(loaded.options).keys) {
      const bool is_integer = std::holds_alternative<int64_t*>(key.value);
      if (is_integer || std::holds_alternative<double*>(key.value)) {
        found.push_back({key.path, is_integer});
      }
    }
    return found;
  }

  static const std::vector<std::string>& integers() {
    static const std::vector<std::string> values{"-9223372036854775808",
                                                 "-9223372036854775807",
                                                 "-1000000000000",
                                                 "-1",
                                                 "0",
                                                 "1",
                                                 "7",
                                                 "2147483647",
                                                 "4294967296",
                                                 "1000000000000",
                                                 "9007199254740993",
                                                 "9223372036854775806",
                                                 "9223372036854775807"};
    return values;
  }

  static const std::vector<std::string>& reals() {
    static const std::vector<std::string> values{"-1e308",
                                                 "-1.0",
                                                 "-0.0",
                                                 "0.0",
                                                 "1e-320",
                                                 "1e-12",
                                                 "0.999",
                                                 "1.0",
                                                 "1e19",
                                                 "1e300",
                                                 "1.7976931348623157e308"};
    return values;
  }

  std::mt19937_64 random_;
  std::vector<std::pair<std::filesystem::path, std::vector<Number>>> numbers_;
  size_t made_ = 0;
};

}  // namespace stretto::testing
