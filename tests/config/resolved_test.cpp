#include "config/resolved.h"

#include <gtest/gtest.h>

#include "config/describe.h"
#include "config/load.h"
#include "tests/config/sample_options.h"

namespace stretto::config {
namespace {

using stretto::testing::House;

House unusual() {
  House house;
  house.oven.heat = 123.456;
  house.oven.minutes = 9007199254740993;
  house.oven.fan = true;
  house.oven.mode = "defrost";
  house.oven.trays = {"/a \"b\"\\c", "/\xC3\xA9\t"};
  house.oven.weights = {1.0 / 3, 1e-300, 5};
  house.oven.recipe = "/x # no comment";
  house.kitchen.lower.height = 5;
  return house;
}

TEST(ConfigResolved, ReadsBackToTheSameValues) {
  House before = unusual(), after, fallback;
  const auto defaults = schema_of(fallback);
  for (const Schema* comments : {static_cast<const Schema*>(nullptr), &defaults}) {
    const std::string text = to_toml(schema_of(before), comments);
    std::vector<Problem> problems;
    after = House();
    load_text(text, "x", "/elsewhere", {}, schema_of(after), defaults, problems);
    EXPECT_TRUE(problems.empty()) << problems.front().what;
    EXPECT_EQ(to_toml(schema_of(after), comments), text);
    EXPECT_EQ(after.oven.minutes, before.oven.minutes);
    EXPECT_EQ(after.oven.weights, before.oven.weights);
    EXPECT_EQ(after.oven.trays, before.oven.trays);
    EXPECT_EQ(after.oven.recipe, before.oven.recipe);
  }
}

TEST(ConfigResolved, HoldsEveryKeyWithDefaultAndUnit) {
  House house;
  house.oven.heat = 200;
  const auto schema = schema_of(house);
  House fallback;
  const auto defaults = schema_of(fallback);
  EXPECT_EQ(to_toml(schema, &defaults),
            "[oven]\n"
            "heat = 200.0  # default 180.0 degrees; how hot\n"
            "minutes = 20  # default 20 minutes; how long\n"
            "fan = false  # default false; whether air moves\n"
            "mode = \"bake\"  # default \"bake\"; what it does\n"
            "trays = []  # default []; what is inside\n"
            "weights = []  # default []; of each tray\n"
            "recipe = \"\"  # default \"\"; a file\n"
            "\n[kitchen]\n"
            "moisture = 0.5  # default 0.5; share of water in the air\n"
            "\n[kitchen.upper]\n"
            "height = 2  # default 2; from below\n"
            "\n[kitchen.lower]\n"
            "height = 2  # default 2; from below\n");
}

TEST(ConfigResolved, OnlyFixedKeysMakeAnotherExperiment) {
  House a, b;
  b.oven.minutes = 99;  // free
  EXPECT_EQ(fixed_hash(schema_of(a), {}), fixed_hash(schema_of(b), {}));
  EXPECT_TRUE(differences(schema_of(a), schema_of(b), {}).empty());
  EXPECT_NE(fixed_hash(schema_of(a), {"oven.minutes"}), fixed_hash(schema_of(b), {"oven.minutes"}));
  EXPECT_EQ(differences(schema_of(a), schema_of(b), {"oven.minutes"}),
            (std::vector<std::string>{"oven.minutes: 20 in the run, 99 now"}));
  b.oven.heat = 200;
  b.kitchen.upper.height = 3;
  EXPECT_NE(fixed_hash(schema_of(a), {}), fixed_hash(schema_of(b), {}));
  EXPECT_EQ(differences(schema_of(a), schema_of(b), {}),
            (std::vector<std::string>{"oven.heat: 180.0 in the run, 200.0 now",
                                      "kitchen.upper.height: 2 in the run, 3 now"}));
}

/// A key that says how files are read.
struct Scanner {
  std::string page = "left";
  static auto fields() {
    return Fields{field(&Scanner::page, "page", "which is read first", one_of({"left", "right"}),
                        {.change = Change::kReading})};
  }
};
struct Desk {
  Scanner scanner;
  static auto fields() { return Fields{field(&Desk::scanner, "scanner", "on the desk")}; }
};

TEST(ConfigResolved, HowFilesAreReadMakesAnotherExperimentToo) {
  Desk a, b;
  b.scanner.page = "right";
  EXPECT_NE(fixed_hash(schema_of(a), {}), fixed_hash(schema_of(b), {}));
  EXPECT_EQ(differences(schema_of(a), schema_of(b), {}),
            std::vector<std::string>{"scanner.page: \"left\" in the run, \"right\" now"});
  EXPECT_NE(describe(schema_of(a), "scanner.page")
                .find("fixed for a run; eval and infer take another value"),
            std::string::npos);
  EXPECT_NE(reference_markdown(schema_of(a)).find("first *(free for eval and infer)* |"),
            std::string::npos);
}

/// A key that runs may change, and whose value their scores depend on.
struct Judge {
  int64_t seconds = 1;
  static auto fields() {
    return Fields{field(&Judge::seconds, "seconds", "for each answer", at_least(1),
                        {.change = Change::kScoring})};
  }
};
struct Contest {
  Judge judge;
  static auto fields() { return Fields{field(&Contest::judge, "judge", "who decides")}; }
};

TEST(ConfigResolved, WhatShapesScoresAloneMakesNoOtherExperiment) {
  Contest a, b;
  b.judge.seconds = 4;
  EXPECT_EQ(fixed_hash(schema_of(a), {}), fixed_hash(schema_of(b), {}));
  EXPECT_TRUE(differences(schema_of(a), schema_of(b), {}).empty());
  EXPECT_EQ(differences(schema_of(a), schema_of(b), {"judge.seconds"}),
            std::vector<std::string>{"judge.seconds: 1 in the run, 4 now"});
  EXPECT_NE(describe(schema_of(a), "judge.seconds").find("may change when a run goes on"),
            std::string::npos);
  EXPECT_NE(reference_markdown(schema_of(a)).find("for each answer *(free)* |"), std::string::npos);
}

TEST(ConfigResolved, DifferencesNameTheTwoSidesAsTheyAreTold) {
  House a, b;
  b.oven.heat = 200;
  EXPECT_EQ(differences(schema_of(a), schema_of(b), {},
                        {.stored = "in the checkpoint", .now = "in the run"}),
            std::vector<std::string>{"oven.heat: 180.0 in the checkpoint, 200.0 in the run"});
}

/// A value with two words, as it is now and as it was.
struct Lantern {
  std::string light = "warm";
  static auto fields() {
    return Fields{field(&Lantern::light, "light", "of what colour", one_of({"warm", "cold"}))
                      .value_formerly("warm", "yellow")};
  }
};
struct FormerLantern {
  std::string light = "yellow";
  static auto fields() { return Fields{field(&FormerLantern::light, "light", "of what colour")}; }
};

/// A key that has another name now, and the section as it was.
struct Rack {
  int64_t max_books = 0;
  static auto fields() {
    return Fields{
        field(&Rack::max_books, "max_books", "room", at_least(0)).formerly("max_volumes")};
  }
};
struct FormerShelf {
  int64_t max_volumes = 0;
  static auto fields() {
    return Fields{field(&FormerShelf::max_volumes, "max_volumes", "room", at_least(0))};
  }
};
struct Room {
  Rack shelf;
  static auto fields() { return Fields{field(&Room::shelf, "shelf", "books")}; }
};
struct FormerRoom {
  FormerShelf shelf;
  static auto fields() { return Fields{field(&FormerRoom::shelf, "shelf", "books")}; }
};

TEST(ConfigResolved, AKeyIsReadByTheNameThatItHadWhichIsHashed) {
  Room room, defaults;
  std::vector<Problem> problems;
  const auto origins = load_text("[shelf]\nmax_volumes = 7", "x", "/", {}, schema_of(room),
                                 schema_of(defaults), problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(room.shelf.max_books, 7);
  EXPECT_TRUE(origins.given("shelf.max_books"));
  EXPECT_NE(to_toml(schema_of(room)).find("max_books = 7"), std::string::npos);
  FormerRoom former;
  former.shelf.max_volumes = 7;
  EXPECT_EQ(fixed_hash(schema_of(room), {}), fixed_hash(schema_of(former), {}));
  load_text("[shelf]\nmax_books = 5", "x", "/", {"shelf.max_volumes=3"}, schema_of(room),
            schema_of(defaults), problems);
  EXPECT_EQ(room.shelf.max_books, 3) << "the command line has the last word, by either name";
  load_text("[shelf]\nmax_volumes = -1", "x", "/", {}, schema_of(room), schema_of(defaults),
            problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "shelf.max_books");
}

TEST(ConfigResolved, AFormerWordIsReadAndGoesOnBeingHashed) {
  Lantern lamp, defaults;
  std::vector<Problem> problems;
  lamp.light = "cold";
  load_text("light = \"yellow\"", "x", "/", {}, schema_of(lamp), schema_of(defaults), problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(lamp.light, "warm");
  FormerLantern former;
  EXPECT_EQ(fixed_hash(schema_of(lamp), {}), fixed_hash(schema_of(former), {}));
  lamp.light = "cold";
  EXPECT_NE(fixed_hash(schema_of(lamp), {}), fixed_hash(schema_of(former), {}));
}

}  // namespace
}  // namespace stretto::config
