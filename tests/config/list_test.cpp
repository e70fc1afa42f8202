// Lists of tables, `[[road.lanes]]`: from the file to the resolved copy.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/describe.h"
#include "config/load.h"
#include "config/resolved.h"
#include "config/suggest.h"
#include "tests/base/temp_dir.h"
#include "tests/config/reading.h"

namespace stretto::config {
namespace {

using stretto::testing::TempDir;

struct Surface {
  int64_t layers = 2;

  static auto fields() {
    return Fields{field(&Surface::layers, "layers", "one on the other", at_least(1))};
  }
};

/// A lane: keys, one of which is read with another, a path and a section.
struct Lane {
  std::string use = "cars";
  double width = 3.5;
  std::string map;
  Surface surface;

  static auto fields() {
    return Fields{field(&Lane::use, "use", "who drives there", one_of({"cars", "bikes"})),
                  field(&Lane::width, "width", "from side to side", greater(0), {.unit = "metres"})
                      .also_called({"breadth"})
                      .read_with("use", {"cars"}),
                  field(&Lane::map, "map", "a file", any(), {.is_path = true}),
                  field(&Lane::surface, "surface", "what it is made of")};
  }
};

struct Steel {
  static constexpr const char* kName = "steel";
  int64_t spans = 1;

  static auto fields() { return Fields{field(&Steel::spans, "spans", "between piers")}; }
};

/// A part of a list's entry that has a list itself.
struct Stone {
  static constexpr const char* kName = "stone";
  double arch = 4;
  std::vector<Surface> piers;

  static auto fields() {
    return Fields{field(&Stone::arch, "arch", "radius", at_least(0)),
                  field(&Stone::piers, "piers", "what carries it")};
  }
};

struct RoadOptions {
  int64_t length = 10;
  Surface surface;
  std::vector<Lane> lanes;
  std::vector<Choice<Steel, Stone>> bridges;

  static auto fields() {
    using O = RoadOptions;
    return Fields{field(&O::length, "length", "in all", at_least(1)),
                  field(&O::surface, "surface", "of the road"),
                  field(&O::lanes, "lanes", "side by side").also_called({"tracks"}),
                  field(&O::bridges, "bridges", "over water")};
  }
};

/// The same road before it had lists.
struct FormerRoadOptions {
  int64_t length = 10;
  Surface surface;

