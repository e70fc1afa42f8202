#include "config/describe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/config/sample_options.h"

namespace stretto::config {
namespace {

using stretto::testing::House;

/// A section whose `name` chooses, though it is no Choice.
struct WallOptions {
  std::string name = "fresco";
  double width = 3, plaster = 2, grain = 1, gloss = 0.5;
  bool varnish = true;

  static auto fields() {
    using O = WallOptions;
    return Fields{
        field(&O::name, "name", "how it is painted", one_of({"fresco", "oil"})),
        field(&O::width, "width", "from side to side"),
        field(&O::plaster, "plaster", "below the paint").read_with("name", {"fresco"}),
        field(&O::grain, "grain", "of the plaster").read_unless_zero("plaster"),
        field(&O::gloss, "gloss", "of the varnish").read_with("varnish", {"true"}),
        field(&O::varnish, "varnish", "over the paint").read_with("name", {"oil"}),
    };
  }
};

struct Exhibition {
  WallOptions wall;
  static auto fields() { return Fields{field(&Exhibition::wall, "wall", "what hangs there")}; }
};

TEST(ConfigDescribe, ExplainsAKeyInFull) {
  House house;
  EXPECT_EQ(describe(schema_of(house), "oven.heat"),
            "  oven.heat = 180.0\n"
            "      how hot\n"
            "      number, in [50, 300], in degrees; fixed for a run\n");
  EXPECT_NE(describe(schema_of(house), "oven.minutes").find("may change when a run goes on"),
            std::string::npos);
}

TEST(ConfigDescribe, ASectionListsItsKeysAndThoseOfTheSectionsBelow) {
  House house;
  const auto text = describe(schema_of(house), "kitchen");
  for (const char* word : {"moisture", "upper.height", "lower.height"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(text.find("heat"), std::string::npos);
}

TEST(ConfigDescribe, AComponentIsAValueOfSomeKey) {
  House house;
  EXPECT_EQ(
      describe(schema_of(house), "grill").find("`grill` is a value of oven.mode\n\n  oven.mode = "),
      0u);
}

TEST(ConfigDescribe, ALastNameIsEveryKeyThatHasIt) {
  House house;
  EXPECT_EQ(describe(schema_of(house), "heat"), describe(schema_of(house), "oven.heat"));
  EXPECT_EQ(describe(schema_of(house), "height"),
            "  kitchen.upper.height = 2\n"
            "      from below\n"
            "      integer, in [1, 5]; fixed for a run\n"
            "      in kitchen.upper, kitchen.lower\n");
}

TEST(ConfigDescribe, OfASectionThatIsNamedItHasTheKeysThatCountWithTheName) {
  Exhibition exhibition;
  const std::string text = describe(schema_of(exhibition), "oil");
  EXPECT_TRUE(text.starts_with("`oil` is a value of wall.name\n\n  wall.name = \"fresco\"\n"))
      << text;
  EXPECT_NE(text.find("\n[wall]  with name = \"oil\"\n\n  width = 3.0\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\n  varnish = true\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  gloss = 0.5\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("plaster = "), std::string::npos) << text;
  EXPECT_EQ(text.find("grain = "), std::string::npos)
      << "it counts with a key that does not" << text;
}

TEST(ConfigDescribe, AnUnknownNameGetsASuggestion) {
  House house;
  const auto advice = [&](const char* name) -> std::string {
    try {
      describe(schema_of(house), name);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.advice();
    }
    return "no error";
  };
  EXPECT_EQ(advice("kitchn"), "did you mean `kitchen`?");
  EXPECT_EQ(advice("oven.minute"), "did you mean `oven.minutes`?");
  EXPECT_EQ(advice("haet"), "did you mean `oven.heat`?");
  EXPECT_EQ(advice("defrst"), "did you mean `defrost`?");
  EXPECT_EQ(advice("broil"), "did you mean `grill`, a value of oven.mode?");
  EXPECT_EQ(advice("Thaw"), "did you mean `defrost`, a value of oven.mode? slowly");
  EXPECT_EQ(advice("galley"), "did you mean `kitchen`?");
  EXPECT_EQ(advice("zzzzzzzz"), "`stretto describe` lists the sections");
}

TEST(ConfigDescribe, JsonSchemaHasTypesRangesAndDefaults) {
  House house;
  const auto schema = nlohmann::json::parse(json_schema(schema_of(house)));
  EXPECT_EQ(schema["$schema"], "http://json-schema.org/draft-07/schema#");
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_TRUE(schema["properties"].contains("include"));
  const auto& oven = schema["properties"]["oven"];
  EXPECT_EQ(oven["additionalProperties"], false);
  EXPECT_EQ(oven["properties"]["heat"]["type"], "number");
  EXPECT_EQ(oven["properties"]["heat"]["minimum"], 50);
  EXPECT_EQ(oven["properties"]["heat"]["default"], 180.0);
  EXPECT_EQ(oven["properties"]["minutes"]["type"], "integer");
  EXPECT_EQ(oven["properties"]["mode"]["enum"], (nlohmann::json{"bake", "grill", "defrost"}));
  const auto& kitchen = schema["properties"]["kitchen"]["properties"];
  EXPECT_EQ(kitchen["moisture"]["exclusiveMaximum"], 1);
  EXPECT_EQ(kitchen["upper"]["properties"]["height"]["maximum"], 5);
}

}  // namespace
}  // namespace stretto::config
