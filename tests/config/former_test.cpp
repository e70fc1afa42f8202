// Keys and values by the names that they had, and keys that are gone: read, with a note.
#include <gtest/gtest.h>

#include "base/hash.h"
#include "config/describe.h"
#include "config/load.h"
#include "config/resolved.h"
#include "config/suggest.h"
#include "tests/base/temp_dir.h"
#include "tests/config/reading.h"

namespace stretto::config {
namespace {

using stretto::testing::TempDir;
using Texts = std::vector<std::string>;

struct Shelf {
  int64_t max_books = 0;
  std::string wood = "oak";
  static auto fields() {
    return Fields{
        field(&Shelf::max_books, "max_books", "room", at_least(0)).formerly("max_volumes"),
        field(&Shelf::wood, "wood", "what it is of", one_of({"oak", "pine"}))
            .value_formerly("oak", "quercus")};
  }
};

struct Study {
  Shelf shelf;
  std::vector<Shelf> shelves = {};
  static auto fields() {
    return Fields{field(&Study::shelf, "shelf", "books"),
                  field(&Study::shelves, "shelves", "more books")};
  }
};

TEST(FormerNames, OfAKeyAreNotedAtTheirPlace) {
  const auto result = read_text<Study>("[shelf]\nwood = \"pine\"\nmax_volumes = 7\n");
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(result.options.shelf.max_books, 7);
  EXPECT_EQ(result.notes(),
            Texts{"a.toml:3:1: `shelf.max_volumes` is now `shelf.max_books`; it is still read"});
}

TEST(FormerNames, OfAValueAreNotedAtTheirPlace) {
  const auto result = read_text<Study>("[shelf]\nwood = \"quercus\"\n");
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(result.options.shelf.wood, "oak");
  EXPECT_EQ(result.notes(),
            Texts{"a.toml:2:1: `shelf.wood = \"quercus\"` is now `\"oak\"`; it is still read"});
}

TEST(FormerNames, OnTheCommandLineAreNotedToo) {
  EXPECT_EQ(
      read_text<Study>("",
                       {"shelf.max_volumes=3", "shelf.wood=quercus", "shelf={ max_volumes = 4 }"})
          .notes(),
      (Texts{"command line, `shelf.max_volumes=3`: `shelf.max_volumes` is now `shelf.max_books`; "
             "it is still read",
             "command line, `shelf.wood=quercus`: `shelf.wood = \"quercus\"` is now `\"oak\"`; it "
             "is still read"}));
}

TEST(FormerNames, InEntriesOfAListAreNotedForEachEntry) {
  const auto result =
      read_text<Study>("[[shelves]]\nmax_volumes = 1\n[[shelves]]\nmax_volumes = 2\n");
  EXPECT_EQ(
      result.notes(),
      (Texts{"a.toml:2:1: `shelves.0.max_volumes` is now `shelves.0.max_books`; it is still read",
             "a.toml:4:1: `shelves.1.max_volumes` is now `shelves.1.max_books`; it is still "
             "read"}));
}

TEST(FormerNames, AreNotedOnceWhereSeveralFilesHaveThem) {
  const TempDir folder;
  folder.write("base.toml", "[shelf]\nmax_volumes = 1\n");
  const auto path = folder.write("top.toml", "include = \"base.toml\"\n[shelf]\nmax_volumes = 2\n");
  Reading<Study> result;
  Study fallback;
  result.origins =
      load_file(path, {}, schema_of(result.options), schema_of(fallback), result.problems);
  EXPECT_EQ(result.options.shelf.max_books, 2);
  ASSERT_EQ(result.notes().size(), 1u);
  EXPECT_NE(result.notes()[0].find("base.toml:2:1: "), std::string::npos) << result.notes()[0];
}

TEST(FormerNames, OfFilesMayBeLeftOutOfTheNotes) {
  auto result = read_text<Study>("[shelf]\nmax_volumes = 7\n", {"shelf.wood=quercus"});
  EXPECT_EQ(result.notes().size(), 2u);
  result.origins.drop_notes_on_files();
  ASSERT_EQ(result.notes().size(), 1u);
  EXPECT_EQ(result.notes()[0].rfind("command line, `shelf.wood=quercus`: ", 0), 0u);
}

TEST(FormerNames, PresentNamesMakeNoNote) {
  EXPECT_EQ(
      read_text<Study>("[shelf]\nmax_books = 7\nwood = \"oak\"\n", {"shelf.max_books=3"}).notes(),
      Texts{});
}

/// A key that is gone, and the section as it was.
struct Lamp {
  double watts = 40;
  Retired<int64_t> sockets{.value = 2};
  std::string light = "warm";
  int64_t hours = 1;
  static auto fields() {
    return Fields{field(&Lamp::watts, "watts", "power"),
                  retired(&Lamp::sockets, "sockets", "the wall has them"),
                  field(&Lamp::light, "light", "of what colour", one_of({"warm", "cold"})),
                  field(&Lamp::hours, "hours", "of use", any(), {.change = Change::kFree})};
  }
};
struct FormerLamp {
  double watts = 40;
  int64_t sockets = 2;
  std::string light = "warm";
  int64_t hours = 1;
  static auto fields() {
    return Fields{field(&FormerLamp::watts, "watts", "power"),
                  field(&FormerLamp::sockets, "sockets", "for plugs"),
                  field(&FormerLamp::light, "light", "of what colour"),
                  field(&FormerLamp::hours, "hours", "of use", any(), {.change = Change::kFree})};
  }
};

template <class T>
struct Hall {
  T lamp;
  std::vector<T> lamps = {};
  static auto fields() {
    return Fields{field(&Hall::lamp, "lamp", "light"), field(&Hall::lamps, "lamps", "more light")};
  }
};

struct Lit {
  Hall<Lamp> hall;
  Origins origins;
  std::vector<Problem> problems;

