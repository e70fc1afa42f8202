// Searches by each method, from end to end: what the runner trains, what it keeps, and what
// `stretto search explain` and search.html say. tests/search/search_runner_test.cpp has the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "search/explain.h"
#include "tests/search/runner_bench.h"

namespace stretto::search {
namespace {

using testing::expect_in;
using testing::kLearningRate;

/// A trial of the stand-in has the loss `distance + 10 / updates`, where its rate is 10 to the
/// power of -3 - distance.
class SearchMethods : public RunnerBench {
 protected:
  /// Trials of 40 updates, one after the other, at these distances.
  std::string search_of(const std::vector<double>& distances, const std::string& method) {
    std::vector<std::string> points;
    for (const double distance : distances) {
      char rate[32];
      std::snprintf(rate, sizeof rate, "%.6g", std::pow(10, -3 - distance));
      points.push_back(std::string("\"optim.lr=") + rate + "\"");
    }
    return file("overrides = [\"train.max_steps=40\"]\nslots = 1\nmax_trials = " +
                    std::to_string(distances.size()) + "\npoints = [" + join(points, ", ") + "]\n",
                method + kLearningRate);
  }

  /// explain() without the points at the ends of its lines.
  static std::string explained(const SearchState& state) {
    std::string text;
    for (const auto& line : split(explain(state), '\n')) {
      std::string head = line.substr(0, line.find("optim.lr="));
      while (head.ends_with(' ')) head.pop_back();
      text += head + "\n";
    }
    return text;
  }

  static std::vector<int64_t> brackets_of(const SearchState& state) {
    std::vector<int64_t> brackets;
    for (const auto& trial : state.trials()) {
      brackets.push_back(trial_json(state, trial)["bracket"].get<int64_t>());
    }
    return brackets;
  }

  std::string page(const std::string& directory) {
    return read_file(bench_.folder / directory / "search.html");
  }

