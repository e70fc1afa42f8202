#include "config/describe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/config/sample_options.h"

namespace stretto::config {
namespace {

using stretto::testing::House;

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
  EXPECT_EQ(advice("heat"), "did you mean `oven.heat`?");
  EXPECT_EQ(advice("defrst"), "did you mean `defrost`?");
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
