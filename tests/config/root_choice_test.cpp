// A choice whose parts have sections beside it: `trip.name` decides what `[route]` is.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "config/choice.h"
#include "config/describe.h"
#include "config/load.h"
#include "config/resolved.h"
#include "tests/base/failure.h"
#include "tests/config/reading.h"

namespace stretto::config {
namespace {

struct Rails {
  int64_t changes = 0;
  static auto fields() { return Fields{field(&Rails::changes, "changes", "of trains")}; }
};

struct Seats {
  int64_t window = 1;
  static auto fields() { return Fields{field(&Seats::window, "window", "seats at one")}; }
};

struct ByTrain {
  static constexpr const char* kName = "train";
  Rails route;
  Seats cost;
  static auto fields() {
    return Fields{field(&ByTrain::route, "route", "where it goes"),
                  field(&ByTrain::cost, "cost", "what it costs")};
  }
};

struct Diesel {
  static constexpr const char* kName = "diesel";
  double litres = 10;
  static auto fields() { return Fields{field(&Diesel::litres, "litres", "an hour")}; }
};

struct Sails {
  static constexpr const char* kName = "sails";
  int64_t count = 3;
  static auto fields() { return Fields{field(&Sails::count, "count", "how many")}; }
};

struct Waters {
  double miles = 5;
  Choice<Diesel, Sails> power;
  static auto fields() {
    return Fields{field(&Waters::miles, "miles", "at sea"),
                  field(&Waters::power, "power", "what drives it")};
  }
};

struct Flag {
  std::string flag = "white";
  static auto fields() { return Fields{field(&Flag::flag, "flag", "its colour")}; }
};

struct ByShip {
  static constexpr const char* kName = "ship";
  Flag trip;
  Waters route;
  static auto fields() {
    return Fields{field(&ByShip::trip, "trip", "how to get there"),
                  field(&ByShip::route, "route", "over which waters")};
  }
};

struct Cost {
  double most = 100;
  static auto fields() { return Fields{field(&Cost::most, "most", "at most")}; }
};

struct Journey {
  Choice<ByTrain, ByShip> trip;
  Cost cost;
  static auto fields() {
    return Fields{field(&Journey::trip, "trip", "how to get there").with_parts_beside(),
                  field(&Journey::cost, "cost", "what may be spent")};
  }
};

Schema schema_with(const std::string& name) {
  static Journey journey;
  journey.trip.select(name);
  return schema_of(journey);
}

TEST(RootChoice, DecidesWhatTheSectionsBesideItAre) {
  EXPECT_EQ(read_text<Journey>("[route]\nchanges = 2\n").options.trip.as<ByTrain>().route.changes,
            2);
  const auto ship =
      read_text<Journey>("[route]\nmiles = 7\n[route.power]\ncount = 4\nname = \"sails\"\n",
                         {"trip.name=ship", "trip.flag=red", "cost.most=9"});
  EXPECT_EQ(ship.message(), "");
  const auto& by_ship = ship.options.trip.as<ByShip>();
  EXPECT_EQ(by_ship.trip.flag, "red");
  EXPECT_EQ(by_ship.route.miles, 7);
  EXPECT_EQ(by_ship.route.power.as<Sails>().count, 4);
  EXPECT_EQ(ship.options.cost.most, 9);
}

TEST(RootChoice, AKeyOfAnotherPartIsNamedWithThatPart) {
  EXPECT_EQ(read_text<Journey>("[route]\nmiles = 7\n").message(),
            "a.toml:2:1: `route.miles` is a key of ship, and trip.name is train\n"
            "  leave it out, or set trip.name = \"ship\"; `stretto describe trip.train` lists the "
            "keys of train");
  EXPECT_NE(read_text<Journey>("[trip]\nname = \"ship\"\n[cost]\nwindow = 3\n")
                .message()
                .find("a key of train"),
            std::string::npos);
  EXPECT_NE(read_text<Journey>("[route]\nlitre = 7\n").message().find("unknown key `route.litre`"),
            std::string::npos);
  EXPECT_NE(read_text<Journey>("[trip]\nname = \"plane\"\n").message().find("one of train, ship"),
            std::string::npos);
}

TEST(RootChoice, SectionsOfOneNameAreOne) {
  EXPECT_EQ(to_toml(schema_with("train")),
            "[trip]\nname = \"train\"\n\n[route]\nchanges = 0\n\n[cost]\nwindow = 1\nmost = "
            "100.0\n");
  EXPECT_EQ(to_toml(schema_with("ship")),
            "[trip]\nname = \"ship\"\nflag = \"white\"\n\n[route]\nmiles = 5.0\n\n[route.power]\n"
            "name = \"diesel\"\nlitres = 10.0\n\n[cost]\nmost = 100.0\n");
}

TEST(RootChoice, IsDescribedPartByPart) {
  const auto schema = schema_with("train");
  const std::string part = describe(schema, "trip.ship");
  EXPECT_NE(part.find("flag = \"white\""), std::string::npos) << part;
  EXPECT_NE(part.find("stretto describe trip.ship.route\n"), std::string::npos) << part;
  const std::string present = describe(schema, "route");
  EXPECT_NE(present.find("changes = 0"), std::string::npos) << present;
  EXPECT_NE(present.find("depend on trip.name"), std::string::npos) << present;
  EXPECT_NE(present.find("stretto describe trip.ship.route\n"), std::string::npos) << present;
  const std::string other = describe(schema, "trip.ship.route");
  EXPECT_NE(other.find("miles = 5.0"), std::string::npos) << other;
  EXPECT_EQ(other.find("changes"), std::string::npos) << other;
  const std::string both = describe(schema, "cost");
  EXPECT_NE(both.find("window = 1"), std::string::npos) << both;
  EXPECT_NE(both.find("most = 100.0"), std::string::npos) << both;
  EXPECT_NE(describe(schema, "route.miles").find("at sea"), std::string::npos);
}

/// What describe() refuses, and what it says instead.
std::string refused(const Schema& schema, const std::string& name) {
  const Error error = stretto::testing::failure(ExitCode::kUsage, [&] { describe(schema, name); });
  return std::string(error.what()) + "; " + error.advice();
}

TEST(RootChoice, APartHasNoSectionAndNoKeyOfTheOthers) {
  const auto schema = schema_with("train");
  EXPECT_EQ(refused(schema, "trip.train.route.power"),
            "trip.train has no section `route.power`; its sections, beside those of every file: "
            "route, cost");
  EXPECT_EQ(refused(schema, "trip.train.route.power.sails"),
            "trip.train has no section `route.power.sails`; its sections, beside those of every "
            "file: route, cost");
  EXPECT_EQ(refused(schema, "trip.train.route.miles"),
            "trip.train has no key `route.miles`; `stretto describe trip.train.route` lists the "
            "keys of that section");
  EXPECT_EQ(refused(schema, "trip.ship.cost.window"),
            "trip.ship has no key `cost.window`; its sections, beside those of every file: route, "
            "route.power");
  // What every file has belongs to each of them.
  EXPECT_NE(describe(schema, "trip.ship.cost").find("most = 100.0"), std::string::npos);
  // These are no other part's.
  const std::string route = describe(schema, "trip.ship.route");
  EXPECT_EQ(route.find("depend on trip.name"), std::string::npos) << route;
}

TEST(RootChoice, AKeyOfAPartIsDescribedByThePathThroughIt) {
  const std::string key = "  route.power.count = 3\n";
  EXPECT_EQ(describe(schema_with("ship"), "route.power.sails.count").find(key), 0U);
  EXPECT_EQ(describe(schema_with("train"), "trip.ship.route.power.sails.count").find(key), 0U);
  EXPECT_EQ(refused(schema_with("ship"), "route.power.sails.cout"),
            "route.power.sails has no key `cout`; did you mean `route.power.sails.count`?");
  EXPECT_EQ(refused(schema_with("ship"), "route.power.sails.zebra"),
            "route.power.sails has no key `zebra`; `stretto describe route.power.sails` lists its "
            "keys");
}

size_t times(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(RootChoice, TheReferenceHasEachKeyOnce) {
  const std::string text = reference_markdown(schema_with("train"));
  for (const std::string key : {"changes", "window", "flag", "miles", "litres", "count", "most"}) {
    EXPECT_EQ(times(text, "| `" + key + "` |"), 1U) << key << "\n" << text;
  }
}

TEST(RootChoice, TheReferenceHasSectionsBelowTheHeadingOfTheirPart) {
  const std::string text = reference_markdown(schema_with("train"));
  std::string headings;
  for (const auto& line : split(text, '\n')) {
    if (line.starts_with("#")) headings += line + "\n";
  }
  EXPECT_EQ(headings,
            "# Configuration reference\n"
            "## `[trip]`\n"
            "## `[trip]` with `name = \"train\"`\n"
            "### `[route]`\n"
            "### `[cost]`\n"
            "## `[trip]` with `name = \"ship\"`\n"
            "### `[route]`\n"
            "### `[route.power]`\n"
            "#### `[route.power]` with `name = \"diesel\"`\n"
            "#### `[route.power]` with `name = \"sails\"`\n"
            "## `[cost]`\n");
}

TEST(RootChoice, TheJsonSchemaHasAFileForEachPart) {
  const auto json = nlohmann::json::parse(json_schema(schema_with("train")));
  ASSERT_EQ(json.at("anyOf").size(), 2U) << json.dump(1);
  const auto keys = [&](int file, const std::string& section) {
    std::vector<std::string> names;
    const auto& all = json["anyOf"][file]["properties"][section]["properties"];
    for (const auto& item : all.items()) names.push_back(item.key());
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(keys(0, "route"), Names{"changes"});
  EXPECT_EQ(keys(0, "cost"), (Names{"most", "window"}));
  EXPECT_EQ(keys(1, "route"), (Names{"miles", "power"}));
  EXPECT_EQ(keys(1, "cost"), Names{"most"});
  EXPECT_EQ(keys(1, "trip"), (Names{"flag", "name"}));
  EXPECT_EQ(json["anyOf"][1]["properties"]["trip"]["properties"]["name"]["const"], "ship");
  EXPECT_TRUE(json["anyOf"][1].contains("required"));
  EXPECT_FALSE(json["anyOf"][0].contains("required"));
}

}  // namespace
}  // namespace stretto::config