  static auto fields() {
    using O = FormerRoadOptions;
    return Fields{field(&O::length, "length", "in all", at_least(1)),
                  field(&O::surface, "surface", "of the road")};
  }
};

struct Town {
  RoadOptions road;
  static auto fields() { return Fields{field(&Town::road, "road", "the road")}; }
};
struct FormerTown {
  FormerRoadOptions road;
  static auto fields() { return Fields{field(&FormerTown::road, "road", "the road")}; }
};

constexpr const char* kTwoLanes =
    "[road]\nlength = 7\n"
    "[[road.lanes]]\nwidth = 2.5\nmap = \"m\"\n[road.lanes.surface]\nlayers = 5\n"
    "[[road.lanes]]\nuse = \"bikes\"\n";

TEST(ConfigList, ReadsBlocksInTheirOrder) {
  const auto result = read_text<Town>(kTwoLanes);
  EXPECT_EQ(result.message(), "");
  const auto& lanes = result.options.road.lanes;
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(lanes[0].use, "cars");
  EXPECT_EQ(lanes[0].width, 2.5);
  EXPECT_EQ(lanes[0].map, "/base/m");
  EXPECT_EQ(lanes[0].surface.layers, 5);
  EXPECT_EQ(lanes[1].use, "bikes");
  EXPECT_EQ(lanes[1].width, 3.5);
  EXPECT_EQ(lanes[1].surface.layers, 2);
  EXPECT_TRUE(result.options.road.bridges.empty());
  EXPECT_TRUE(result.origins.given("road.lanes.0.width"));
  EXPECT_FALSE(result.origins.given("road.lanes.1.width"));
  EXPECT_EQ(result.origins.of("road.lanes.1.use"), "a.toml:9:1: `road.lanes.1.use`");
  EXPECT_EQ(result.origins.of("road.lanes.1"), "a.toml:8:1: `road.lanes.1`");
  EXPECT_EQ(result.origins.of("road.lanes"), "a.toml:3:8: `road.lanes`");
  EXPECT_FALSE(result.origins.given("road.bridges"));
}

TEST(ConfigList, ReadsTablesInOneLine) {
  const auto result =
      read_text<Town>("[road]\nlanes = [{ width = 1 }, {}, { surface = { layers = 3 } }]\n");
  EXPECT_EQ(result.message(), "");
  ASSERT_EQ(result.options.road.lanes.size(), 3u);
  EXPECT_EQ(result.options.road.lanes[0].width, 1);
  EXPECT_EQ(result.options.road.lanes[1].width, 3.5);
  EXPECT_EQ(result.options.road.lanes[2].surface.layers, 3);
  EXPECT_TRUE(read_text<Town>("[road]\nlanes = []\n").options.road.lanes.empty());
}

TEST(ConfigList, AnEntryMayBeOneOfSeveralParts) {
  const auto result = read_text<Town>(
      "[[road.bridges]]\n[[road.bridges]]\narch = 9\nname = \"stone\"\n"
      "[[road.bridges.piers]]\nlayers = 4\n[[road.bridges.piers]]\n"
      "[[road.bridges]]\nname = \"steel\"\nspans = 3\n");
  EXPECT_EQ(result.message(), "");
  const auto& bridges = result.options.road.bridges;
  ASSERT_EQ(bridges.size(), 3u);
  EXPECT_EQ(bridges[0].as<Steel>().spans, 1);
  EXPECT_EQ(bridges[1].as<Stone>().arch, 9);
  ASSERT_EQ(bridges[1].as<Stone>().piers.size(), 2u);
  EXPECT_EQ(bridges[1].as<Stone>().piers[0].layers, 4);
  EXPECT_EQ(bridges[1].as<Stone>().piers[1].layers, 2);
  EXPECT_EQ(bridges[2].as<Steel>().spans, 3);
}

TEST(ConfigList, OverridesChangeEntriesThatThereAre) {
  const auto result = read_text<Town>(
      kTwoLanes,
      {"road.lanes.1.width=9", "road.lanes.0.surface.layers=8", "road.lanes.1={ map = \"/x\" }"});
  EXPECT_EQ(result.message(), "");
  EXPECT_EQ(result.options.road.lanes[1].width, 9);
  EXPECT_EQ(result.options.road.lanes[0].surface.layers, 8);
  EXPECT_EQ(result.options.road.lanes[1].map, "/x");
  EXPECT_TRUE(result.origins.overridden("road.lanes.1.width"));
  const std::string bridge = "[[road.bridges]]\narch = 2\n";
  for (const char* chosen : {"road.bridges.0.name=stone", "road.bridges.0={ name = 'stone' }"}) {
    const auto stone = read_text<Town>(bridge, {chosen});
    EXPECT_EQ(stone.message(), "") << chosen;
    EXPECT_EQ(stone.options.road.bridges.at(0).as<Stone>().arch, 2) << chosen;
  }
}

TEST(ConfigList, AnOverrideOfAnEntryThatThereIsNotSaysHowManyThereAre) {
  EXPECT_EQ(read_text<Town>(kTwoLanes, {"road.lanes.2.width=9"}).message(),
            "command line, `road.lanes.2.width=9`: there is no entry `2` of `road.lanes`, which "
            "has 2 entries\n"
            "  they have the numbers 0 to 1; a block [[road.lanes]] in the file adds one");
  EXPECT_EQ(read_text<Town>("[[road.lanes]]\n", {"road.lanes.width=9"}).message(),
            "command line, `road.lanes.width=9`: there is no entry `width` of `road.lanes`, which "
            "has 1 entry\n"
            "  the only one is number 0; a block [[road.lanes]] in the file adds one");
  EXPECT_EQ(read_text<Town>("", {"road.bridges.0.name=stone"}).problems.at(0).hint,
            "there are none; a block [[road.bridges]] in the file adds one");
}

TEST(ConfigList, TheCommandLineAloneMakesNone) {
  for (const char* text : {"road.lanes=[{ width = 9 }]", "road={ lanes = [{ width = 9 }] }"}) {
    const auto result = read_text<Town>("", {text});
    ASSERT_EQ(result.problems.size(), 1u) << text;
    EXPECT_EQ(result.problems[0].what, "`road.lanes` is a list of tables, which files alone make");
    EXPECT_EQ(result.problems[0].hint,
              "write a block [[road.lanes]] for each into the file; road.lanes.0.KEY=VALUE changes "
              "one that is there");
    EXPECT_TRUE(result.options.road.lanes.empty());
  }
}

TEST(ConfigList, ATableIsNoListAndAListIsNoTable) {
  EXPECT_EQ(read_text<Town>("[road.lanes]\nwidth = 1\n").message(),
            "a.toml:1:7: `road.lanes` is a list of tables, got a table\n"
            "  write [[road.lanes]] above the keys of each");
  EXPECT_EQ(read_text<Town>("[road]\nlanes = 3\n").message(),
            "a.toml:2:1: `road.lanes` is a list of tables, got the integer 3\n"
            "  write [[road.lanes]] above the keys of each");
  EXPECT_EQ(read_text<Town>("[[road]]\nlength = 3\n").message(),
            "a.toml:1:3: `road` is a section, got a list\n"
            "  write [road] and its keys below it");
  const auto mixed = read_text<Town>("[road]\nlanes = [{}, 3]\n", {"road.lanes.0=4"});
  EXPECT_EQ(mixed.message(),
            "a.toml:2:14: `road.lanes.1` is a table, got the integer 3\n"
            "  write [[road.lanes]] and its keys below it\n"
            "error: command line, `road.lanes.0=4`: `road.lanes.0` is a section, got the integer "
            "4\n"
            "  write [[road.lanes]] and its keys below it\n2 errors");
}

TEST(ConfigList, HasAtMostSixtyFourEntries) {
  std::string blocks;
  for (size_t i = 0; i < kMostEntries; ++i) blocks += "[[road.lanes]]\n";
  EXPECT_EQ(read_text<Town>(blocks).message(), "");
  EXPECT_EQ(read_text<Town>(blocks).options.road.lanes.size(), 64u);
  const auto result = read_text<Town>(blocks + "[[road.lanes]]\nwidth = 3\n[[road.lanes]]\n");
  EXPECT_EQ(result.message(),
            "a.toml:65:1: `road.lanes` has 66 tables, at most 64 are read\n"
            "  leave some [[road.lanes]] out");
}

TEST(ConfigList, MistakesInsideAnEntryAreAnsweredThere) {
  const auto hint = [](const std::string& text) {
    const auto result = read_text<Town>(text);
    EXPECT_EQ(result.problems.size(), 1u) << result.message();
    return result.problems.at(0).place + ": " + result.problems.at(0).hint;
  };
  EXPECT_EQ(hint("[[road.lanes]]\n[[road.lanes]]\nwidt = 1\n"),
            "a.toml:3:1: perhaps you meant `road.lanes.1.width`? (number, default 3.5, in metres)");
  EXPECT_EQ(hint("[[road.lanes]]\nbreadth = 1\n"),
            "a.toml:2:1: did you mean `road.lanes.0.width`? (number, default 3.5, in metres)");
  EXPECT_EQ(hint("[[road.lanes]]\nuse = \"bike\"\n"), "a.toml:2:1: did you mean \"bikes\"?");
  EXPECT_EQ(hint("[[road.lanes]]\nwidth = -1\n"),
            "a.toml:2:1: from side to side (number, default 3.5, in metres)");
  EXPECT_EQ(hint("[[road.lane]]\nwidth = 1\n"), "a.toml:1:8: did you mean `[[road.lanes]]`?");
  EXPECT_EQ(hint("[[road.tracks]]\n"), "a.toml:1:8: did you mean `[[road.lanes]]`?");
  EXPECT_EQ(hint("[road.lane]\nwidth = 1\n"), "a.toml:1:7: did you mean `[[road.lanes]]`?");
  EXPECT_EQ(hint("[[rod.lanes]]\nwidth = 1\n"), "a.toml:1:3: did you mean `road`?");
}

TEST(ConfigList, AKeyOfAnotherPartIsNamedWithThatPart) {
  EXPECT_EQ(read_text<Town>("[[road.bridges]]\n[[road.bridges]]\narch = 3.0\n").message(),
            "a.toml:3:1: `road.bridges.1.arch` is a key of stone, and road.bridges.1.name is "
            "steel\n"
            "  leave it out, or set road.bridges.1.name = \"stone\"; `stretto describe "
            "road.bridges.steel` lists the keys of steel");
  EXPECT_NE(read_text<Town>("[[road.bridges]]\n[[road.bridges.piers]]\nlayers = 3\n")
                .message()
                .find("`road.bridges.0.piers` is a key of stone"),
            std::string::npos);
  const auto wrong = read_text<Town>("[[road.bridges]]\narch = 3.0\nname = \"ston\"\n");
  ASSERT_EQ(wrong.problems.size(), 1u) << wrong.message();
  EXPECT_EQ(wrong.problems[0].hint, "did you mean \"stone\"?");
  EXPECT_EQ(wrong.options.road.bridges.at(0).name(), "steel") << "the part that there is";
}

TEST(ConfigList, ALaterFileReplacesTheWholeList) {
  const TempDir folder;
  folder.write("base.toml", "[[road.lanes]]\nwidth = 1\nzebra = 1\n[[road.lanes]]\nwidth = 2\n");
  const auto path =
      folder.write("top.toml", "include = \"base.toml\"\n[[road.lanes]]\nuse = \"bikes\"\n");
  Reading<Town> result;
  load_file(path, {}, schema_of(result.options), schema_of(result.fallback), result.problems);
  EXPECT_EQ(result.message(), "");
  ASSERT_EQ(result.options.road.lanes.size(), 1u);
  EXPECT_EQ(result.options.road.lanes[0].width, 3.5);
  EXPECT_EQ(result.options.road.lanes[0].use, "bikes");
  // And into the same object, which had entries.
  load_file(path, {}, schema_of(result.options), schema_of(result.fallback), result.problems);
  EXPECT_EQ(result.options.road.lanes.size(), 1u);
}

TEST(ConfigList, TheResolvedTextReadsBackToTheSame) {
  auto result =
      read_text<Town>(std::string(kTwoLanes) +
                      "[[road.bridges]]\nname = \"stone\"\n[[road.bridges.piers]]\nlayers = 4\n"
                      "[[road.bridges]]\n");
  ASSERT_EQ(result.message(), "");
  const auto schema = schema_of(result.options), defaults = schema_of(result.fallback);
  EXPECT_EQ(to_toml(schema),
            "[road]\nlength = 7\n"
            "\n[road.surface]\nlayers = 2\n"
            "\n[[road.lanes]]\nuse = \"cars\"\nwidth = 2.5\nmap = \"/base/m\"\n"
            "\n[road.lanes.surface]\nlayers = 5\n"
            "\n[[road.lanes]]\nuse = \"bikes\"\nwidth = 3.5\nmap = \"\"\n"
            "\n[road.lanes.surface]\nlayers = 2\n"
            "\n[[road.bridges]]\nname = \"stone\"\narch = 4.0\n"
            "\n[[road.bridges.piers]]\nlayers = 4\n"
            "\n[[road.bridges]]\nname = \"steel\"\nspans = 1\n");
  for (const Schema* comments : {static_cast<const Schema*>(nullptr), &defaults}) {
    const std::string text = to_toml(schema, comments);
    auto again = read_text<Town>(text);
    EXPECT_EQ(again.message(), "");
    EXPECT_EQ(to_toml(schema_of(again.options), comments), text);
    EXPECT_EQ(fixed_hash(schema_of(again.options), {}), fixed_hash(schema, {}));
  }
  EXPECT_NE(to_toml(schema, &defaults).find("width = 2.5  # default 3.5 metres; "),
            std::string::npos);
}

TEST(ConfigList, AnEmptyOneLeavesKeysTextAndHashAsTheyWere) {
  Town town;
  FormerTown former;
  const auto schema = schema_of(town), before = schema_of(former);
  ASSERT_EQ(schema.keys.size(), before.keys.size());
  for (size_t i = 0; i < schema.keys.size(); ++i) {
    EXPECT_EQ(schema.keys[i].path, before.keys[i].path);
  }
  EXPECT_EQ(schema.sections.size(), before.sections.size());
  EXPECT_EQ(to_toml(schema), to_toml(before));
  EXPECT_EQ(fixed_hash(schema, {}), fixed_hash(before, {}));
  EXPECT_TRUE(differences(before, schema, {}).empty());
  auto stated = read_text<Town>("[road]\nlanes = []\n");
  EXPECT_EQ(fixed_hash(schema_of(stated.options), {}), fixed_hash(before, {}));
}

TEST(ConfigList, AnotherLengthIsAnotherExperiment) {
  auto one = read_text<Town>("[[road.lanes]]\n"),
       two = read_text<Town>("[[road.lanes]]\n[[road.lanes]]\n");
  Town none;
  const auto schema_one = schema_of(one.options), schema_two = schema_of(two.options);
  EXPECT_NE(fixed_hash(schema_one, {}), fixed_hash(schema_two, {}));
  EXPECT_NE(fixed_hash(schema_one, {}), fixed_hash(schema_of(none), {}));
  EXPECT_EQ(differences(schema_two, schema_one, {}),
            std::vector<std::string>{"road.lanes: 2 tables in the run, 1 table now"});
  EXPECT_EQ(differences(schema_of(none), schema_two, {}),
            std::vector<std::string>{"road.lanes: 0 tables in the run, 2 tables now"});
  EXPECT_EQ(differences(schema_one, schema_two, {}, {.stored = "there", .now = "here"}),
            std::vector<std::string>{"road.lanes: 1 table there, 2 tables here"});
  two.options.road.lanes[1].width = 8;
  auto other = read_text<Town>("[[road.lanes]]\n[[road.lanes]]\n");
  EXPECT_EQ(differences(schema_of(other.options), schema_of(two.options), {}),
            std::vector<std::string>{"road.lanes.1.width: 3.5 in the run, 8.0 now"});
}

TEST(ConfigList, ReadersOfAKeyAreThoseOfItsEntry) {
  auto result = read_text<Town>(kTwoLanes);
  const auto schema = schema_of(result.options);
  const Key* width = schema.find("road.lanes.1.width");
  ASSERT_NE(width, nullptr);
  ASSERT_EQ(width->readers.size(), 1u);
  EXPECT_EQ(width->readers[0].deciding_key, "road.lanes.1.use");
  EXPECT_NE(schema.find(width->readers[0].deciding_key), nullptr);
}

TEST(ConfigList, IsDescribedThoughItIsEmpty) {
  Town town;
  const auto schema = schema_of(town);
  const auto has = [](const std::string& text, std::initializer_list<const char*> words) {
    for (const char* word : words) {
      EXPECT_NE(text.find(word), std::string::npos) << word << "\nin\n" << text;
    }
  };
  has(describe(schema, "road.lanes"),
      {"[[road.lanes]]  side by side", "one block for each", "width = 3.5", "surface.layers = 2"});
  has(describe(schema, "road.bridges"),
      {"[[road.bridges]]  over water", "name = \"steel\"", "spans = 1", "those of steel",
       "stretto describe road.bridges.stone"});
  has(describe(schema, "road.bridges.stone"),
      {"[[road.bridges]]  with name = \"stone\"", "arch = 4.0", "stretto describe"});
  has(describe(schema, "road.lanes.width"), {"  road.lanes.width = 3.5", "in metres"});
  has(describe(schema, "road.lanes.surface"), {"[road.lanes.surface]", "layers = 2"});
  EXPECT_EQ(describe(schema, "road.lanes.0.width"), describe(schema, "road.lanes.width"));
  EXPECT_EQ(describe(schema, "road.bridges.3.stone"), describe(schema, "road.bridges.stone"));
  has(describe(schema, "road.bridges.piers"), {"[[road.bridges.piers]]", "layers = 2"});
  has(describe(schema, "road.bridges.arch"), {"road.bridges.arch = 4.0"});
  has(describe(schema, "stone"), {"`stone` is a value of road.bridges.name",
                                  "[[road.bridges]]  with name = \"stone\"", "arch = 4.0"});
  has(describe(schema, "road"), {"length = 10", "stretto describe road.lanes"});
  try {
    describe(schema, "road.lane");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.advice().find("did you mean `"), std::string::npos) << error.advice();
  }
}

TEST(ConfigList, StandsInTheReferenceOnce) {
  Town town;
  const auto page = reference_markdown(schema_of(town));
  const auto count = [&](const std::string& words) {
    size_t found = 0;
    for (size_t at = 0; (at = page.find(words, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("\n## `[[road.lanes]]`\n"), 1u) << page;
  EXPECT_EQ(count("\n## `[road.lanes.surface]`\n"), 1u) << page;
  EXPECT_EQ(count("\n## `[[road.bridges]]`\n"), 1u) << page;
  EXPECT_EQ(count("\n### `[[road.bridges]]` with `name = \"stone\"`\n"), 1u) << page;
  EXPECT_EQ(count("| `width` |"), 1u) << page;
  EXPECT_EQ(count("| `arch` |"), 1u) << page;
  EXPECT_EQ(count("\n#### `[[road.bridges.piers]]`\n"), 1u) << page;
}

TEST(ConfigList, TheJsonSchemaHasAnArrayOfTables) {
  Town town;
  const auto json = nlohmann::json::parse(json_schema(schema_of(town)));
  const auto& road = json["properties"]["road"]["properties"];
  EXPECT_EQ(road["lanes"]["type"], "array");
  EXPECT_EQ(road["lanes"]["maxItems"], 64);
  const auto& lane = road["lanes"]["items"]["properties"];
  EXPECT_EQ(lane["width"]["exclusiveMinimum"], 0);
  EXPECT_TRUE(lane["surface"]["properties"].contains("layers"));
  const auto& bridges = road["bridges"]["items"]["anyOf"];
  ASSERT_EQ(bridges.size(), 2u);
  EXPECT_EQ(bridges[1]["properties"]["name"]["const"], "stone");
  EXPECT_EQ(bridges[1]["properties"]["piers"]["type"], "array");
}

TEST(ConfigList, ANameInQuotesWithADotIsNoPath) {
  EXPECT_EQ(read_text<Town>("\"road.length\" = 3\n").message(),
            "a.toml:1:1: `road.length` has a dot inside quotes\n"
            "  leave the quotes out: keys and sections are joined by dots, no name has one");
  EXPECT_EQ(read_text<Town>("\"road.lanes\" = [{}]\n").problems.size(), 1u);
}

}  // namespace
}  // namespace stretto::config
