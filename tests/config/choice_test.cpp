#include "config/choice.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/describe.h"
#include "config/load.h"
#include "config/resolved.h"
#include "tests/config/reading.h"

namespace stretto::config {
namespace {

struct Gas {
  static constexpr const char* kName = "gas";
  int64_t burners = 4;
  double pressure = 20;

  static auto fields() {
    return Fields{field(&Gas::burners, "burners", "flames", between(1, 9)),
                  field(&Gas::pressure, "pressure", "of the line", any(), {.unit = "mbar"})};
  }
};

struct Coil {
  static constexpr const char* kName = "coil";
  double watts = 1000;

  static auto fields() { return Fields{field(&Coil::watts, "watts", "power", at_least(0))}; }
};

struct Rings {
  static constexpr const char* kName = "rings";
  int64_t count = 2;

  static auto fields() { return Fields{field(&Rings::count, "count", "how many")}; }
};

/// A part that has parts itself, and a key that another part has too.
struct Electric {
  static constexpr const char* kName = "electric";
  int64_t burners = 2;
  Choice<Coil, Rings> plate;

  static auto fields() {
    return Fields{field(&Electric::burners, "burners", "plates"),
                  field(&Electric::plate, "plate", "what gets hot")};
  }
};

struct StoveOptions {
  int64_t height = 90;
  Choice<Gas, Electric> heat;

