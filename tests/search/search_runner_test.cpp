#include "search/search_runner.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <iostream>
#include <thread>

#include "base/failpoint.h"
#include "base/random.h"
#include "experiment/load_experiment.h"
#include "search/search_files.h"
#include "tests/base/failure.h"
#include "tests/search/runner_bench.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;
using stretto::testing::kHalving;
using stretto::testing::kHeadsGrid;
using stretto::testing::kLearningRate;
using stretto::testing::ScopedVariable;
using namespace std::chrono_literals;

class SearchRunnerTest : public RunnerBench {};

TEST_F(SearchRunnerTest, FindsTheBestAndKeepsItsCheckpointsAlone) {
  const auto path = file("max_trials = 8\nslots = 1\n");
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  const auto state = replayed("dir");
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
  const auto state = replayed("dir");
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
  EXPECT_NE(read_file(bench_.folder / "dir/search.html").find("\"trials/2/output.txt\""),
            std::string::npos);
}

// By hand: of four steps two were left out. How far the trial came that was killed is no function
// of the seed.
TEST_F(SearchRunnerTest, CountsTheUpdatesThatAFailedTrialMade) {
  fail(1, "diverged\n");
  fail(2, "137\n");
  fail(3, "nothing\n");
  EXPECT_EQ(run(file("max_trials = 5\nslots = 1\nmax_restarts = 0\n"), "dir"), ExitCode::kOk);
  const auto state = replayed("dir");
  const auto json_of = [&](size_t trial) { return trial_json(state, state.trials()[trial]); };
  EXPECT_EQ(json_of(1)["state"], "failed");
  EXPECT_EQ(json_of(1)["updates"], 2);
  EXPECT_EQ(json_of(1)["reports"].dump(), "[[2,null]]");
  EXPECT_EQ(json_of(1)["seconds"], 1.0);
  for (const size_t trial : {2, 3}) {
    EXPECT_EQ(json_of(trial)["state"], "failed");
    EXPECT_EQ(json_of(trial)["updates"], 0);
  }
  EXPECT_FALSE(log_has("dir", "ended at update")) << "it failed";
}

TEST_F(SearchRunnerTest, CountsTheSameWhereItIsKilledBehindAFailure) {
  const auto path =
      file("max_trials = 3\nslots = 1\n", "[method]\nname = \"random\"\n" + kLearningRate);
  fail(1, "diverged\n");
  EXPECT_EQ(run(path, "whole"), ExitCode::kOk);
  fs::copy(bench_.folder / "whole", bench_.folder / "cut", fs::copy_options::recursive);
  fs::remove_all(trial_directory(bench_.folder / "cut", 2));
  std::string journal;
  for (const auto& line : lines_of("whole/journal")) {
    journal += line + "\n";
    if (line.find("\"event\":\"failure\"") != std::string::npos) break;
  }
  std::ofstream(journal_path(bench_.folder / "cut")) << journal;
  EXPECT_EQ(replayed("cut").state_of(1), TrialState::kRunning);
  EXPECT_EQ(run(path, "cut"), ExitCode::kOk);
  EXPECT_EQ(table("cut"), table("whole"));
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

TEST_F(SearchRunnerTest, TriesNothingAgainThatWouldFailInTheSameWay) {
  const ScopedVariable quick("STAND_IN_SECONDS", "0");
  const auto path =
      file("max_trials = 4\nslots = 1\n", "[method]\nname = \"random\"\n" + kLearningRate);
  fail(0, "2\n");
  fail(1, "65\n");
  fail(2, "78\n");
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  const auto state = replayed("dir");
  for (TrialId trial = 0; trial < 3; ++trial) {
    EXPECT_EQ(state.state_of(trial), TrialState::kFailed) << trial;
  }
  EXPECT_EQ(state.best(), 3);
}

TEST_F(SearchRunnerTest, ComparesNoTrialsOfDifferentData) {
  const auto path = file("max_trials = 4\nslots = 1\n");
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  const auto trials = lines_of("dir/trials.jsonl");
  const std::string journal = read_file(journal_path(bench_.folder / "dir"));
  const auto longer = file("max_trials = 6\nslots = 1\n");
  bench_.folder.write("valid.tgt", "b\n");
  const auto error = testing::failure(ExitCode::kBadData, [&] { run(longer, "dir"); });
  testing::expect_in("the data have changed since the search in ", error.message());
  testing::expect_in(
      "data.valid_tgt: " + (bench_.folder / "valid.tgt").string() + ": first differs in line 1",
      error.message());
  EXPECT_EQ(lines_of("dir/trials.jsonl"), trials);
  EXPECT_EQ(read_file(journal_path(bench_.folder / "dir")), journal);
  EXPECT_FALSE(log_has("dir", "goes on with a changed file"));
  const auto before = replayed("dir");
  for (const auto& trial : before.trials()) EXPECT_EQ(trial.failures, 0);
  EXPECT_EQ(before.trials().size(), 4u) << "no trial began, and none failed";
  auto accepting = setup(longer, "dir");
  accepting.accept_data = true;
  std::vector<bool> told;
  accepting.command = [&, command = accepting.command](const TrialRun& run) {
    told.push_back(run.accept_data);
    return command(run);
  };
  EXPECT_EQ(SearchRunner(std::move(accepting)).run(), ExitCode::kOk);
  EXPECT_GE(told.size(), 2u);
  EXPECT_EQ(std::count(told.begin(), told.end(), false), 0);
  EXPECT_TRUE(log_has("dir", "goes on with data that have changed"));
  EXPECT_EQ(run(longer, "dir"), ExitCode::kOk);
}

TEST_F(SearchRunnerTest, StopsWhereATrialFindsOtherData) {
  const auto path = file("max_trials = 4\nslots = 1\n");
  run(path, "whole");
  fail(1, "other data\n");
  const auto error = testing::failure(ExitCode::kBadData, [&] { run(path, "dir"); });
  testing::expect_in("trial 1 cannot go on: the data have changed since then", error.message());
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
  const auto state = replayed("dir");
  ASSERT_EQ(state.trials().size(), 8u);
  EXPECT_EQ(state.trials()[4].point[0], "0.002");
  for (size_t i = 4; i < 8; ++i) EXPECT_GE(std::stod(*state.trials()[i].point[0]), 1e-3);
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk) << "a finished search has nothing left to do";
}

