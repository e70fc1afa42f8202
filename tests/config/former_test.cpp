// Keys and values by the names that they had: read, with a note.
#include <gtest/gtest.h>

#include "config/load.h"
#include "tests/base/temp_dir.h"

namespace stretto::config {
namespace {

using stretto::testing::TempDir;
using Texts = std::vector<std::string>;

struct Shelf {
  int64_t max_books = 0;
  std::string wood = "oak";
  static auto fields() {
    return std::tuple{
        field(&Shelf::max_books, "max_books", "room", at_least(0)).formerly("max_volumes"),
        field(&Shelf::wood, "wood", "what it is of", one_of({"oak", "pine"}))
            .value_formerly("oak", "quercus")};
  }
};

struct Study {
  Shelf shelf;
  std::vector<Shelf> shelves = {};
  static auto fields() {
    return std::tuple{field(&Study::shelf, "shelf", "books"),
                      field(&Study::shelves, "shelves", "more books")};
  }
};

struct Result {
  Study study;
  Origins origins;
  std::vector<Problem> problems;

  Texts notes() const {
    Texts all;
    for (const auto& note : origins.notes()) all.push_back(note.text());
    return all;
  }
};

Result read(const std::string& text, const Texts& overrides = {}) {
  Result result;
  Study fallback;
  result.origins = load_text(text, "a.toml", "/base", overrides, schema_of(result.study),
                             schema_of(fallback), result.problems);
  return result;
}

TEST(FormerNames, OfAKeyAreNotedAtTheirPlace) {
  const auto result = read("[shelf]\nwood = \"pine\"\nmax_volumes = 7\n");
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(result.study.shelf.max_books, 7);
  EXPECT_EQ(result.notes(),
            Texts{"a.toml:3:1: `shelf.max_volumes` is now `shelf.max_books`; it is still read"});
}

TEST(FormerNames, OfAValueAreNotedAtTheirPlace) {
  const auto result = read("[shelf]\nwood = \"quercus\"\n");
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(result.study.shelf.wood, "oak");
  EXPECT_EQ(result.notes(),
            Texts{"a.toml:2:1: `shelf.wood = \"quercus\"` is now `\"oak\"`; it is still read"});
}

TEST(FormerNames, OnTheCommandLineAreNotedToo) {
  EXPECT_EQ(
      read("", {"shelf.max_volumes=3", "shelf.wood=quercus", "shelf={ max_volumes = 4 }"}).notes(),
      (Texts{"command line, `shelf.max_volumes=3`: `shelf.max_volumes` is now `shelf.max_books`; "
             "it is still read",
             "command line, `shelf.wood=quercus`: `shelf.wood = \"quercus\"` is now `\"oak\"`; it "
             "is still read"}));
}

TEST(FormerNames, InEntriesOfAListAreNotedForEachEntry) {
  const auto result = read("[[shelves]]\nmax_volumes = 1\n[[shelves]]\nmax_volumes = 2\n");
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
  Result result;
  Study fallback;
  result.origins =
      load_file(path, {}, schema_of(result.study), schema_of(fallback), result.problems);
  EXPECT_EQ(result.study.shelf.max_books, 2);
  ASSERT_EQ(result.notes().size(), 1u);
  EXPECT_NE(result.notes()[0].find("base.toml:2:1: "), std::string::npos) << result.notes()[0];
}

TEST(FormerNames, OfFilesMayBeLeftOutOfTheNotes) {
  auto result = read("[shelf]\nmax_volumes = 7\n", {"shelf.wood=quercus"});
  EXPECT_EQ(result.notes().size(), 2u);
  result.origins.drop_notes_on_files();
  ASSERT_EQ(result.notes().size(), 1u);
  EXPECT_EQ(result.notes()[0].rfind("command line, `shelf.wood=quercus`: ", 0), 0u);
}

TEST(FormerNames, PresentNamesMakeNoNote) {
  EXPECT_EQ(read("[shelf]\nmax_books = 7\nwood = \"oak\"\n", {"shelf.max_books=3"}).notes(),
            Texts{});
}

}  // namespace
}  // namespace stretto::config
