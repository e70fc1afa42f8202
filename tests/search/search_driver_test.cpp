#include "search/search_driver.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "search/load_search.h"
#include "search/search_folder.h"
#include "tests/base/failure.h"
#include "tests/search/bench.h"

namespace stretto::search {
namespace {

using testing::expect_in;

/// Searches without processes: the test trains.
class SearchDriverTest : public ::testing::Test {
 protected:
  void SetUp() override { log::set_quiet(true); }
  void TearDown() override {
    log::close_file();
    log::set_quiet(false);
  }
  SearchDriver driver_of(const std::string& search) {
    const auto path = bench_.file(search, "[method]\nname = \"random\"\n" + testing::kLearningRate);
    return {directory_, load_search(path, space_use(directory_)).plan, "search.points",
            /*accept_data=*/false};
  }
  std::vector<std::string> events() const {
    std::vector<std::string> names;
    for (const auto& entry : read_journal(journal_path(directory_)).entries) {
      names.push_back(entry.at("event").get<std::string>());
    }
    return names;
  }
  static Report result(const Job& job, double value) {
    return {.until = job.until, .step = job.until, .value = value};
  }

  testing::SearchBench bench_;
  std::filesystem::path directory_ = bench_.folder / "search";
};

using EventNames = std::vector<std::string>;

TEST_F(SearchDriverTest, EachDecisionIsInTheJournalWhenItIsKnown) {
  SearchDriver driver = driver_of("max_trials = 2\n");
  EXPECT_EQ(events(), EventNames{"begin"});
  const auto job = driver.next();
  ASSERT_TRUE(job);
  EXPECT_EQ(events(), (EventNames{"begin", "run"}));
  EXPECT_TRUE(driver.fail(*job, 69, "lost"));
  EXPECT_EQ(events(), (EventNames{"begin", "run", "failure"}));
  driver.report(*job, result(*job, 2));
  EXPECT_EQ(events(), (EventNames{"begin", "run", "failure", "result"}));
  ASSERT_TRUE(driver.next());
  EXPECT_FALSE(driver.next()) << "both trials were begun";
  EXPECT_EQ(driver.state().best(), 0);
}

TEST_F(SearchDriverTest, OfTwoThatHaveEndedTheOlderCountsFirst) {
  SearchDriver driver = driver_of("max_trials = 3\n");
  const auto first = driver.next(), second = driver.next(), third = driver.next();
  ASSERT_TRUE(first && second && third);
  driver.ended(*third);
  driver.ended(*second);
  EXPECT_FALSE(driver.take_ended(/*in_order=*/true)) << "the first one trains";
  EXPECT_EQ(driver.take_ended(/*in_order=*/false), second);
  driver.ended(*first);
  EXPECT_EQ(driver.take_ended(/*in_order=*/true), first);
}

// By hand: two restarts make three trainings; one that diverges does so again.
TEST_F(SearchDriverTest, AFailureIsTriedAgainUnlessItWouldBeTheSame) {
  SearchDriver driver = driver_of("max_trials = 2\nmax_restarts = 2\n");
  const auto lost = driver.next(), diverged = driver.next();
  ASSERT_TRUE(lost && diverged);
  EXPECT_TRUE(driver.fail(*lost, 69, ""));
  EXPECT_TRUE(driver.fail(*lost, 137, ""));
  EXPECT_FALSE(driver.has_failed_for_good(*lost));
  EXPECT_FALSE(driver.fail(*lost, 69, ""));
  EXPECT_TRUE(driver.has_failed_for_good(*lost));
  EXPECT_FALSE(driver.fail(*diverged, 70, "NaN"));
  EXPECT_EQ(driver.take_ended(/*in_order=*/true), lost) << "it waits for its turn";
}

TEST_F(SearchDriverTest, GoesOnWithWhatItsJournalSays) {
  std::optional<Job> ended, failed, running;
  {
    SearchDriver driver = driver_of("max_trials = 4\n");
    stretto::testing::failure(ExitCode::kUsage, [&] { driver_of("max_trials = 4\n"); });
    ended = driver.next(), failed = driver.next(), running = driver.next();
    driver.report(*ended, result(*ended, 2));
    driver.fail(*failed, 70, "NaN");
  }
  SearchDriver driver = driver_of("max_trials = 4\n");
  EXPECT_EQ(driver.state().running(), (std::vector<Job>{*failed, *running}));
  EXPECT_EQ(driver.unfinished(), std::vector<Job>{*running});
  EXPECT_EQ(driver.take_ended(/*in_order=*/true), failed);
  EXPECT_EQ(driver.state().best(), ended->trial);
  EXPECT_EQ(events().back(), "failure") << "nothing has changed";
}

TEST_F(SearchDriverTest, OtherDataAndAnotherConfigurationAreRefusedBeforeATrialTrains) {
  SearchDriver driver = driver_of("max_trials = 2\n");
  const auto job = driver.next();
  driver.require_same_files(*job);
  bench_.folder.write("train.src", "a\nb\n");
  expect_in("train.src", stretto::testing::failure(ExitCode::kBadData, [&] {
                           driver.require_same_files(*job);
                         }).message());
  bench_.folder.write("my.toml", read_file(bench_.config) + "[optim]\nclip_norm = 2.0\n");
  expect_in("was changed during the search", stretto::testing::failure(ExitCode::kUsage, [&] {
                                               driver.require_same_files(*job);
                                             }).message());
}

}  // namespace
}  // namespace stretto::search