TEST_F(SearchRunnerTest, GoesOnInASpaceWithoutWhatItsPointsHad) {
  const std::string points = "slots = 1\npoints = [\"optim.lr=1e-4\"]\n";
  EXPECT_EQ(run(file("max_trials = 2\n" + points), "dir"), ExitCode::kOk);
  const std::string narrow =
      kHalving + "[[space]]\nkey = \"optim.lr\"\nname = \"log\"\nmin = 1e-3\nmax = 1e-2\n";
  EXPECT_EQ(run(file("max_trials = 4\n" + points, narrow), "dir"), ExitCode::kOk);
  EXPECT_EQ(run(file("max_trials = 5\n" + points, narrow), "dir"), ExitCode::kOk);
  EXPECT_EQ(lines_of("dir/trials.jsonl").size(), 5u);
}

TEST_F(SearchRunnerTest, TellsOfPointsThatItPassesOver) {
  auto one = setup(file("max_trials = 3\nslots = 1\npoints = [\"optim.lr=1e-3\", "
                        "\"optim.lr=0.001\", \"optim.lr=2e-3\"]\n"),
                   "dir");
  one.points_place = "space.toml:5:1: `search.points`";
  EXPECT_EQ(SearchRunner(std::move(one)).run(), ExitCode::kOk);
  EXPECT_TRUE(log_has("dir",
                      "space.toml:5:1: `search.points`: point 2 of 3 is passed over, "
                      "`optim.lr=0.001`: a trial has it already"));
  EXPECT_FALSE(log_has("dir", "point 3 of 3"));
}

TEST_F(SearchRunnerTest, StopsWhenItsConfigurationChangesMeanwhile) {
  const auto path = file("max_trials = 4\nslots = 1\n");
  EXPECT_EQ(run(path, "whole"), ExitCode::kOk);
  const std::string before = read_file(bench_.config);
  auto changing = setup(path, "dir");
  const auto command = changing.command;
  changing.command = [&](const TrialRun& run) {
    std::ofstream(bench_.config, std::ios::app) << "[optim]\nclip_norm = 0.25\n";
    return command(run);
  };
  const auto error =
      testing::failure(ExitCode::kUsage, [&] { SearchRunner(std::move(changing)).run(); });
  EXPECT_NE(error.message().find("my.toml was changed during the search"), std::string::npos)
      << error.message();
  EXPECT_NE(error.message().find("optim.clip_norm"), std::string::npos);
  std::ofstream(bench_.config) << before;
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  EXPECT_EQ(table("dir"), table("whole"));
}

