#include "search/search_output.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "search/load_search.h"
#include "search/search_folder.h"
#include "search/trial_points.h"
#include "tests/search/bench.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;
using testing::expect_in;

class SearchOutputTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(directory_); }

  /// The next trial, trained to the end of its job.
  void report(double value) {
    const auto begun = state_.next(points_.next(state_));
    ASSERT_TRUE(begun);
    points_.taken();
    state_.report(begun->job, {.until = begun->job.until, .step = begun->job.until, .value = value},
                  1);
  }
  std::string text(const std::string& name) const { return read_file(directory_ / name); }

  testing::SearchBench bench_;
  fs::path directory_ = bench_.folder / "search";
  SearchState state_{
      load_search(bench_.file("max_trials = 4\nslots = 1\n",
                              "[method]\nname = \"random\"\n" + testing::kLearningRate),
                  space_use(directory_))
          .plan};
  TrialPoints points_{"search.points"};
  SearchOutput output_{directory_, "space.toml"};
};

TEST_F(SearchOutputTest, TheTableHasALineForEachTrialAndTheBestItsConfiguration) {
  output_.write(state_);
  EXPECT_EQ(text("trials.jsonl"), "");
  EXPECT_FALSE(fs::exists(directory_ / "best.toml")) << "no trial has a result";
  report(3);
  output_.write(state_);
  const auto first = text("best.toml");
  expect_in("[optim]", first);
  report(4);
  output_.write(state_);
  expect_in("\"trial\":1", text("trials.jsonl"));
  report(2);
  output_.write(state_);
  EXPECT_NE(text("best.toml"), first);
}

TEST_F(SearchOutputTest, ThePageIsWrittenAtOnceThenNowAndThenAndWithTheLastStatus) {
  output_.write(state_);
  const auto page = text("search.html");
  expect_in("running", page);
  report(3);
  output_.write(state_);
  EXPECT_EQ(text("search.html"), page) << "it is younger than ten seconds";
  output_.write_page(state_, "finished");
  expect_in("finished", text("search.html"));
}

TEST_F(SearchOutputTest, ABestConfigurationThatCannotBeMadeStopsNothing) {
  report(3);
  fs::remove(bench_.config);
  output_.write(state_);
  EXPECT_TRUE(fs::exists(directory_ / "trials.jsonl"));
  EXPECT_FALSE(fs::exists(directory_ / "best.toml"));
}

}  // namespace
}  // namespace stretto::search
