#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"

namespace stretto::testing {

/// A small configuration with a key of each type, for tests of the machinery.
struct OvenOptions {
  double heat = 180;
  int64_t minutes = 20;
  bool fan = false;
  std::string mode = "bake";
  std::vector<std::string> trays;
  std::vector<double> weights;
  std::string recipe;

  static auto fields() {
    using namespace config;
    using O = OvenOptions;
    return Fields{
        field(&O::heat, "heat", "how hot", between(50, 300), {.unit = "degrees"})
            .also_called({"temperature"})
            .also_called({"fahrenheit"}, "in degrees of Celsius")
            .also_called({"gas_mark"}, "= 180"),
        field(&O::minutes, "minutes", "how long", at_least(1),
              {.unit = "minutes", .change = Change::kFree}),
        field(&O::fan, "fan", "whether air moves"),
        field(&O::mode, "mode", "what it does", one_of({"bake", "grill", "defrost"}))
            .value_also_called("grill", {"broil", "barbecue"})
            .value_also_called("defrost", {"thaw"}, "slowly"),
        field(&O::trays, "trays", "what is inside", any(), {.is_path = true}),
        field(&O::weights, "weights", "of each tray", greater(0)),
        field(&O::recipe, "recipe", "a file", any(), {.is_path = true})
            .read_with("mode", {"bake", "grill"}),
    };
  }
};

struct RackOptions {
  int64_t height = 2;

  static auto fields() {
    return config::Fields{
        config::field(&RackOptions::height, "height", "from below", config::between(1, 5))};
  }
};

struct KitchenOptions {
  RackOptions upper, lower;
  double moisture = 0.5;

  static auto fields() {
    using namespace config;
    using O = KitchenOptions;
    return Fields{
        field(&O::upper, "upper", "the upper rack"),
        field(&O::lower, "lower", "the lower rack"),
        field(&O::moisture, "moisture", "share of water in the air", fraction()),
    };
  }
};

struct House {
  OvenOptions oven;
  KitchenOptions kitchen;

  static auto fields() {
    return config::Fields{
        config::field(&House::oven, "oven", "the oven"),
        config::field(&House::kitchen, "kitchen", "the room around it").also_called({"galley"})};
  }
};

}  // namespace stretto::testing