TEST_F(SearchRunnerTest, BlamesATrainingForItsOwnWordsAlone) {
  fail(1, "69\nsilent137\nsilent137\n");
  EXPECT_EQ(run(file("max_trials = 3\nslots = 1\nmax_restarts = 2\n"), "dir"), ExitCode::kOk);
  const auto state = replayed("dir");
  EXPECT_EQ(state.trials()[1].failures, 3);
  EXPECT_EQ(state.trials()[1].why, "");
}

TEST_F(SearchRunnerTest, RefusesAFolderThatCannotBeWritten) {
  const auto path = file("max_trials = 2\n");
  std::ofstream(bench_.folder / "plain") << "x";
  testing::failure(ExitCode::kUsage, [&] { run(path, "plain"); });
  testing::failure(ExitCode::kIo, [&] { run(path, "plain/below"); });
}

TEST_F(SearchRunnerTest, GivesEachTrialGpusOfItsOwn) {
  const auto path = file("max_trials = 4\nslots = 4\ngpus_per_trial = 1\ndeterministic = true\n",
                         "[method]\nname = \"random\"\n" + kLearningRate);
  auto none = setup(path, "none");
  testing::failure(ExitCode::kUsage, [&] { SearchRunner(std::move(none)).run(); });
  auto two = setup(path, "dir");
  two.gpus = {"4", "7"};
  EXPECT_EQ(SearchRunner(std::move(two)).run(), ExitCode::kOk);
  std::set<std::string> seen;
  for (TrialId trial = 0; trial < 4; ++trial) {
    seen.insert(read_file(trial_directory(bench_.folder / "dir", trial) / "gpus"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"4\n", "7\n"}));
}

TEST_F(SearchRunnerTest, HasTheSameTableOnOtherHosts) {
  const std::string search = "max_trials = 8\ndeterministic = true\n";
  EXPECT_EQ(run(file(search + "slots = 3\n"), "here"), ExitCode::kOk);
  EXPECT_EQ(SearchRunner(with_hosts(file(search), "there", "a slots=2\nb gpus=1\n")).run(),
            ExitCode::kOk);
  EXPECT_EQ(table("there"), table("here"));
  const std::string log = read_file(hosts_ / "log");
  EXPECT_NE(log.find("a\n"), std::string::npos);
  EXPECT_NE(log.find("b\n"), std::string::npos);
}

TEST_F(SearchRunnerTest, TriesTheTrialsOfAFailedHostElsewhere) {
  const auto path = file("max_trials = 8\ndeterministic = true\nmax_restarts = 0\n");
  EXPECT_EQ(SearchRunner(with_hosts(path, "whole", "a\nb\n")).run(), ExitCode::kOk);
  fail_host("a", "255\n126\n75");
  EXPECT_EQ(SearchRunner(with_hosts(path, "some", "a\nb\n")).run(), ExitCode::kOk);
  EXPECT_EQ(table("some"), table("whole")) << "no trial is to blame";
  EXPECT_TRUE(
      log_has("some", "host a failed: connect to host a: no route; trial 0 is tried again"));
  fail_host("a", "down");
  EXPECT_EQ(SearchRunner(with_hosts(path, "one", "a\nb\n")).run(), ExitCode::kOk);
  EXPECT_EQ(table("one"), table("whole"));
  EXPECT_TRUE(log_has("one", "no further trial is tried on it"));
}

TEST_F(SearchRunnerTest, LeavesWhenNoHostIsLeftAndGoesOnLater) {
  const auto path = file("max_trials = 4\ndeterministic = true\n");
  EXPECT_EQ(SearchRunner(with_hosts(path, "whole", "a\nb\n")).run(), ExitCode::kOk);
  fail_host("a", "down");
  fail_host("b", "down");
  const auto error = testing::failure(
      ExitCode::kPeerLost, [&] { SearchRunner(with_hosts(path, "dir", "a\nb\n")).run(); });
  EXPECT_NE(error.message().find("no host is left for trials"), std::string::npos);
  // Two that end at the same time.
  testing::failure(ExitCode::kPeerLost,
                   [&] { SearchRunner(with_hosts(path, "two", "a slots=2\n")).run(); });
  fs::remove_all(hosts_);
  EXPECT_EQ(SearchRunner(with_hosts(path, "dir", "a\nb\n")).run(), ExitCode::kOk);
  EXPECT_EQ(table("dir"), table("whole"));
}