  const testing::ScopedVariable quick_{"STAND_IN_SECONDS", "0"};
};

std::string asha_of(const std::string& mode) {
  return "[method]\nname = \"asha\"\nmode = \"" + mode + "\"\ndivisor = 2\nmax_rungs = 3\n";
}

const std::string kStopByMedian =
    "[method]\nname = \"random\"\n[method.stop]\nname = \"median\"\ncheck_every = 20\n"
    "min_trials = 2\n";

// By hand: R = 3, and brackets of 3 and 2 rungs with weights 4/3 and 1: of 8 trials 4.6 and 3.4,
// and the one left goes to the first.
TEST_F(SearchMethods, StandardSharesItsTrialsOutToTwoBrackets) {
  const auto path = search_of({0.5, 0.6, 0.2, 0.3, 0.9, 0.4, 0.7, 0.8}, asha_of("standard"));
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  const auto state = replayed("dir");
  EXPECT_EQ(explained(state),
            R"(asha by nll, less is better; 8 of 8 trials begun, 0 without a result yet

bracket 0: 5 trials, rungs at 10, 20, 40 updates
  rung at 10 updates: 5 results, the best 2 of 5 go on (one of 2)
    trial 2     1.2000      went on
    trial 5     1.4000      went on
    ---- cut-off 1.4000
    trial 0     1.5000      stopped
    trial 7     1.8000      stopped
    trial 4     1.9000      stopped
  rung at 20 updates: 2 results, the best 1 of 2 go on (one of 2)
    trial 2     0.7000      went on
    ---- cut-off 0.7000
    trial 5     0.9000      stopped
  rung at 40 updates: 1 result
    trial 2     0.4500      the best

bracket 1: 3 trials, rungs at 20, 40 updates
  rung at 20 updates: 3 results, the best 1 of 3 go on (one of 2)
    trial 3     0.8000      went on
    ---- cut-off 0.8000
    trial 1     1.1000      stopped
    trial 6     1.2000      stopped
  rung at 40 updates: 1 result
    trial 3     0.5500

)");
  EXPECT_EQ(brackets_of(state), (std::vector<int64_t>{0, 1, 0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(with_checkpoints("dir"), (std::vector<TrialId>{2}));
  EXPECT_TRUE(log_has("dir", "  bracket 1: 3 trials, rungs at 20, 40 updates"));
  EXPECT_TRUE(log_has("dir", "trial 6: nll 1.2000 at 20, number 3 of 3 there"));
  expect_in("<tr><td>0</td><td>10</td><td>5</td><td>2</td><td>2</td><td>1.4000</td></tr>",
            page("dir"));
  expect_in("<tr><td>1</td><td>20</td><td>3</td><td>1</td><td>1</td><td>0.8000</td></tr>",
            page("dir"));
  EXPECT_EQ(table("dir").find("running"), std::string::npos);
}

// By hand: brackets of 3, 2 and 1 rungs with weights 4/3, 1 and 1: of 8 trials 3.2, 2.4 and 2.4,
// and the one left goes to the first.
TEST_F(SearchMethods, ConservativeTrainsSomeTrialsToTheirEndInAnyCase) {
  const auto path = search_of({0.5, 0.6, 0.1, 0.2, 0.9, 0.3, 0.7, 0.4}, asha_of("conservative"));
  EXPECT_EQ(run(path, "dir"), ExitCode::kOk);
  const auto state = replayed("dir");
  EXPECT_EQ(explained(state),
            R"(asha by nll, less is better; 8 of 8 trials begun, 0 without a result yet

bracket 0: 4 trials, rungs at 10, 20, 40 updates
  rung at 10 updates: 4 results, the best 2 of 4 go on (one of 2)
    trial 3     1.2000      went on
    trial 7     1.4000      went on
    ---- cut-off 1.4000
    trial 0     1.5000      stopped
    trial 4     1.9000      stopped
  rung at 20 updates: 2 results, the best 1 of 2 go on (one of 2)
    trial 3     0.7000      went on
    ---- cut-off 0.7000
    trial 7     0.9000      stopped
  rung at 40 updates: 1 result
    trial 3     0.4500

bracket 1: 2 trials, rungs at 20, 40 updates
  rung at 20 updates: 2 results, the best 1 of 2 go on (one of 2)
    trial 5     0.8000      went on
    ---- cut-off 0.8000
    trial 1     1.1000      stopped
  rung at 40 updates: 1 result
    trial 5     0.5500

bracket 2: 2 trials, rungs at 40 updates
  rung at 40 updates: 2 results
    trial 2     0.3500      the best
    trial 6     0.9500

)");
  EXPECT_EQ(brackets_of(state), (std::vector<int64_t>{0, 1, 2, 0, 0, 1, 2, 0}));
  EXPECT_EQ(with_checkpoints("dir"), (std::vector<TrialId>{2}));
  expect_in("<tr><td>2</td><td>40</td><td>2</td><td>–</td><td>–</td><td>–</td></tr>", page("dir"));
}

// By hand, looks at 20 and 40 updates, two others needed. Nobody judges trials 0 and 1. Trial 2 has
// 1.5 at 20, and the means of the others up to there are 0.5 and 1: it ends. Trial 3 has 0.7, and
// the median of three is 1.
const std::vector<double> kDistances{0, 0.5, 1, 0.2};

TEST_F(SearchMethods, MedianStopEndsWhoIsWorseThanTheOthers) {
  EXPECT_EQ(run(search_of(kDistances, kStopByMedian), "dir"), ExitCode::kOk);
  const auto state = replayed("dir");
  EXPECT_EQ(explained(state),
            R"(random by nll, less is better; 4 of 4 trials begun, 0 without a result yet

4 trials of 40 updates, each compared with the median every 20 updates
  rung at 20 updates: 4 results, best score so far against the median of the others' means (from 2 other trials and 0 updates on)
    trial 0     0.5000      went on
    trial 3     0.7000      went on
    ---- cut-off 0.7500
    trial 1     1.0000      went on
    trial 2     1.5000      stopped
  rung at 40 updates: 3 results
    trial 0     0.2500      the best
    trial 3     0.4500
    trial 1     0.7500

)");
  EXPECT_EQ(with_checkpoints("dir"), (std::vector<TrialId>{0}));
  EXPECT_TRUE(log_has("dir", "  4 trials of 40 updates, each compared with the median every 20"));
  EXPECT_TRUE(log_has("dir", "trial 2: nll 1.5000 at 20, number 3 of 3 there"));
  EXPECT_FALSE(log_has("dir", "trial 2 goes on"));
  expect_in("<tr><td>0</td><td>20</td><td>4</td><td>3</td><td>3</td><td>0.7500</td></tr>",
            page("dir"));
  expect_in("<td>stopped</td><td>20</td><td>1.5000</td>", page("dir"));
}

TEST_F(SearchMethods, MedianStopShowsATrialThatTrainsAmongThoseThatWentOn) {
  auto watched = setup(search_of(kDistances, kStopByMedian), "dir");
  std::string last;
  watched.command = [&, command = watched.command](const TrialRun& run) {
    if (run.directory.filename() == "3" && run.until == 40) last = explained(replayed("dir"));
    return command(run);
  };
  EXPECT_EQ(SearchRunner(std::move(watched)).run(), ExitCode::kOk);
  expect_in("4 of 4 trials begun, 1 without a result yet", last);
  expect_in("    trial 3     0.7000      went on\n", last);
  expect_in("    trial 2     1.5000      stopped\n", last);
}

TEST_F(SearchMethods, MedianStopOfAGridGoesOnWithMoreTrials) {
  const std::string grid =
      "[method]\nname = \"grid\"\n[method.stop]\nname = \"median\"\ncheck_every = 20\n"
      "min_trials = 1\n" +
      kLearningRate + "count = 5\n";
  const std::string steps = "overrides = [\"train.max_steps=40\"]\nslots = 1\n";
  EXPECT_EQ(run(file(steps, grid), "whole"), ExitCode::kOk);
  EXPECT_EQ(run(file(steps + "max_trials = 2\n", grid), "dir"), ExitCode::kOk);
  EXPECT_EQ(run(file(steps, grid), "dir"), ExitCode::kOk);
  EXPECT_EQ(table("dir"), table("whole"));
  const auto text = explained(replayed("dir"));
  expect_in("grid by nll, less is better; 5 of 5 points begun", text);
  expect_in("each compared with the median every 20 updates", text);
  expect_in("    ---- cut-off ", text);
  EXPECT_EQ(replayed("dir").state_of(4), TrialState::kStopped) << "as far from 1e-3 as the first";
}

TEST_F(SearchMethods, MedianStopTriesAFailedTrainingAgainAndEndsAFailedTrial) {
  fail(0, "69\n");
  fail(3, "70\n");
  EXPECT_EQ(run(search_of(kDistances, kStopByMedian), "dir"), ExitCode::kOk);
  const auto text = explained(replayed("dir"));
  expect_in(R"(    trial 0     0.5000      went on
    ---- cut-off 0.7500
    trial 1     1.0000      went on
    trial 2     1.5000      stopped
    trial 3     failed      failed: this trial fails as it was told
)",
            text);
  expect_in("    trial 0     0.2500      the best\n", text);
  expect_in("<td><a href=\"trials/3/output.txt\">3</a></td><td>failed</td>", page("dir"));
  EXPECT_TRUE(std::filesystem::exists(bench_.folder / "dir/trials/3/output.txt"));
}

TEST_F(SearchMethods, EachTrialIsToldItsSlotsAndItsGpus) {
  std::vector<std::string> words;
  const auto record = [&](RunnerSetup one, std::vector<std::string> gpus) {
    words.clear();
    one.gpus = std::move(gpus);
    one.command = [&, command = one.command](const TrialRun& run) {
      for (const auto& word : train_words("stretto", run)) words.push_back(word);
      return command(run);
    };
    EXPECT_EQ(SearchRunner(std::move(one)).run(), ExitCode::kOk);
  };
  const auto count = [&](const std::string& word) {
    return std::count(words.begin(), words.end(), word);
  };
  const std::string random = "[method]\nname = \"random\"\n" + kLearningRate;
  record(setup(file("max_trials = 2\nslots = 6\nslots_per_trial = 3\n", random), "slots"), {});
  EXPECT_EQ(count("run.threads=3"), 2);
  EXPECT_EQ(count("--processes"), 0);
  record(setup(file("max_trials = 2\nslots = 8\nslots_per_trial = 4\ngpus_per_trial = 2\n", random),
               "gpus"),
         {"0", "1", "4", "7"});
  EXPECT_EQ(count("run.threads=2"), 2);
  EXPECT_EQ(count("--processes"), 2);
  std::set<std::string> seen;
  for (TrialId trial = 0; trial < 2; ++trial) {
    seen.insert(read_file(trial_directory(bench_.folder / "gpus", trial) / "gpus"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"0,1\n", "4,7\n"}));
}

}  // namespace
}  // namespace stretto::search
