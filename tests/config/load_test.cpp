#include "config/load.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/toml_file.h"
#include "tests/base/temp_dir.h"
#include "tests/config/reading.h"
#include "tests/config/sample_options.h"

namespace stretto::config {
namespace {

using stretto::testing::House;
using stretto::testing::TempDir;

Reading<House> read_path(const std::filesystem::path& path,
                         const std::vector<std::string>& overrides = {}) {
  Reading<House> result;
  House fallback;
  const auto schema = schema_of(result.options), defaults = schema_of(fallback);
  result.origins = load_file(path, overrides, schema, defaults, result.problems);
  return result;
}

TEST(ConfigLoad, FillsEveryTypeOfKey) {
  const auto result = read_text<House>(
      "[oven]\nheat = 210.5\nminutes = 1_000\nfan = true\nmode = \"grill\"\n"
      "trays = [\"/a\", \"/b\"]\nweights = [1, 2.5]\n"
      "[kitchen]\nupper = { height = 3 }\n[kitchen.lower]\nheight = 5\n");
  EXPECT_EQ(result.message(), "");
  EXPECT_EQ(result.options.oven.heat, 210.5);
  EXPECT_EQ(result.options.oven.minutes, 1000);
  EXPECT_TRUE(result.options.oven.fan);
  EXPECT_EQ(result.options.oven.mode, "grill");
  EXPECT_EQ(result.options.oven.trays, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(result.options.oven.weights, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(result.options.kitchen.upper.height, 3);
  EXPECT_EQ(result.options.kitchen.lower.height, 5);
  EXPECT_EQ(result.options.kitchen.moisture, 0.5);
}

// Values of something else stand below those of files and overrides.
TEST(ConfigLoad, TakesWhatNobodyGivesFromBelow) {
  const TempDir dir;
  const auto path = dir.write("a.toml", "[oven]\nheat = 100\n");
  const InheritedValues inherited{.toml = "[oven]\nheat = 200\nminutes = 7\nmode = \"grill\"\n",
                                  .name = "runs/other"};
  House house, fallback;
  std::vector<Problem> problems;
  const auto origins = load_file(path, {"oven.mode=bake"}, schema_of(house), schema_of(fallback),
                                 problems, inherited);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(house.oven.heat, 100);
  EXPECT_EQ(house.oven.minutes, 7);
  EXPECT_EQ(house.oven.mode, "bake");
  EXPECT_TRUE(origins.given("oven.heat") && origins.given("oven.mode"));
  EXPECT_FALSE(origins.given("oven.minutes") || origins.taken("oven.heat"));
  EXPECT_TRUE(origins.taken("oven.minutes"));
  EXPECT_FALSE(origins.taken("oven.fan"));
  EXPECT_EQ(origins.of("oven.minutes"), "`oven.minutes` (from runs/other)");
  EXPECT_EQ(origins.order_of("oven.minutes"), Order{});
}

TEST(ConfigLoad, ALetterWithAnAccentOutsideAStringIsAnErrorWithItsPlace) {
  for (const std::string text : {"\u00e9 = 1\n", "[\u0434]\n", "[floor]\na = 1 \u00e9\n"}) {
    const Reading<House> result = read_text<House>(text);
    ASSERT_FALSE(result.problems.empty()) << text;
    EXPECT_NE(result.message().find("a.toml:"), std::string::npos) << result.message();
  }
}

TEST(ConfigLoad, TakesAnIntegerForANumberButNeverANumberForAnInteger) {
  EXPECT_EQ(read_text<House>("[oven]\nheat = 200\n").options.oven.heat, 200);
  EXPECT_EQ(read_text<House>("[oven]\nminutes = 1e3\n").message(),
            "a.toml:2:1: `oven.minutes` must be an integer, got the number 1000\n"
            "  write 1000; how long (integer, default 20, in minutes)");
  EXPECT_EQ(read_text<House>("[oven]\nminutes = 2.5\n").message(),
            "a.toml:2:1: `oven.minutes` must be an integer, got the number 2.5\n"
            "  how long (integer, default 20, in minutes)");
}

TEST(ConfigLoad, NamesAnUnknownKeyWithPlaceAndSuggestion) {
  EXPECT_EQ(read_text<House>("[oven]\nheat = 100\n  minute = 3\n").message(),
            "a.toml:3:3: unknown key `oven.minute`\n"
            "  perhaps you meant `oven.minutes`? (integer, default 20, in minutes)");
  EXPECT_EQ(read_text<House>("[ofen]\nheat = 100\n").message(),
            "a.toml:1:2: unknown section `ofen`\n"
            "  did you mean `oven`?");
  EXPECT_EQ(read_text<House>("[galley]\n").message(),
            "a.toml:1:2: unknown section `galley`\n"
            "  did you mean `kitchen`?");
  EXPECT_EQ(read_text<House>("[garden]\ntrees = 100\n").message(),
            "a.toml:1:2: unknown section `garden`\n"
            "  sections: oven, kitchen");
}

TEST(ConfigLoad, SaysWhatAWrongValueIsAndWhatIsAllowed) {
  EXPECT_EQ(read_text<House>("[oven]\nheat = 500\n").message(),
            "a.toml:2:1: `oven.heat` must be in [50, 300], got 500.0\n"
            "  how hot (number, default 180.0, in degrees)");
  EXPECT_EQ(read_text<House>("[oven]\nheat = \"hot\"\n").message(),
            "a.toml:2:1: `oven.heat` must be a number, got the string \"hot\"\n"
            "  \"hot\" is not a number; how hot (number, default 180.0, in degrees)");
  EXPECT_EQ(read_text<House>("[oven]\nmode = \"gril\"\n").message(),
            "a.toml:2:1: `oven.mode` must be one of bake, grill, defrost, got \"gril\"\n"
            "  did you mean \"grill\"?");
  EXPECT_EQ(read_text<House>("[oven]\nfan = \"true\"\n").message(),
            "a.toml:2:1: `oven.fan` must be true or false, got the string \"true\"\n"
            "  leave the quotes out; whether air moves (true or false, default false)");
  EXPECT_EQ(read_text<House>("oven = 3\n").message(),
            "a.toml:1:1: `oven` is a section, got the integer 3\n"
            "  write [oven] and its keys below it");
  EXPECT_EQ(read_text<House>("[oven]\nheat = nan\n").problems.size(), 1u);
  EXPECT_EQ(read_text<House>("[oven]\nheat = 2026-01-01\n").problems.size(), 1u);
  EXPECT_EQ(read_text<House>("[[oven]]\nheat = 60\n").problems.size(), 1u);
}

TEST(ConfigLoad, ANumberOutOfRangeIsNotKept) {
  const auto result = read_text<House>(
      "[oven]\nheat = 1e308\nminutes = -9223372036854775808\nweights = [1, -1]\nfan = true\n");
  EXPECT_EQ(result.problems.size(), 3u) << result.message();
  EXPECT_EQ(result.options.oven.heat, 180);
  EXPECT_EQ(result.options.oven.minutes, 20);
  EXPECT_TRUE(result.options.oven.weights.empty());
  EXPECT_TRUE(result.options.oven.fan);
}

TEST(ConfigLoad, AnotherNameOfAKeyOrValueIsAnswered) {
  EXPECT_EQ(read_text<House>("[oven]\ntemperature = 100\n").message(),
            "a.toml:2:1: unknown key `oven.temperature`\n"
            "  did you mean `oven.heat`? (number, default 180.0, in degrees)");
  EXPECT_EQ(read_text<House>("[oven]\nfahrenheit = 100\n").message(),
            "a.toml:2:1: unknown key `oven.fahrenheit`\n"
            "  did you mean `oven.heat`? in degrees of Celsius (number, default 180.0, in "
            "degrees)");
  EXPECT_EQ(read_text<House>("", {"Oven.gasMark=4"}).message(),
            "command line, `Oven.gasMark=4`: unknown key `Oven.gasMark`\n"
            "  did you mean `oven.heat = 180`? (number, default 180.0, in degrees)");
  const auto hint = [](const std::string& value) {
    return read_text<House>("", {"oven.mode=" + value}).problems.at(0).hint;
  };
  EXPECT_EQ(hint("Grill"), "did you mean \"grill\"?");
  EXPECT_EQ(hint("broil"), "did you mean \"grill\"?");
  EXPECT_EQ(hint("Bar-Becue"), "did you mean \"grill\"?");
  EXPECT_EQ(hint("barbecu"), "did you mean \"grill\"?");
  EXPECT_EQ(hint("thaw"), "did you mean \"defrost\"? slowly");
  EXPECT_EQ(hint("zebra"), "what it does (string, default \"bake\")");
}

TEST(ConfigLoad, KeysOfAMistypedSectionAreReadAndAnswered) {
  const auto result =
      read_text<House>("[ofen]\nheat = 100\nminute = 3\n[ofen.x]\n[kitchn.upper]\nheight = 3\n");
  EXPECT_EQ(result.message(),
            "a.toml:1:2: unknown section `ofen`\n"
            "  did you mean `oven`?\n"
            "error: a.toml:3:1: unknown key `ofen.minute`\n"
            "  perhaps you meant `oven.minutes`? (integer, default 20, in minutes)\n"
            "error: a.toml:4:7: unknown section `ofen.x`\n"
            "  sections: oven, kitchen\n"
            "error: a.toml:5:2: unknown section `kitchn`\n"
            "  did you mean `kitchen`?\n"
            "4 errors");
  EXPECT_EQ(result.options.oven.heat, 100);
  EXPECT_EQ(result.options.kitchen.upper.height, 3);
  EXPECT_TRUE(is_unreliable(result.problems, "oven.minutes")) << "the one that was meant";
  EXPECT_FALSE(is_unreliable(result.problems, "oven.heat"));
}

TEST(ConfigLoad, KeysOfASectionThatIsNowhereAreLedToTheirPlaces) {
  EXPECT_EQ(read_text<House>("[cooking]\ngas_mark = 4\n").problems[0].hint,
            "of its keys, `gas_mark` is `oven.heat = 180`");
  const auto result = read_text<House>("[cooking]\ntemperature = 100\nminutes = 3\nzebra = 1\n");
  EXPECT_EQ(result.message(),
            "a.toml:1:2: unknown section `cooking`\n"
            "  of its keys, `temperature` is `oven.heat`, `minutes` is `oven.minutes`");
  EXPECT_TRUE(is_unreliable(result.problems, "oven.heat"));
  EXPECT_TRUE(is_unreliable(result.problems, "oven.minutes"));
  EXPECT_FALSE(is_unreliable(result.problems, "oven.mode"));
}

TEST(ConfigLoad, ProblemsAreToldInTheOrderOfTheLines) {
  const TempDir folder;
  folder.write("base.toml", "[oven]\nminutes = 0\nheat = 1\n");
  const auto path = folder.write("top.toml",
                                 "include = \"base.toml\"\n[oven]\nmode = 3\nfan = 3\n[kitchen]\n"
                                 "zebra = 1\napple = 1\n[oven.deep]\n");
  std::vector<std::string> places;
  for (const auto& problem : in_order(read_path(path, {"oven.fan=7", "a.b=1"}).problems)) {
    places.push_back(problem.place.substr(problem.place.rfind('/') + 1));
  }
  EXPECT_EQ(places, (std::vector<std::string>{"top.toml:3:1", "top.toml:4:1", "top.toml:6:1",
                                              "top.toml:7:1", "top.toml:8:7", "base.toml:2:1",
                                              "base.toml:3:1", "command line, `oven.fan=7`",
                                              "command line, `a.b=1`"}));
}

TEST(ConfigLoad, ReportsAllProblemsAtOnce) {
  const auto result = read_text<House>("[oven]\nheat = 10\nmode = 3\nfn = true\n[kitchn]\n",
                                       {"oven.minutes=0", "oven.trais=x", "nonsense"});
  EXPECT_EQ(result.problems.size(), 7u);
  const std::string message = result.message();
  for (const char* word :
       {"a.toml:2:1: `oven.heat`", "a.toml:3:1: `oven.mode`", "a.toml:4:1: unknown key `oven.fn`",
        "perhaps you meant `oven.fan`", "a.toml:5:2: unknown section `kitchn`",
        "`oven.minutes` must be >= 1", "perhaps you meant `oven.trays`", "is not section.key=value",
        "\n7 errors"}) {
    EXPECT_NE(message.find(word), std::string::npos) << word << "\nin\n" << message;
  }
}

TEST(ConfigLoad, PlacesASyntaxErrorAndStillReadsTheOverrides) {
  const auto result = read_text<House>("[oven]\nheat = = 3\n", {"oven.minutes=0"});
  ASSERT_EQ(result.problems.size(), 2u);
  EXPECT_EQ(result.problems[0].place, "a.toml:2:8");
  EXPECT_EQ(result.problems[0].hint,
            "correct it there: the file is not valid TOML, in which texts stand in quotes, and "
            "numbers, true and false do not");
}

TEST(ConfigLoad, OverridesAreTomlAndStringsNeedNoQuotes) {
  const auto result =
      read_text<House>("[oven]\nheat = 100\n",
                       {"oven.heat=120", "oven.mode=grill", "oven.fan=true", "oven.weights=[1, 2]",
                        "oven.trays=/some/file", "kitchen.upper={height = 4}", "oven.minutes = 7"});
  EXPECT_EQ(result.message(), "");
  EXPECT_EQ(result.options.oven.heat, 120);
  EXPECT_EQ(result.options.oven.mode, "grill");
  EXPECT_TRUE(result.options.oven.fan);
  EXPECT_EQ(result.options.oven.weights, (std::vector<double>{1, 2}));
  EXPECT_EQ(result.options.oven.trays, (std::vector<std::string>{"/some/file"}));
  EXPECT_EQ(result.options.kitchen.upper.height, 4);
  EXPECT_EQ(result.options.oven.minutes, 7);
  EXPECT_TRUE(result.origins.overridden("oven.heat"));
  EXPECT_FALSE(result.origins.overridden("kitchen.lower.height"));
}

TEST(ConfigLoad, AStringOverrideIsTakenAsItStands) {
  EXPECT_EQ(read_text<House>("", {"oven.recipe=/a/2024"}).options.oven.recipe, "/a/2024");
  EXPECT_EQ(read_text<House>("", {"oven.recipe='/a b'"}).options.oven.recipe, "/a b");
  EXPECT_EQ(read_text<House>("", {"oven.recipe="}).options.oven.recipe, "");
  EXPECT_EQ(read_text<House>("", {"oven.recipe=/a=b"}).options.oven.recipe, "/a=b");
  EXPECT_EQ(read_text<House>("", {"oven.recipe=\"/a"}).problems.size(), 1u);
}

TEST(ConfigLoad, AnOverrideCannotSmuggleInASecondKey) {
  const auto result = read_text<House>("", {"oven.heat=100\nw = 3"});
  EXPECT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.options.oven.heat, 180);
}

TEST(ConfigLoad, RemembersWhereEachValueCameFrom) {
  const auto result = read_text<House>("[oven]\n\n   heat = 100\n", {"oven.fan=true"});
  EXPECT_EQ(result.origins.of("oven.heat"), "a.toml:3:4: `oven.heat`");
  EXPECT_EQ(result.origins.of("oven.fan"), "command line, `oven.fan=true`: `oven.fan`");
  EXPECT_EQ(result.origins.of("oven.mode"), "`oven.mode` (default)");
}

TEST(ConfigLoad, PathsAreRelativeToTheFileThatStatesThem) {
  const auto result = read_text<House>(
      "[oven]\ntrays = [\"x/../a.txt\", \"b.zip:in/../side\", \"/abs\"]\nrecipe = \"../r\"\n",
      {"oven.recipe=here"});
  EXPECT_EQ(result.options.oven.trays,
            (std::vector<std::string>{"/base/a.txt", "/base/b.zip:in/../side", "/abs"}));
  EXPECT_EQ(result.options.oven.recipe, (std::filesystem::current_path() / "here").string());
  EXPECT_EQ(absolute_path("", "/base"), "");
}

TEST(ConfigLoad, IncludedFilesComeFirstAndKeepTheirOwnPaths) {
  const TempDir folder;
  folder.write("base/one.toml", "[oven]\nheat = 100\nminutes = 10\nrecipe = \"r.txt\"\n");
  folder.write("two.toml", "[oven]\nminutes = 11\n");
  const auto path = folder.write(
      "top.toml", "include = [\"base/one.toml\", \"two.toml\"]\n[oven]\nmode = \"grill\"\n");
  const auto result = read_path(path);
  EXPECT_EQ(result.message(), "");
  EXPECT_EQ(result.options.oven.heat, 100);
  EXPECT_EQ(result.options.oven.minutes, 11);
  EXPECT_EQ(result.options.oven.mode, "grill");
  EXPECT_EQ(result.options.oven.recipe, (folder.path() / "base/r.txt").string());
  EXPECT_EQ(result.origins.of("oven.heat"),
            (folder.path() / "base/one.toml").string() + ":2:1: `oven.heat`");
}

TEST(ConfigLoad, AnIncludeThatGoesRoundIsAnError) {
  const TempDir folder;
  const auto path = folder.write("a.toml", "include = \"b.toml\"\n");
  folder.write("b.toml", "include = \"./a.toml\"\n");
  const auto message = read_path(path).message();
  EXPECT_NE(message.find("b.toml:1:11: `include` of "), std::string::npos) << message;
  EXPECT_NE(message.find("goes round in a circle"), std::string::npos) << message;
}

TEST(ConfigLoad, IncludesThatDoubleAtEachLevelAreBounded) {
  const TempDir folder;
  for (int i = 0; i < 12; ++i) {
    const std::string next = std::to_string(i + 1) + ".toml";
    folder.write(std::to_string(i) + ".toml", "include = [\"" + next + "\", \"" + next + "\"]\n");
  }
  folder.write("12.toml", "");
  const auto result = read_path(folder.path() / "0.toml");
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_NE(result.message().find("more than 64 files"), std::string::npos);
}

TEST(ConfigLoad, AMissingFileIsNamedWithTheIncludeThatWantsIt) {
  const TempDir folder;
  const auto path = folder.write("a.toml", "\ninclude = \"gone.toml\"\n");
  const auto message = read_path(path).message();
  EXPECT_EQ(message, path + ":2:11: no configuration file " +
                         (folder.path() / "gone.toml").string() +
                         "\n  `include` is relative to the file that states it");
  EXPECT_EQ(read_path("/nowhere/x.toml").message(),
            "no configuration file /nowhere/x.toml\n"
            "  give the path of a .toml file: the recipes are in configs/");
  EXPECT_EQ(read_path(folder.path()).problems.size(), 1u);
}

TEST(ConfigLoad, RefusesWhatIsTooLargeTooDeepOrNoText) {
  EXPECT_NE(read_text<House>(std::string((1 << 20) + 1, '#')).message().find("larger than"),
            std::string::npos);
  EXPECT_NE(read_text<House>("a = \"\xff\"\n").message().find("not UTF-8"), std::string::npos);
  for (const std::string& deep : {std::string(500'000, '['), std::string("[a") + [] {
                                    std::string dots;
                                    for (int i = 0; i < 200'000; ++i) dots += ".a";
                                    return dots;
                                  }() + "]\n"}) {
    EXPECT_NE(read_text<House>(deep).message().find("nested deeper than 16"), std::string::npos);
  }
  EXPECT_EQ(read_text<House>("", {"oven.trays=" + std::string(100'000, '[')}).problems.size(), 1u);
}

TEST(ConfigLoad, ThousandsOfUnknownKeysAreToldQuicklyAndInPart) {
  std::string text = "[oven]\n";
  for (int i = 0; i < 20'000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  const auto result = read_text<House>(text);
  EXPECT_EQ(result.problems.size(), 20'000u);
  const auto message = result.message();
  EXPECT_LT(message.size(), 20'000u);
  EXPECT_NE(message.find("20000 errors, the first 50 are above"), std::string::npos);
}

TEST(ConfigLoad, CountsNestingOutsideStringsAndComments) {
  EXPECT_EQ(toml_nesting("a = [[1, 2], [{b = 3}]]"), 3);
  EXPECT_EQ(toml_nesting("a = \"[[[[\" # [[[[\nb = '''\n[[[[\n'''\n"), 0);
  EXPECT_EQ(toml_nesting("a = \"\\\"[[[\"\n[x.y.z]\n"), 2);
  EXPECT_EQ(toml_nesting("a = \"\"\"x\\\"\"\"[\"\"\"\n"), 0);
}

}  // namespace
}  // namespace stretto::config
