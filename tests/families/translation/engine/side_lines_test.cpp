#include "families/translation/engine/side_lines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::tasks {
namespace {

class SideLinesTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    return folder_.write(name, text);
  }
  /// A pipe that somebody writes this into once it is opened, and then closes.
  std::string pipe(const std::string& name, const std::string& text) {
    const std::string path = (folder_.path() / name).string();
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    writers_.emplace_back([path, text] { std::ofstream(path) << text; });
    return path;
  }
  ~SideLinesTest() override {
    for (auto& writer : writers_) writer.join();
  }
  static std::string message(const std::function<void()>& work) {
    return testing::failure(ExitCode::kBadData, work).message();
  }

  testing::TempDir folder_;
  std::vector<std::thread> writers_;
};

TEST_F(SideLinesTest, AsManyAsLinesAreGivenOneAfterTheOther) {
  SideLines prefixes(prefix_file(write("prefixes", "one\n\nthree")), {write("input", "a\nb\nc\n")});
  data::InputLine line;
  std::string all;
  while (prefixes.next(line)) all += line.text + "|";
  EXPECT_EQ(all, "one||three|");
  prefixes.require_end(3);
}

TEST_F(SideLinesTest, AnotherNumberOfLinesIsRefusedWithBothBeforeTheFirst) {
  const std::string two = write("two", "one\ntwo\n"), one = write("one", "one");
  const std::string input = write("input", "a\nb\nc\n");
  for (const auto& [file, count] : {std::pair{two, "2 lines"}, std::pair{one, "1 line,"}}) {
    const std::string said = message([&, file = file] { SideLines(prefix_file(file), {input}); });
    EXPECT_NE(said.find(count), std::string::npos) << said;
    EXPECT_NE(said.find("the input 3"), std::string::npos) << said;
    EXPECT_NE(said.find(file), std::string::npos) << said;
  }
  EXPECT_NE(message([&] { SideLines(prefix_file(two), {one}); }).find("the input 1"),
            std::string::npos);
}

TEST_F(SideLinesTest, WhatComesThroughAPipeIsCountedAsItComes) {
  const std::string two = write("two", "one\ntwo\n");
  data::TextInput input({pipe("input", "a\nb\nc\nd\n")});
  SideLines prefixes(prefix_file(two), {(folder_.path() / "input").string()});
  data::InputLine line, prefix;
  int64_t lines = 0;
  while (input.next(line)) {
    ++lines;
    if (!prefixes.next(prefix)) break;
  }
  ASSERT_EQ(lines, 3);
  const std::string said = message([&] { prefixes.throw_too_few(lines, input); });
  EXPECT_NE(said.find("2 lines, and the input "), std::string::npos) << said;
}

TEST_F(SideLinesTest, PrefixesThatAreLeftOverAreAnError) {
  const std::string input = pipe("input", "a\n");
  SideLines prefixes(prefix_file(write("three", "one\ntwo\nthree\n")), {input});
  data::TextInput lines({input});
  data::InputLine line;
  ASSERT_TRUE(lines.next(line) && prefixes.next(line));
  ASSERT_FALSE(lines.next(line));
  const std::string said = message([&] { prefixes.require_end(1); });
  EXPECT_NE(said.find("3 lines, and the input 1"), std::string::npos) << said;
}

TEST_F(SideLinesTest, ASecondSourceSaysItsOwnOption) {
  const std::string two = write("two", "one\ntwo\n"), one = write("one", "one\n");
  const Error error =
      testing::failure(ExitCode::kBadData, [&] { SideLines(second_source_file(two), {one}); });
  const std::string what = error.what();
  EXPECT_NE(what.find("--src2 " + two + " has 2 lines, and the input 1"), std::string::npos)
      << what;
  EXPECT_FALSE(error.advice().empty());
}

}  // namespace
}  // namespace stretto::tasks
