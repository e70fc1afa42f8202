#include "data/bad_samples.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"

namespace stretto::data {
namespace {

SampleError fault(int64_t line, const std::string& file = "a.tsv") {
  return {file, ":" + std::to_string(line) + ": no label", "complete the row"};
}

TEST(BadSamples, StopAtTheEndOfTheFileWithAllOfItsFaults) {
  BadSamples bad;
  EXPECT_FALSE(bad.is_stopping());
  EXPECT_NO_THROW(bad.end_file());
  bad.add(fault(3));
  EXPECT_TRUE(bad.is_stopping());
  const Error one = testing::failure(ExitCode::kBadData, [&] { bad.end_file(); });
  EXPECT_STREQ(one.what(), "a.tsv:3: no label");
  EXPECT_EQ(one.advice(), "complete the row");
  for (const int64_t line : {4, 5, 9}) bad.add(fault(line));
  const Error three = testing::failure(ExitCode::kBadData, [&] { bad.end_file(); });
  EXPECT_STREQ(three.what(), "a.tsv:4: no label; 2 more: 5: no label; 9: no label");
  EXPECT_EQ(three.advice(),
            "complete the row; data.bad_samples = \"skip\" leaves such samples out");
  EXPECT_EQ(three.details(), (std::vector<std::string>{"a.tsv:4: no label", "a.tsv:5: no label",
                                                       "a.tsv:9: no label"}));
  EXPECT_FALSE(bad.is_stopping());
}

// The whole paths of ten would leave no room for what is wrong.
TEST(BadSamples, APlaceInJsonIsNamedForTheFirstAlone) {
  BadSamples bad({.skips = true});
  const auto fault_at = [](const std::string& number, const std::string& what) {
    return SampleError("a.json", ": data[0].paragraphs[" + number + "].qas[0]" + what, "mend it");
  };
  bad.add(fault_at("7", ": question z: its text is empty"));
  bad.add(fault_at("8", ".id: is no id"));
  EXPECT_EQ(bad.left_out().text(),
            "2 bad samples: a.json: question z: its text is empty; "
            "data[0].paragraphs[8].qas[0].id: is no id");
  BadSamples stop;
  stop.add(fault_at("7", ": question z: its text is empty"));
  stop.add(fault_at("9", ": question y: another question has this id"));
  EXPECT_STREQ(testing::failure(ExitCode::kBadData, [&] { stop.end_file(); }).what(),
               "a.json: data[0].paragraphs[7].qas[0]: question z: its text is empty; 1 more: "
               "question y: another question has this id");
}

TEST(BadSamples, FoldersOfAFileLeaveRoomForWhatIsWrongWithIt) {
  BadSamples bad({.skips = true});
  bad.add(
      {"list.csv", ":4: /a/long/way/to/the/sounds/of/all/speakers/x.wav: is not there", "look"});
  bad.add({"list.csv", ":5: a time of 1/2: is no number", "look"});
  EXPECT_EQ(bad.left_out().text(),
            "2 bad samples: list.csv:4: x.wav: is not there; 5: a time of 1/2: is no number");
}

TEST(BadSamples, StopAtTheTenth) {
  BadSamples bad;
  for (int64_t line = 1; line < 10; ++line) bad.add(fault(line));
  const Error error = testing::failure(ExitCode::kBadData, [&] { bad.add(fault(10)); });
  EXPECT_NE(std::string(error.what()).find("a.tsv:1: no label; at least 9 more: 2: "),
            std::string::npos)
      << error.what();
  EXPECT_NE(std::string(error.what()).find("; 10: no label"), std::string::npos) << error.what();
}

TEST(BadSamples, AreCountedAndTheFirstTenNamedWhereTheyAreSkipped) {
  BadSamples bad({.skips = true, .most = 12});
  for (int64_t line = 1; line <= 12; ++line) {
    bad.add(fault(line, line < 8 ? "a.tsv" : "b.tsv"));
    bad.end_file();
  }
  EXPECT_FALSE(bad.is_stopping());
  EXPECT_EQ(bad.left_out().count, 12);
  ASSERT_EQ(bad.left_out().first.size(), kNamedBadSamples);
  EXPECT_EQ(bad.left_out().first.back(), (BadSample{"b.tsv", ":10: no label"}));
  const std::string text = bad.left_out().text();
  EXPECT_TRUE(text.starts_with("12 bad samples: a.tsv:1: no label; 2: ")) << text;
  EXPECT_TRUE(text.ends_with("7: no label; b.tsv:8: no label; 9: no label; 10: no label; …"))
      << text;
  const Error error = testing::failure(ExitCode::kBadData, [&] { bad.add(fault(13)); });
  EXPECT_NE(std::string(error.what()).find("data.max_bad_samples = 12"), std::string::npos)
      << error.what();
  EXPECT_NE(std::string(error.what()).find("a.tsv:1: no label"), std::string::npos);
  EXPECT_EQ(LeftOut{}.text(), "");
}

TEST(BadSamples, AnErrorOfTheFileBecomesAFaultOfIt) {
  const auto named = SampleError::of(Error(ExitCode::kBadData, "a.tsv:3: bad", "mend it"), "a.tsv");
  EXPECT_EQ(named.fault(), ":3: bad");
  EXPECT_STREQ(named.what(), "a.tsv:3: bad");
  EXPECT_EQ(named.advice(), "mend it");
  EXPECT_STREQ(SampleError::of(Error(ExitCode::kBadData, "bad"), "a.tsv").what(), "a.tsv: bad");
}

TEST(BadSamples, ComeBackFromTheHeadOfACacheUnderTodaysNames) {
  const std::vector<std::string> files{"a.tsv", "b.tsv"}, moved{"x.tsv", "y.tsv"};
  BadSamples bad({.skips = true});
  bad.add(fault(7, "b.tsv"));
  bad.add({"a.tsv", ":8", ""});
  std::vector<uint64_t> words{42};
  append_left_out(words, bad.left_out(), files);
  size_t at = 1;
  LeftOut back;
  ASSERT_TRUE(take_left_out(words, at, moved, back));
  EXPECT_EQ(at, words.size());
  EXPECT_EQ(back.count, 2);
  EXPECT_EQ(back.first, (std::vector<BadSample>{{"y.tsv", ":7: no label"}, {"x.tsv", ":8"}}));
  for (size_t size = 1; size < words.size(); ++size) {
    at = 1;
    EXPECT_FALSE(take_left_out(std::span(words).first(size), at, moved, back)) << size;
  }
  at = 1;
  EXPECT_FALSE(take_left_out(words, at, std::span(moved).first(1), back)) << "a file of no input";
}

}  // namespace
}  // namespace stretto::data