TEST_F(SearchRunnerTest, EndsAGridWithItsPoints) {
  const auto path = file("max_trials = 100\nslots = 2\n",
                         "[method]\nname = \"grid\"\n" + kLearningRate + "count = 3\n");
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  EXPECT_EQ(lines_of("dir/trials.jsonl").size(), 3u);
}

TEST_F(SearchRunnerTest, TakesEveryPointOfAGridUnlessItsBudgetIsSmallerWhichIsSaid) {
  const ScopedVariable quick("STAND_IN_SECONDS", "0");
  const std::string grid = "[method]\nname = \"grid\"\n" + kLearningRate + "count = 18\n";
  EXPECT_EQ(run(file("max_trials = 4\nslots = 2\n", grid), "dir"), ExitCode::kOk);
  EXPECT_EQ(lines_of("dir/trials.jsonl").size(), 4u);
  EXPECT_TRUE(log_has("dir", "warning: search.max_trials: the grid has 18 points, of which 4 are"));
  EXPECT_EQ(run(file("slots = 2\n", grid), "dir"), ExitCode::kOk);
  EXPECT_EQ(lines_of("dir/trials.jsonl").size(), 18u);
  EXPECT_TRUE(log_has("dir", "  the grid has 18 points"));
}

// The stand-in for trials wants a rate.
const std::string kOneRate =
    "[[space]]\nkey = \"optim.lr\"\nname = \"numbers\"\nvalues = [0.001]\n";

TEST_F(SearchRunnerTest, WarnsOfPointsOfAGridThatARuleRefuses) {
  const ScopedVariable quick("STAND_IN_SECONDS", "0");
  EXPECT_EQ(run(file("slots = 2\n", kHeadsGrid + kOneRate), "dir"), ExitCode::kOk);
  EXPECT_EQ(lines_of("dir/trials.jsonl").size(), 3u);
  EXPECT_TRUE(log_has("dir",
                      "warning: space: 3 of 6 points of the grid can be tried; 3 are refused, the "
                      "first is `model.d_model=64 model.encoder.num_heads=5 optim.lr=0.001`: "));
  EXPECT_TRUE(log_has("dir", "5 heads do not divide model.d_model = 64; take other values, or"));
  EXPECT_FALSE(log_has("dir", "search.max_trials"));
}

TEST_F(SearchRunnerTest, SaysWhyASpaceHasNoMorePoints) {
  const ScopedVariable quick("STAND_IN_SECONDS", "0");
  const std::string heads =
      "[[space]]\nkey = \"model.encoder.num_heads\"\nname = \"numbers\"\nvalues = [4, 5, 8]\n";
  const auto path =
      file("max_trials = 9\nslots = 1\n", "[method]\nname = \"random\"\n" + heads + kOneRate);
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  EXPECT_EQ(lines_of("dir/trials.jsonl").size(), 2u);
  EXPECT_TRUE(log_has("dir",
                      "the space has no more points; 1 is refused, "
                      "`model.encoder.num_heads=5 optim.lr=0.001`: `model.encoder.num_heads=5`: "));
}

TEST_F(SearchRunnerTest, NotesRefusedPointsInAJournalOfAnEarlierRelease) {
  const auto path = file("slots = 1\n", kHeadsGrid + kOneRate);
  const fs::path journal = journal_path(bench_.folder / "dir");
  const auto open = [&] { return SearchRunner(setup(path, "dir")).state().plan().refused.count; };
  EXPECT_EQ(open(), 3u);
  auto entries = read_journal(journal).entries;
  ASSERT_EQ(entries.size(), 1u);
  entries[0].erase("refused");
  fs::remove(journal);
  Journal(journal).append(entries[0]);
  EXPECT_EQ(open(), 3u);
  EXPECT_EQ(open(), 3u);
  EXPECT_EQ(read_journal(journal).entries.size(), 2u) << "noted once";
  EXPECT_FALSE(log_has("dir", "a changed file"));
}

