#include "config/path_list.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "config/field.h"
#include "tests/base/temp_dir.h"
#include "tests/config/reading.h"

namespace stretto::config {
namespace {

using stretto::testing::TempDir;
using Files = std::vector<std::string>;

struct ShelfOptions {
  Files books = {}, tapes = {}, boxes = {};

  static auto fields() {
    using O = ShelfOptions;
    return Fields{
        field(&O::books, "books", "folders too", any(), {.is_path = true, .takes_folders = true}),
        field(&O::tapes, "tapes", "files alone", any(), {.is_path = true}),
        field(&O::boxes, "boxes", "folders as they are, and patterns", any(),
              {.is_path = true, .takes_patterns = true})};
  }
};

struct RoomOptions {
  ShelfOptions shelf;

  static auto fields() { return Fields{field(&RoomOptions::shelf, "shelf", "what it holds")}; }
};

class PathListTest : public ::testing::Test {
 protected:
  PathListTest() {
    for (const char* name : {"b.txt", "a.txt", "B.txt", "c.md", ".hidden.txt", "below/d.txt"})
      folder_.write(name, "x\n");
    std::filesystem::create_directories(folder_ / "empty");
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  Files names(const std::string& path) const {
    Files found;
    for (const auto& file : listed_files(path).files) {
      found.push_back(std::filesystem::path(file).lexically_relative(folder_.path()).string());
    }
    return found;
  }

  TempDir folder_;
};

TEST_F(PathListTest, AFolderStandsForItsFilesInTheOrderOfTheirNames) {
  EXPECT_EQ(names(folder_.path().string()), (Files{"B.txt", "a.txt", "b.txt", "c.md"}));
}

TEST_F(PathListTest, APatternStandsForTheFilesThatMatch) {
  EXPECT_EQ(names(at("*.txt")), (Files{"B.txt", "a.txt", "b.txt"}));
  EXPECT_EQ(names(at("?.md")), Files{"c.md"});
}

TEST_F(PathListTest, OtherPathsStandForThemselves) {
  EXPECT_EQ(listed_files(at("a.txt")).files, Files{at("a.txt")});
  EXPECT_EQ(listed_files(at("gone.txt")).files, Files{at("gone.txt")});
  EXPECT_EQ(listed_files(at("a.zip:in/b.txt")).files, Files{at("a.zip:in/b.txt")});
  EXPECT_EQ(listed_files(at("a.zip:What now?.txt")).files, Files{at("a.zip:What now?.txt")});
  folder_.write("odd*.txt", "x\n");
  folder_.write("odd-one.txt", "x\n");
  EXPECT_EQ(listed_files(at("odd*.txt")).files, Files{at("odd*.txt")}) << "a file of that name";
}

TEST_F(PathListTest, ARangeStandsForAllOfItsNumbers) {
  EXPECT_EQ(names(at("s-{008..010}.tar")), (Files{"s-008.tar", "s-009.tar", "s-010.tar"}));
  EXPECT_EQ(names(at("s-{9..11}")), (Files{"s-9", "s-10", "s-11"}));
  EXPECT_EQ(names(at("s-{x..y}.tar")), Files{"s-{x..y}.tar"}) << "no range of numbers";
  EXPECT_EQ(listed_files(at("s-{2..1}.tar")).problem,
            "s-{2..1}.tar: the range ends before it begins");
  EXPECT_EQ(listed_files(at("s-{0..99999999}.tar")).problem,
            "s-{0..99999999}.tar stands for more files than a configuration lists");
  folder_.write("t-{1..2}.tar", "x\n");
  EXPECT_EQ(names(at("t-{1..2}.tar")), Files{"t-{1..2}.tar"}) << "a file of that name";
}

TEST_F(PathListTest, AFolderMayStandForItself) {
  EXPECT_EQ(listed_files(at("below"), /*lists_folders=*/false).files, Files{at("below")});
  EXPECT_EQ(listed_files(at("?.md"), /*lists_folders=*/false).files, Files{at("c.md")});
}

TEST_F(PathListTest, WhatStandsForNoFileIsAProblem) {
  EXPECT_EQ(listed_files(at("empty")).problem, "no file lies in " + at("empty"));
  EXPECT_EQ(listed_files(at("*.gz")).problem,
            "no file in " + folder_.path().string() + " is called *.gz");
  EXPECT_EQ(listed_files(at("gone/*.txt")).problem.find("cannot list " + at("gone")), 0U);
  EXPECT_TRUE(listed_files(at("empty")).files.empty());
}

TEST_F(PathListTest, ALinkToNothingIsNotLeftOut) {
  std::filesystem::create_symlink(at("gone"), at("below/e.txt"));
  EXPECT_EQ(listed_files(at("below")).problem,
            at("below/e.txt") + " is a link to what is not there");
  EXPECT_EQ(listed_files(at("below/d*")).files, Files{at("below/d.txt")});
}

TEST_F(PathListTest, ANameThatNoConfigurationHoldsIsAProblem) {
  folder_.write("below/caf\xe9.txt", "x\n");
  EXPECT_NE(listed_files(at("below")).problem.find("its name is not UTF-8: rename it"),
            std::string::npos);
}

TEST_F(PathListTest, AreReadIntoKeysThatTakeThem) {
  const auto path = folder_.write(
      "below/shelf.toml",
      "[shelf]\nbooks = [\"../*.txt\", \"d.txt\", \"../empty\"]\ntapes = [\"../empty\"]\n"
      "boxes = [\"../?.md\", \"../empty\"]\n");
  RoomOptions options, fallback;
  std::vector<Problem> problems;
  load_file(path, {}, schema_of(options), schema_of(fallback), problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(options.shelf.books,
            (Files{at("B.txt"), at("a.txt"), at("b.txt"), at("below/d.txt"), at("empty")}));
  EXPECT_EQ(options.shelf.tapes, Files{at("empty")});
  EXPECT_EQ(options.shelf.boxes, (Files{at("c.md"), at("empty")}));
}

}  // namespace
}  // namespace stretto::config