  uint64_t hash() { return fixed_hash(schema_of(hall), {}); }
};

Lit lit(const std::string& text, const Texts& overrides = {}) {
  Lit result;
  Hall<Lamp> fallback;
  result.origins = load_text(text, "a.toml", "/base", overrides, schema_of(result.hall),
                             schema_of(fallback), result.problems);
  return result;
}

TEST(RetiredKeys, AreHashedAtTheirPlaceAsWhenTheyWereThere) {
  EXPECT_EQ(lit("").hash(), xxh3_64("lamp.watts=40.0\nlamp.sockets=2\nlamp.light=\"warm\"\n"));
  for (const int64_t sockets : {2, 5}) {
    const std::string number = std::to_string(sockets);
    auto now = lit("[lamp]\nwatts = 7\nsockets = " + number +
                   "\n[[lamps]]\n[[lamps]]\nsockets = " + number + "\n");
    ASSERT_TRUE(now.problems.empty()) << now.problems[0].what;
    Hall<FormerLamp> before{.lamp = {.watts = 7, .sockets = sockets},
                            .lamps = {{}, {.sockets = sockets}}};
    EXPECT_EQ(now.hash(), fixed_hash(schema_of(before), {})) << sockets;
  }
  EXPECT_NE(lit("[lamp]\nsockets = 5\n").hash(), lit("").hash());
}

TEST(RetiredKeys, CountInHashesOfStatedKeys) {
  auto hall = lit("[lamp]\nlight = \"cold\"\n");
  const auto is_light = [](const Key& key) { return key.path == "lamp.light"; };
  EXPECT_EQ(fixed_hash(schema_of(hall.hall), {}, is_light),
            xxh3_64("lamp.sockets=2\nlamp.light=\"cold\"\n"));
}

TEST(RetiredKeys, AreReadWithANoteWhereverTheyStand) {
  const std::string what = "`lamp.sockets` is not needed any more: the wall has them; leave it out";
  auto given = lit("[lamp]\nsockets = 5\n");
  ASSERT_EQ(given.origins.notes().size(), 1u);
  EXPECT_EQ(given.origins.notes()[0].text(), "a.toml:2:1: " + what);
  EXPECT_TRUE(given.hall.lamp.sockets.given);
  EXPECT_TRUE(given.origins.given("lamp.sockets"));
  given = lit("", {"lamp.sockets=5"});
  ASSERT_EQ(given.origins.notes().size(), 1u);
  EXPECT_EQ(given.origins.notes()[0].text(), "command line, `lamp.sockets=5`: " + what);
  EXPECT_EQ(given.hall.lamp.sockets.value, 5);
  EXPECT_FALSE(lit("").hall.lamp.sockets.given);
}

TEST(RetiredKeys, OfAnotherTypeAreAnError) {
  const auto result = lit("[lamp]\nsockets = \"many\"\n");
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].what.rfind("`lamp.sockets` must be an integer, got ", 0), 0u)
      << result.problems[0].what;
  EXPECT_EQ(result.problems[0].hint, "leave it out: the wall has them");
  EXPECT_EQ(result.problems[0].key, "lamp.sockets");
}

TEST(RetiredKeys, StandInTheResolvedCopyWhereTheyWereGiven) {
  auto without = lit("");
  EXPECT_EQ(to_toml(schema_of(without.hall)).find("sockets"), std::string::npos);
  auto given = lit("[lamp]\nsockets = 5\n");
  Hall<Lamp> fallback;
  const auto defaults = schema_of(fallback);
  const std::string text = to_toml(schema_of(given.hall), &defaults);
  EXPECT_NE(text.find("\nsockets = 5  # not needed any more: the wall has them\n"),
            std::string::npos)
      << text;
  auto again = lit(text);
  EXPECT_EQ(to_toml(schema_of(again.hall), &defaults), text);
  EXPECT_EQ(again.hash(), given.hash());
}

TEST(RetiredKeys, AreNoDifferenceAndNoKeyThatAnybodyIsTold) {
  auto without = lit(""), given = lit("[lamp]\nsockets = 5\n");
  EXPECT_TRUE(differences(schema_of(without.hall), schema_of(given.hall), {}).empty());
  const auto schema = schema_of(without.hall);
  EXPECT_EQ(schema.find("lamp.sockets"), nullptr);
  EXPECT_EQ(reference_markdown(schema).find("sockets"), std::string::npos);
  EXPECT_EQ(json_schema(schema).find("sockets"), std::string::npos);
  EXPECT_NE(suggest_key("lamp.socket", schema).path, "lamp.sockets");
}

}  // namespace
}  // namespace stretto::config
