#include "search/search_runner.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include "base/log.h"
#include "base/random.h"
#include "experiment/load_experiment.h"
#include "search/search_files.h"
#include "tests/base/failure.h"
#include "tests/distributed/scoped_variable.h"
#include "tests/search/bench.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;
using stretto::testing::kHalving;
using stretto::testing::kLearningRate;
using stretto::testing::ScopedVariable;
using stretto::testing::SearchBench;
using namespace std::chrono_literals;

class SearchRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_program("python3").empty()) GTEST_SKIP() << "the stand-in for trials needs python3";
    log::set_quiet(true);
    fs::create_directories(failures_);
  }
  void TearDown() override {
    log::close_file();
    log::set_quiet(false);
  }

  std::string file(const std::string& search, const std::string& rest = kHalving + kLearningRate) {
    return bench_.file(search, rest);
  }

  RunnerSetup setup(const std::string& path, const std::string& directory) {
    return {.directory = bench_.folder / directory,
            .plan = load_search(path).plan,
            .command =
                [](const TrialRun& run) {
                  std::vector<std::string> words{find_program("python3"),
                                                 STRETTO_SOURCE_DIR "/tests/search/stand_in.py",
                                                 run.directory.string(), std::to_string(run.until)};
                  words.insert(words.end(), run.overrides.begin(), run.overrides.end());
                  return words;
                },
            .cores = 2,
            .shown = "space.toml",
            .tick = 2ms};
  }

  ExitCode run(const std::string& path, const std::string& directory) {
    return SearchRunner(setup(path, directory)).run();
  }

  /// The table without what is no function of file and seed.
  std::string table(const std::string& directory) {
    const auto state =
        SearchState::replay(read_journal(journal_path(bench_.folder / directory)).entries, "test");
    std::string text, file;
    for (const auto& trial : state.trials()) {
      auto json = trial_json(state, trial);
      json.erase("seconds");
      text += json.dump() + "\n";
    }
    for (const auto& line : lines_of(directory + "/trials.jsonl")) {
      auto json = nlohmann::ordered_json::parse(line);
      json.erase("seconds");
      file += json.dump() + "\n";
    }
    EXPECT_EQ(file, text);
    return text;
  }

  std::vector<std::string> lines_of(const std::string& name) {
    std::ifstream in(bench_.folder / name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  void fail(TrialId trial, const std::string& codes) {
    std::ofstream(failures_ / std::to_string(trial)) << codes;
  }

  std::vector<TrialId> with_checkpoints(const std::string& directory) {
    std::vector<TrialId> trials;
    for (TrialId trial = 0; trial < 100; ++trial) {
      if (fs::exists(trial_directory(bench_.folder / directory, trial) / "checkpoints")) {
        trials.push_back(trial);
      }
    }
    return trials;
  }

  SearchBench bench_;
  fs::path failures_ = bench_.folder / "failures";
  ScopedVariable variable_{"STAND_IN_FAILURES", failures_.c_str()};
};

TEST_F(SearchRunnerTest, FindsTheBestAndKeepsItsCheckpointsAlone) {
  const auto path = file("max_trials = 8\nslots = 1\n");
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  const auto state =
      SearchState::replay(read_journal(journal_path(bench_.folder / "dir")).entries, "test");
  const auto best = state.best();
  ASSERT_TRUE(best);
  EXPECT_EQ(state.state_of(*best), TrialState::kFinished);
  EXPECT_EQ(with_checkpoints("dir"), (std::vector<TrialId>{*best}));
  const auto toml = bench_.folder / "dir/best.toml";
  const auto loaded = experiment::load_experiment(toml, {});
  EXPECT_EQ(loaded.options.optim.lr,
            std::stod(*state.trials()[static_cast<size_t>(*best)].point[0]));
  EXPECT_EQ(read_file(toml).find((bench_.folder / "dir").string()), std::string::npos);
}

TEST_F(SearchRunnerTest, GivesTheSameTableEachTimeInOrder) {
  const auto path = file("max_trials = 10\nslots = 2\ndeterministic = true\n");
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(run(path, name), ExitCode::kOk);
  EXPECT_EQ(table("a"), table("b"));
  EXPECT_EQ(table("a"), table("c"));
}

TEST_F(SearchRunnerTest, TriesAFailedTrialAgainAndThenCountsItAsTheWorst) {
  fail(1, "69\n137\n");
  fail(2, "69\n69\n69\n69\n");
  fail(3, "70\n");
  fail(4, "nan\n");
  fail(5, "nothing\n");
  EXPECT_EQ(run(file("max_trials = 8\nslots = 1\nmax_restarts = 2\n"), "dir"), ExitCode::kOk);
  const auto state =
      SearchState::replay(read_journal(journal_path(bench_.folder / "dir")).entries, "test");
  EXPECT_NE(state.state_of(1), TrialState::kFailed);
  EXPECT_EQ(state.trials()[1].failures, 2);
  EXPECT_EQ(state.state_of(2), TrialState::kFailed);
  EXPECT_EQ(state.trials()[2].failures, 3);
  EXPECT_EQ(state.state_of(3), TrialState::kFailed);
  EXPECT_EQ(state.trials()[3].failures, 1) << "a training that diverged does so again";
  EXPECT_EQ(state.trials()[3].why, "this trial fails as it was told");
  EXPECT_EQ(state.trials()[4].why, "nll of its last validation is no number");
  EXPECT_EQ(state.trials()[5].why, "it ended without a validation");
  const auto json = trial_json(state, state.trials()[2]);
  EXPECT_EQ(json["log"], "trials/2/output.txt");
  EXPECT_TRUE(fs::exists(bench_.folder / "dir/trials/2/output.txt"));
}

TEST_F(SearchRunnerTest, StopsWhereADiskIsFullAndGoesOnLater) {
  const auto path = file("max_trials = 4\nslots = 1\n");
  run(path, "whole");
  fail(1, "74\n");
  const auto error = testing::failure(ExitCode::kIo, [&] { run(path, "dir"); });
  EXPECT_NE(error.message().find("trial 1 cannot train: this trial fails"), std::string::npos);
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  EXPECT_EQ(table("dir"), table("whole"));
}

TEST_F(SearchRunnerTest, LeavesWithTheCodeOfTrialsThatAllFail) {
  for (TrialId trial = 0; trial < 3; ++trial) fail(trial, "65\n");
  testing::failure(ExitCode::kBadData,
                   [&] { run(file("max_trials = 3\n", kLearningRate + kHalving), "dir"); });
}

TEST_F(SearchRunnerTest, RefusesAFolderThatIsInUseOrHasAnotherSearch) {
  const auto path = file("max_trials = 2\n");
  {
    const SearchRunner runner(setup(path, "dir"));
    testing::failure(ExitCode::kUsage, [&] { SearchRunner(setup(path, "dir")); });
  }
  run(path, "dir");
  const auto other = file("max_trials = 2\nseed = 3\n");
  const auto error = testing::failure(ExitCode::kUsage, [&] { run(other, "dir"); });
  EXPECT_NE(error.message().find("search.seed: 1 in the search, 3 now"), std::string::npos);
}

TEST_F(SearchRunnerTest, GoesOnWithALargerBudgetMorePointsAndANarrowerSpace) {
  EXPECT_EQ(run(file("max_trials = 4\nslots = 1\n"), "dir"), ExitCode::kOk);
  const auto path =
      file("max_trials = 8\nslots = 1\npoints = [\"optim.lr=2e-3\"]\n",
           kHalving + "[[space]]\nkey = \"optim.lr\"\nname = \"log\"\nmin = 1e-3\nmax = 1e-2\n");
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  const auto state =
      SearchState::replay(read_journal(journal_path(bench_.folder / "dir")).entries, "test");
  ASSERT_EQ(state.trials().size(), 8u);
  EXPECT_EQ(state.trials()[4].point[0], "0.002");
  for (size_t i = 4; i < 8; ++i) EXPECT_GE(std::stod(*state.trials()[i].point[0]), 1e-3);
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk) << "a finished search has nothing left to do";
}

