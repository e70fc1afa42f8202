#include "config/schema.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/config/sample_options.h"

namespace stretto::config {
namespace {

using stretto::testing::House;
using stretto::testing::KitchenOptions;
using stretto::testing::OvenOptions;

struct Forgetful {
  int64_t told = 0;
  int64_t forgotten = 0;
  static auto fields() { return Fields{field(&Forgetful::told, "told", "")}; }
};

TEST(ConfigSchema, AForgottenMemberIsNoticedWhenCompiling) {
  static_assert(!lists_every_member<Forgetful>);
  static_assert(lists_every_member<OvenOptions>);
  static_assert(lists_every_member<KitchenOptions>);
  static_assert(lists_every_member<House>);
  static_assert(detail::member_count<OvenOptions>() == 7);
  static_assert(detail::member_count<KitchenOptions>() == 3);
}

struct Shelf {
  int64_t boards = 3;
  double height = 1;
  static auto fields() {
    return Fields{field(&Shelf::boards, "boards", ""), field(&Shelf::height, "height", "")};
  }
};

struct Bookcase : Shelf {
  using Inherited = Shelf;
  bool has_door = false;
  static auto fields() {
    return Fields{
        field(&Bookcase::has_door, "has_door", "").read_with_any({"height", "boards"}, {})}
        .with(Shelf::fields());
  }
};

struct ForgetfulBookcase : Shelf {
  using Inherited = Shelf;
  bool forgotten = false;
  static auto fields() { return Shelf::fields(); }
};

struct Lamp {
  double watts = 4;
  static auto fields() { return Fields{field(&Lamp::watts, "watts", "")}; }
};

struct LitBookcase : Bookcase, Lamp {
  using Inherited = Bases<Bookcase, Lamp>;
  static auto fields() { return Bookcase::fields().with(Lamp::fields()); }
};

struct ForgetfulLitBookcase : Bookcase, Lamp {
  using Inherited = Bases<Bookcase, Lamp>;
  static auto fields() { return Bookcase::fields(); }
};

TEST(ConfigSchema, KeysOfSeveralBaseClassesAreCountedAndBound) {
  static_assert(detail::member_count<LitBookcase>() == 4);
  static_assert(lists_every_member<LitBookcase>);
  static_assert(!lists_every_member<ForgetfulLitBookcase>);
  LitBookcase bookcase;
  const Schema schema = schema_of(bookcase);
  ASSERT_EQ(schema.keys.size(), 4u);
  EXPECT_EQ(schema.keys[3].path, "watts");
  EXPECT_EQ(std::get<double*>(schema.keys[3].value), &bookcase.watts);
}

TEST(ConfigSchema, KeysOfABaseClassAreCountedAndBound) {
  static_assert(detail::member_count<Bookcase>() == 3);
  static_assert(lists_every_member<Bookcase>);
  static_assert(!lists_every_member<ForgetfulBookcase>);
  Bookcase bookcase;
  const Schema schema = schema_of(bookcase);
  ASSERT_EQ(schema.keys.size(), 3u);
  EXPECT_EQ(schema.keys[0].path, "has_door");
  EXPECT_EQ(schema.keys[1].path, "boards");
  EXPECT_EQ(std::get<int64_t*>(schema.keys[1].value), &bookcase.boards);
  const auto& readers = schema.keys[0].readers;
  ASSERT_EQ(readers.size(), 2u);
  EXPECT_EQ(readers[1].deciding_key, "boards");
}

TEST(ConfigSchema, ListsKeysAndSectionsWithTheirPathsInOrder) {
  House house;
  const Schema schema = schema_of(house);
  std::string keys, sections;
  for (const auto& key : schema.keys) keys += key.path + " ";
  for (const auto& section : schema.sections) sections += section.path + " ";
  EXPECT_EQ(keys,
            "oven.heat oven.minutes oven.fan oven.mode oven.trays oven.weights oven.recipe "
            "kitchen.upper.height kitchen.lower.height kitchen.moisture ");
  EXPECT_EQ(sections, "oven kitchen kitchen.upper kitchen.lower ");
  EXPECT_EQ(schema.find("oven.cold"), nullptr);
  EXPECT_EQ(schema.find_section("oven.heat"), nullptr);
}

TEST(ConfigSchema, WhatIsSaidBehindAFieldStandsAtItsKey) {
  House house;
  const auto schema = schema_of(house);
  const Key* heat = schema.find("oven.heat");
  ASSERT_EQ(heat->other_names.size(), 3u);
  EXPECT_EQ(heat->other_names[0].name, "temperature");
  EXPECT_EQ(heat->other_names[0].note, "");
  EXPECT_EQ(heat->other_names[2].note, "= 180");
  EXPECT_EQ(schema.find("oven.mode")->other_values[2].value, "defrost");
  const auto& readers = schema.find("oven.recipe")->readers;
  ASSERT_EQ(readers.size(), 1u);
  EXPECT_EQ(readers[0].deciding_key, "oven.mode");
  EXPECT_EQ(readers[0].values, (std::vector<std::string>{"bake", "grill"}));
  EXPECT_TRUE(heat->readers.empty());
  EXPECT_EQ(schema.find_section("kitchen")->other_names[0].name, "galley");
}

TEST(ConfigSchema, PointsIntoTheObjectThatItWasMadeFor) {
  House house;
  const Schema schema = schema_of(house);
  *std::get<int64_t*>(schema.find("kitchen.lower.height")->value) = 4;
  EXPECT_EQ(house.kitchen.lower.height, 4);
  EXPECT_EQ(house.kitchen.upper.height, 2);
}

TEST(ConfigSchema, WritesNumbersAsPeopleDo) {
  EXPECT_EQ(number_text(0.0005), "0.0005");
  EXPECT_EQ(number_text(1e-7), "1e-7");
  EXPECT_EQ(number_text(1.25e-6), "1.25e-6");
  EXPECT_EQ(number_text(3), "3");
  EXPECT_EQ(number_text(-2.5), "-2.5");
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(1e20), "1e20");
  EXPECT_EQ(number_text(0.1), "0.1");
  for (const double value : {1.0 / 3, 6.02e23, 1e-300, 123456.789}) {
    EXPECT_EQ(std::stod(number_text(value)), value);
  }
}

TEST(ConfigSchema, WritesValuesAsTomlDoes) {
  House house;
  house.oven.heat = 200;
  house.oven.mode = "a \"quoted\" \\ word\n";
  house.oven.trays = {"x", "y z"};
  house.oven.weights = {1, 0.5};
  const Schema schema = schema_of(house);
  const auto text = [&](const char* key) { return value_text(schema.find(key)->value); };
  EXPECT_EQ(text("oven.heat"), "200.0");
  EXPECT_EQ(text("oven.minutes"), "20");
  EXPECT_EQ(text("oven.fan"), "false");
  EXPECT_EQ(text("oven.mode"), R"("a \"quoted\" \\ word\u000A")");
  EXPECT_EQ(text("oven.trays"), R"(["x", "y z"])");
  EXPECT_EQ(text("oven.weights"), "[1.0, 0.5]");
}

TEST(ConfigSchema, SaysWhichValuesAreAllowed) {
  House house;
  const Schema schema = schema_of(house);
  EXPECT_EQ(range_text(*schema.find("oven.heat")), "in [50, 300]");
  EXPECT_EQ(range_text(*schema.find("oven.minutes")), ">= 1");
  EXPECT_EQ(range_text(*schema.find("oven.weights")), "> 0");
  EXPECT_EQ(range_text(*schema.find("oven.mode")), "one of bake, grill, defrost");
  EXPECT_EQ(range_text(*schema.find("kitchen.moisture")), "in [0, 1)");
  EXPECT_EQ(range_text(*schema.find("oven.fan")), "");
}

TEST(ConfigSchema, BoundsBelongToTheRangeOrNotAsDeclared) {
  House house;
  const Schema schema = schema_of(house);
  const auto error_at = [&](double moisture) {
    house.kitchen.moisture = moisture;
    return range_error(*schema.find("kitchen.moisture"));
  };
  EXPECT_EQ(error_at(0), "");
  EXPECT_EQ(error_at(0.999), "");
  EXPECT_EQ(error_at(1), "must be in [0, 1), got 1.0");
  EXPECT_EQ(error_at(-0.001), "must be in [0, 1), got -0.001");
  EXPECT_NE(error_at(std::numeric_limits<double>::quiet_NaN()), "");
  EXPECT_NE(error_at(std::numeric_limits<double>::infinity()), "");
  house.oven.weights = {1, 0};
  EXPECT_EQ(range_error(*schema.find("oven.weights")), "must be > 0, got [1.0, 0.0]");
}

}  // namespace
}  // namespace stretto::config