TEST_F(SearchRunnerTest, SaysOnceThatATrialEndedBeforeItsLength) {
  const ScopedVariable early("STAND_IN_END", "20");
  EXPECT_EQ(run(file("max_trials = 4\nslots = 1\n"), "dir"), ExitCode::kOk);
  const auto state = replayed("dir");
  const auto best = state.best();
  ASSERT_TRUE(best);
  EXPECT_EQ(state.trials()[static_cast<size_t>(*best)].reports.back().until, 64);
  EXPECT_EQ(trial_json(state, state.trials()[static_cast<size_t>(*best)])["updates"], 20);
  const std::string said = "warning: trial " + std::to_string(*best) + " ended at update 20 of 32";
  const std::string log = read_file(bench_.folder / "dir/log.txt");
  const size_t first = log.find(said);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("trial " + std::to_string(*best) + " ended", first + said.size()),
            std::string::npos);
  EXPECT_NE(read_file(bench_.folder / "dir/best.toml").find("after 20 updates"), std::string::npos);
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

class SearchRunnerKillTest : public SearchRunnerTest, public ::testing::WithParamInterface<Kills> {
 protected:
  /// A trial that a killed search had just forked holds its lock until it is another program.
  ExitCode run_when_free(const std::string& path, const std::string& directory) {
    const auto end = std::chrono::steady_clock::now() + 5s;
    for (;;) {
      try {
        return run(path, directory);
      } catch (const Error& error) {
        const bool is_in_use = error.message().find("is in use") != std::string::npos;
        if (!is_in_use || std::chrono::steady_clock::now() > end) throw;
      }
      std::this_thread::sleep_for(10ms);
    }
  }
};

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
        return static_cast<int>(run_when_free(path, "killed"));
      } catch (const Error& error) {
        std::cerr << error.message() << "\n";
        return 99;
      }
    });
    // Later and later, so that the search gets on however slow the machine is.
    const auto time = std::chrono::milliseconds(20 + random.below(200) + 20 * i + 2 * i * i);
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

// At each of its writes in turn: journal, table, best.toml, page.
TEST_F(SearchRunnerTest, EndsWithTheSameTableAfterAKillOrAFullDiskAtAnyWrite) {
  const ScopedVariable quick("STAND_IN_SECONDS", "0");
  const auto path = file("max_trials = 2\nslots = 1\n");
  set_failpoints("none:eio");
  EXPECT_EQ(run(path, "whole"), ExitCode::kOk);
  const uint64_t passes = failpoint_passes();
  set_failpoints("");
  EXPECT_GT(passes, 20u);
  uint64_t number = 0;
  for (const std::string action : {"kill", "enospc"}) {
    for (uint64_t pass = 1; pass <= passes; pass += 9, ++number) {
      const std::string directory = action + std::to_string(pass);
      KilledSearch one([&] {
        set_failpoints("*:" + action + ":" + std::to_string(pass + number % 9));
        try {
          return static_cast<int>(run(path, directory));
        } catch (const Error& error) {
          return static_cast<int>(error.code());
        }
      });
      const auto code = one.kill_after(60s, SIGKILL);
      if (action == "enospc" && code) {
        EXPECT_TRUE(*code == 74 || *code == 0) << directory << ": " << *code;
      }
      ASSERT_EQ(run(path, directory), ExitCode::kOk) << directory;
      ASSERT_EQ(table(directory), table("whole")) << directory;
      fs::remove_all(bench_.folder / directory);
    }
  }
}

TEST_F(SearchRunnerTest, TakesTrialsOnOtherHostsWithItWhenItIsKilled) {
  const ScopedVariable slow("STAND_IN_SECONDS", "30");
  const auto path = file("max_trials = 2\n");
  const auto there = with_hosts(path, "dir", "a\nb\n");
  KilledSearch search([&] { return static_cast<int>(SearchRunner(there).run()); });
  const fs::path lock = bench_.folder / "dir/trials/1/.lock";
  for (int i = 0; i < 500 && !FileLock::is_held(lock); ++i) std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(FileLock::is_held(lock));
  EXPECT_FALSE(search.kill_after(1ms, SIGKILL));
  for (int i = 0; i < 500 && FileLock::is_held(lock); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(FileLock::is_held(lock));
}

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