TEST_F(SearchRunnerTest, EndsAGridWithItsPoints) {
  const auto path = file("max_trials = 100\nslots = 2\n",
                         "[method]\nname = \"grid\"\n" + kLearningRate + "count = 3\n");
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  EXPECT_EQ(lines_of("dir/trials.jsonl").size(), 3u);
}

TEST_F(SearchRunnerTest, BeginsNothingAfterItsHours) {
  const auto path = file("max_trials = 50\nslots = 1\nmax_hours = 1e-9\n");
  testing::failure(ExitCode::kUsage, [&] { run(path, "dir"); });
  EXPECT_TRUE(fs::exists(bench_.folder / "dir/journal"));
}

/// A search in a process of its own, to be killed; its exit code, or nothing after SIGKILL.
class KilledSearch {
 public:
  KilledSearch(const std::function<int()>& work) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(work());
  }
  std::optional<int> kill_after(std::chrono::microseconds time, int signal) {
    const auto end = std::chrono::steady_clock::now() + time;
    int status = 0;
    while (std::chrono::steady_clock::now() < end) {
      if (::waitpid(pid_, &status, WNOHANG) == pid_) return WEXITSTATUS(status);
      std::this_thread::sleep_for(1ms);
    }
    ::kill(pid_, signal);
    ::waitpid(pid_, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    return std::nullopt;
  }

 private:
  pid_t pid_;
};