  static auto fields() {
    return Fields{field(&StoveOptions::height, "height", "from the floor"),
                  field(&StoveOptions::heat, "heat", "where it comes from")
                      .value_also_called("gas", {"methane"})};
  }
};

struct Shop {
  StoveOptions stove;
  static auto fields() { return Fields{field(&Shop::stove, "stove", "the stove")}; }
};

TEST(Choice, IsItsFirstPartUntilAnotherIsChosen) {
  Choice<Gas, Electric> heat;
  EXPECT_EQ(heat.name(), "gas");
  EXPECT_EQ(heat.as<Gas>().burners, 4);
  heat.as<Gas>().burners = 7;
  EXPECT_TRUE(heat.select("gas"));
  EXPECT_EQ(heat.as<Gas>().burners, 7) << "the same part stays as it is";
  EXPECT_FALSE(heat.select("wood"));
  EXPECT_TRUE(heat.is<Gas>());
  EXPECT_TRUE(heat.select("electric"));
  EXPECT_EQ(heat.name(), "electric");
  EXPECT_EQ(heat.as<Electric>().burners, 2);
  heat = Gas{.burners = 1};
  EXPECT_EQ(heat.name(), "gas");
  EXPECT_EQ(heat.visit([](const auto& part) { return part.burners; }), 1);
}

TEST(Choice, TakesThePartWhereverItsNameStands) {
  const auto first = read_text<Shop>("[stove.heat]\nname = \"electric\"\nburners = 3\n");
  EXPECT_EQ(first.message(), "");
  EXPECT_EQ(first.options.stove.heat.as<Electric>().burners, 3);
  const auto last =
      read_text<Shop>("[stove]\nheight = 80\nheat = { burners = 3, name = \"electric\" }\n");
  EXPECT_EQ(last.message(), "");
  EXPECT_EQ(last.options.stove.heat.as<Electric>().burners, 3);
  EXPECT_EQ(last.options.stove.height, 80);
  const auto later =
      read_text<Shop>("[stove.heat]\nname = \"gas\"\nburners = 3\n", {"stove.heat.name=electric"});
  EXPECT_EQ(later.message(), "");
  EXPECT_EQ(later.options.stove.heat.as<Electric>().burners, 3);
  EXPECT_EQ(read_text<Shop>("", {"stove.heat.name='electric'"}).options.stove.heat.name(),
            "electric");
}

TEST(Choice, APartMayHavePartsItself) {
  const auto result = read_text<Shop>(
      "[stove.heat.plate]\nname = \"rings\"\ncount = 5\n[stove.heat]\nname = \"electric\"\n");
  EXPECT_EQ(result.message(), "");
  EXPECT_EQ(result.options.stove.heat.as<Electric>().plate.as<Rings>().count, 5);
}

TEST(Choice, AKeyOfAnotherPartIsNamedWithThatPart) {
  EXPECT_EQ(read_text<Shop>("[stove.heat]\nname = \"electric\"\npressure = 3.0\n").message(),
            "a.toml:3:1: `stove.heat.pressure` is a key of gas, and stove.heat.name is electric\n"
            "  leave it out, or set stove.heat.name = \"gas\"; `stretto describe "
            "stove.heat.electric` lists the keys of electric");
  EXPECT_NE(
      read_text<Shop>("", {"stove.heat.plate.watts=3"}).message().find("is a key of electric"),
      std::string::npos);
  EXPECT_NE(
      read_text<Shop>("[stove.heat]\nbleu = 1\n").message().find("unknown key `stove.heat.bleu`"),
      std::string::npos);
}

TEST(Choice, AWrongNameIsOneErrorWhateverItsKeysAre) {
  const auto result = read_text<Shop>(
      "[stove.heat]\npressure = 1.0\nplate = { watts = 2.0 }\nname = \"electrc\"\n");
  EXPECT_EQ(result.problems.size(), 1u) << result.message();
  EXPECT_NE(result.message().find("`stove.heat.name` must be one of gas, electric"),
            std::string::npos)
      << result.message();
  EXPECT_NE(
      read_text<Shop>("[stove.heat]\nname = \"methane\"\n").message().find("did you mean \"gas\"?"),
      std::string::npos);
  EXPECT_EQ(read_text<Shop>("[stove.heat]\nname = 3\n").problems.size(), 1u);
}

TEST(Choice, TheResolvedTextReadsBackToTheSame) {
  auto result = read_text<Shop>(
      "[stove.heat]\nname = \"electric\"\nplate = { name = \"rings\", count = 9 }\n");
  Shop fallback;
  const auto defaults = schema_of(fallback);
  const auto schema = schema_of(result.options);
  const std::string text = to_toml(schema, &defaults);
  auto again = read_text<Shop>(text);
  EXPECT_EQ(again.message(), "");
  EXPECT_EQ(again.options.stove.heat.as<Electric>().plate.as<Rings>().count, 9);
  EXPECT_EQ(fixed_hash(schema_of(again.options), {}), fixed_hash(schema, {}));
  EXPECT_EQ(text.find("pressure"), std::string::npos);
  Shop other;
  EXPECT_NE(fixed_hash(schema_of(other), {}), fixed_hash(schema, {}));
  const auto lines = differences(schema, schema_of(other), {});
  EXPECT_EQ(lines.at(0), "stove.heat.name: \"electric\" in the run, \"gas\" now");
}

TEST(Choice, IsDescribedPartByPart) {
  Shop shop;
  const auto schema = schema_of(shop);
  const auto section = describe(schema, "stove.heat");
  for (const char* words : {"burners = 4", "one of gas, electric", "those of gas",
                            "stretto describe stove.heat.electric"}) {
    EXPECT_NE(section.find(words), std::string::npos) << words << "\n" << section;
  }
  const auto part = describe(schema, "stove.heat.electric");
  EXPECT_NE(part.find("burners = 2"), std::string::npos) << part;
  EXPECT_EQ(part.find("pressure"), std::string::npos) << part;
  const auto page = reference_markdown(schema);
  for (const char* words : {"### `[stove.heat]` with `name = \"electric\"`", "| `pressure` |",
                            "\n#### `[stove.heat.plate]`\n", "| `watts` |", "| `count` |"}) {
    EXPECT_NE(page.find(words), std::string::npos) << words << "\n" << page;
  }
}

TEST(Choice, AValueThatChoosesAPartIsDescribedByTheKeysOfThatPart) {
  Shop shop;
  const auto schema = schema_of(shop);
  const std::string electric = describe(schema, "electric");
  EXPECT_TRUE(
      electric.starts_with("`electric` is a value of stove.heat.name\n\n"
                           "[stove.heat]  with name = \"electric\"\n\n  burners = 2\n"))
      << electric;
  EXPECT_EQ(electric.find("pressure"), std::string::npos) << electric;
}

TEST(Choice, AKeyIsFoundByItsLastNameInEveryPart) {
  Shop shop;
  const auto schema = schema_of(shop);
  EXPECT_EQ(describe(schema, "count"),
            "  stove.heat.plate.count = 2\n      how many\n      integer; fixed for a run\n"
            "      in stove.heat.electric.plate.rings\n");
  EXPECT_EQ(describe(schema, "burners"),
            "  stove.heat.burners = 4\n      flames\n      integer, in [1, 9]; fixed for a run\n"
            "\n"
            "  stove.heat.burners = 2\n      plates\n      integer; fixed for a run\n"
            "      in stove.heat.electric\n");
  EXPECT_EQ(describe(schema, "height"), describe(schema, "stove.height"));
}

TEST(Choice, TheJsonSchemaHasATableForEachPart) {
  Shop shop;
  const auto json = nlohmann::json::parse(json_schema(schema_of(shop)));
  const auto& parts = json["properties"]["stove"]["properties"]["heat"]["anyOf"];
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0]["properties"]["name"]["const"], "gas");
  EXPECT_TRUE(parts[0]["properties"].contains("pressure"));
  EXPECT_FALSE(parts[0].contains("required")) << "who names none has the first";
  EXPECT_EQ(parts[1]["required"], nlohmann::json::array({"name"}));
  EXPECT_FALSE(parts[1]["properties"].contains("pressure"));
  EXPECT_EQ(parts[1]["properties"]["plate"]["anyOf"].size(), 2u);
}

}  // namespace
}  // namespace stretto::config
