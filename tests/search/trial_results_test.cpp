#include "search/trial_results.h"

#include <gtest/gtest.h>

#include "tests/base/temp_dir.h"

namespace stretto::search {
namespace {

/// `metrics.jsonl` of a run folder, made line by line.
class WrittenMetrics {
 public:
  explicit WrittenMetrics(testing::TempDir& run) : run_(run) {}
  WrittenMetrics& train(int step) { return add(step, R"("event":"train","loss":2.5)"); }
  WrittenMetrics& skip(int step) {
    return add(step, R"("event":"train","loss":null,"skipped":true)");
  }
  WrittenMetrics& valid(int step, const std::string& nll) {
    return add(step, R"("event":"valid","nll":)" + nll);
  }
  WrittenMetrics& end(int step) { return add(step, R"("event":"end")"); }

 private:
  WrittenMetrics& add(int step, const std::string& rest) {
    const std::string number = std::to_string(step);
    text_ += R"({"step":)" + number + R"(,"epoch":1,)" + rest + ",\"seconds\":" + number + "}\n";
    run_.write("metrics.jsonl", text_);
    return *this;
  }

  testing::TempDir& run_;
  std::string text_;
};

// By hand: of seven steps two were left out, the first before the validation. Losses that are not
// finite are null.
TEST(RunFolderOfATrial, CountsUpdatesWithoutThoseThatWereLeftOut) {
  testing::TempDir run;
  EXPECT_FALSE(value_at(run.path(), "nll", 4));
  EXPECT_EQ(run_progress(run.path()).updates, 0);
  WrittenMetrics(run).train(3).skip(4).valid(5, "2").skip(7);
  const auto here = value_at(run.path(), "nll", 4);
  ASSERT_TRUE(here);
  EXPECT_EQ(here->updates, 4);
  EXPECT_EQ(here->value, 2.0);
  EXPECT_EQ(here->seconds, 5.0);
  EXPECT_EQ(here->made, 5);
  EXPECT_EQ(run_progress(run.path()).updates, 5);
  EXPECT_EQ(run_progress(run.path()).seconds, 7.0);
  EXPECT_FALSE(value_at(run.path(), "nll", 5)) << "that is another length";
  ASSERT_TRUE(value_at(run.path(), "bleu", 4));
  EXPECT_FALSE(value_at(run.path(), "bleu", 4)->value);
}

// A run that is ahead: each length has its own value, and one between them has none.
TEST(RunFolderOfATrial, HasTheValueOfEachLengthAlone) {
  testing::TempDir run;
  WrittenMetrics(run).valid(3, "5").valid(9, "4").valid(20, "3").train(25).valid(27, "2");
  const std::vector<std::pair<int64_t, double>> values{{3, 5.0}, {9, 4.0}, {27, 2.0}};
  for (const auto& [until, value] : values) {
    const auto here = value_at(run.path(), "nll", until);
    ASSERT_TRUE(here) << until;
    EXPECT_EQ(here->value, value);
    EXPECT_EQ(here->updates, until);
    EXPECT_EQ(here->seconds, until);
    EXPECT_EQ(here->made, 27);
  }
  for (const int64_t until : {1, 10, 28, 81}) EXPECT_FALSE(value_at(run.path(), "nll", until));
}

TEST(RunFolderOfATrial, HasTheLastValueOfARunThatEndedEarly) {
  testing::TempDir run;
  WrittenMetrics(run).valid(3, "5").valid(7, "4").end(7);
  EXPECT_EQ(value_at(run.path(), "nll", 9)->value, 4.0);
  EXPECT_EQ(value_at(run.path(), "nll", 9)->updates, 7);
  EXPECT_EQ(value_at(run.path(), "nll", 3)->value, 5.0);
  EXPECT_FALSE(value_at(run.path(), "nll", 5)) << "it came further than that";
}

}  // namespace
}  // namespace stretto::search