struct Kills {
  const char* name;
  const char* search;
  int signal;
};

class SearchRunnerKillTest : public SearchRunnerTest,
                             public ::testing::WithParamInterface<Kills> {};

TEST_P(SearchRunnerKillTest, EndsWithTheSameTableAfterKillsAtRandomMoments) {
  const auto path = file(GetParam().search);
  std::string always;
  for (int i = 0; i < 100; ++i) always += "69\n";
  fail(2, always);
  EXPECT_EQ(run(path, "whole"), ExitCode::kOk);
  RandomStream random(5);
  int kills = 0;
  fail(2, always);
  std::optional<int> code;
  for (int i = 0; i < 200 && code != 0; ++i) {
    KilledSearch one([&] {
      try {
        return static_cast<int>(run(path, "killed"));
      } catch (const Error& error) {
        std::cerr << error.message() << "\n";
        return 99;
      }
    });
    // Later and later, so that the search gets on however slow the machine is.
    const auto time = std::chrono::milliseconds(20 + random.below(200) + 20 * i);
    code = one.kill_after(time, GetParam().signal);
    if (code == 99) FAIL();
    kills += code == 0 ? 0 : 1;
  }
  ASSERT_EQ(code, 0);
  EXPECT_EQ(table("killed"), table("whole"));
  EXPECT_EQ(with_checkpoints("killed"), with_checkpoints("whole"));
  EXPECT_GT(kills, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Signals, SearchRunnerKillTest,
    ::testing::Values(Kills{"Kill", "max_trials = 8\nslots = 1\nmax_restarts = 1\n", SIGKILL},
                      Kills{"KillTwoSlots",
                            "max_trials = 8\nslots = 2\nmax_restarts = 1\ndeterministic = true\n",
                            SIGKILL},
                      Kills{"Terminate",
                            "max_trials = 8\nslots = 2\nmax_restarts = 1\ndeterministic = true\n",
                            SIGTERM}),
    [](const auto& info) { return info.param.name; });

TEST_F(SearchRunnerTest, TakesItsTrialsWithItWhenItIsKilled) {
  const ScopedVariable slow("STAND_IN_SECONDS", "30");
  const auto path = file("max_trials = 2\nslots = 2\n");
  KilledSearch search([&] { return static_cast<int>(run(path, "dir")); });
  const fs::path lock = bench_.folder / "dir/trials/1/.lock";
  for (int i = 0; i < 500 && !FileLock::is_held(lock); ++i) std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(FileLock::is_held(lock));
  EXPECT_FALSE(search.kill_after(1ms, SIGKILL));
  for (int i = 0; i < 500 && FileLock::is_held(lock); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(FileLock::is_held(lock));
}

}  // namespace
}  // namespace stretto::search
