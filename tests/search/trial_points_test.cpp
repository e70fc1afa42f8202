#include "search/trial_points.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/log.h"
#include "search/load_search.h"
#include "search/search_folder.h"
#include "tests/base/failure.h"
#include "tests/search/bench.h"

namespace stretto::search {
namespace {

using testing::expect_in, testing::SearchBench;

class TrialPointsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log::set_quiet(true);
    log::open_file(log_);
  }
  void TearDown() override {
    log::close_file();
    log::set_quiet(false);
  }
  SearchState state_of(const std::string& search, const std::string& rest) {
    const auto path = bench_.file(search, rest);
    return SearchState(load_search(path, space_use(bench_.folder / "search")).plan);
  }
  /// Begins trials until there are no points; @return these.
  static std::vector<std::string> all_points(TrialPoints& points, SearchState& state) {
    std::vector<std::string> found;
    while (const auto choice = points.next(state)) {
      found.push_back(state.plan().space.text(choice->point));
      if (!state.next(choice)) break;
      points.taken();
    }
    return found;
  }

  SearchBench bench_;
  std::filesystem::path log_ = bench_.folder / "log.txt";
  TrialPoints points_{"space.toml:3:1"};
};

TEST_F(TrialPointsTest, ThePointOfTheNextTrialStaysUntilATrialTookIt) {
  auto state = state_of("max_trials = 4\n", testing::kLearningRate);
  const auto text = [&] { return state.plan().space.text(points_.next(state)->point); };
  const auto first = text();
  EXPECT_EQ(text(), first);
  ASSERT_TRUE(state.next(points_.next(state)));
  points_.taken();
  EXPECT_NE(text(), first);
}

TEST_F(TrialPointsTest, PointsWhoseConfigurationBreaksARuleAreLeftOutAndCounted) {
  auto state = state_of("", testing::kHeadsGrid);
  EXPECT_EQ(all_points(points_, state).size(), 3u);
  const std::string log = read_file(log_);
  expect_in("the space has no more points; 3 are refused", log);
}

TEST_F(TrialPointsTest, AnEnqueuedPointThatIsPassedOverIsToldOnce) {
  auto state = state_of(
      "max_trials = 3\npoints = [\"optim.lr=0.001\", \"optim.lr=0.001\", \"optim.lr=0.002\"]\n",
      testing::kLearningRate);
  const auto found = all_points(points_, state);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], "optim.lr=0.001");
  EXPECT_EQ(found[1], "optim.lr=0.002");
  const std::string log = read_file(log_);
  const std::string told =
      "space.toml:3:1: point 2 of 3 is passed over, `optim.lr=0.001`: a trial has it already";
  expect_in(told, log);
  EXPECT_EQ(log.find(told), log.rfind(told));
}

TEST_F(TrialPointsTest, AConfigurationThatWasChangedMeanwhileGivesNoPoint) {
  auto state = state_of("max_trials = 4\n", testing::kLearningRate);
  std::string text = read_file(bench_.config);
  text.replace(text.find("warmup_steps = 4"), 16, "warmup_steps = 5");
  bench_.folder.write("my.toml", text);
  const auto error = stretto::testing::failure(ExitCode::kUsage, [&] { points_.next(state); });
  expect_in("was changed during the search", error.what());
}

}  // namespace
}  // namespace stretto::search
