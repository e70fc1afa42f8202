// What a search keeps on the disk may disagree: somebody put back, edited, emptied or lost a part
// of it. Each way is repaired with a word, or refused with its place and a remedy; none changes the
// table silently.
//
//     what                                              what becomes of it
//     no journal, or an empty one; no trials            the search begins
//     no journal, or an empty one, beside trials        refused (65)
//     the journal's first line is bad                   refused (65), journal_test
//     a line before its last one is bad                 refused (65), journal_test
//     its last line is bad                              left out, decided anew
//     lines are whole, but do not follow                refused (65), search_state_test
//     it is older than its trials                       each rung takes the value of its own update
//     the same, and a trial has no checkpoints          the trial is trained again
//     a trial's folder is older than the journal        trained on from there
//     a trial's folder is gone                          trained again
//     it is of another trial, or was edited so          refused (2)
//     its metrics.jsonl lacks the value of a rung       trained again
//     its checkpoints, run.json, config.toml or         trained again
//       tokenizer are damaged
//     its newest checkpoint alone is damaged            training takes the one before, exactly
//     the search file or the configuration changed      allowed or refused (2), search_plan_test
//     trials.jsonl, best.toml or search.html differ     written anew from the journal
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/base/failure.h"
#include "tests/search/runner_bench.h"

namespace stretto::search {
namespace {

namespace fs = std::filesystem;
using testing::expect_in;

class SearchDisagreement : public RunnerBench {
 protected:
  void SetUp() override {
    RunnerBench::SetUp();
    if (IsSkipped()) return;
    path_ = file("max_trials = 4\nslots = 1\n");
    ASSERT_EQ(run(path_, "whole"), ExitCode::kOk);
    best_ = *replayed("whole").best();
  }

  fs::path trial_of(const std::string& directory, TrialId trial) const {
    return trial_directory(bench_.folder / directory, trial);
  }

  /// A copy of the finished search whose journal has the first `lines` lines alone.
  void copy_with_older_journal(const std::string& directory, size_t lines) {
    fs::copy(bench_.folder / "whole", bench_.folder / directory, fs::copy_options::recursive);
    std::string journal;
    for (const auto& line : lines_of("whole/journal")) {
      if (lines-- == 0) break;
      journal += line + "\n";
    }
    std::ofstream(journal_path(bench_.folder / directory)) << journal;
  }

  /// How many lines the journal has up to the best trial's last training, begun and not ended.
  size_t lines_to_the_last_training() {
    const auto lines = lines_of("whole/journal");
    for (size_t i = lines.size(); i-- > 0;) {
      if (lines[i].find("\"until\":64") != std::string::npos &&
          lines[i].find("\"event\":\"run\"") != std::string::npos) {
        return i + 1;
      }
    }
    return 0;
  }

  void expect_same_outcome(const std::string& directory) {
    EXPECT_EQ(run(path_, directory), ExitCode::kOk) << directory;
    EXPECT_EQ(table(directory), table("whole")) << directory;
    EXPECT_EQ(with_checkpoints(directory), with_checkpoints("whole")) << directory;
  }

  Error refusal(ExitCode code, const std::string& directory) {
    return testing::failure(code, [&] { run(path_, directory); });
  }

  const testing::ScopedVariable quick_{"STAND_IN_SECONDS", "0"};
  std::string path_;
  TrialId best_ = 0;
};

TEST_F(SearchDisagreement, AJournalOlderThanItsTrialsEndsWithTheSameTable) {
  const size_t all = lines_of("whole/journal").size();
  ASSERT_GT(all, 12u);
  for (const size_t lines : {size_t{1}, size_t{4}, size_t{7}, all - 2}) {
    const std::string directory = "older" + std::to_string(lines);
    copy_with_older_journal(directory, lines);
    expect_same_outcome(directory);
  }
  // The best trial keeps its checkpoints, which are those of 64 updates.
  EXPECT_TRUE(log_has("older1", "warning: trial " + std::to_string(best_) +
                                    " has made 64 updates, more than the journal knows of; it is "
                                    "compared by its value after 16\n"));
}

TEST_F(SearchDisagreement, ATrialAheadWithoutTheValueOfARungIsTrainedAgain) {
  copy_with_older_journal("dir", 1);
  const fs::path metrics = trial_of("dir", best_) / "metrics.jsonl";
  const auto lines = split(trim(read_file(metrics)), '\n');
  ASSERT_EQ(lines.size(), 3u) << "the test is stale";
  std::ofstream(metrics) << lines[1] << "\n" << lines[2] << "\n";
  expect_same_outcome("dir");
  EXPECT_TRUE(log_has("dir", "warning: trial " + std::to_string(best_) +
                                 " is trained again from its start: its metrics.jsonl has no "
                                 "validation after 16 updates"));
}

TEST_F(SearchDisagreement, EmptiedMetricsOfATrialThatReportsNextAreNoFailure) {
  copy_with_older_journal("dir", lines_to_the_last_training());
  std::ofstream(trial_of("dir", best_) / "metrics.jsonl") << "";
  expect_same_outcome("dir");
  EXPECT_TRUE(log_has("dir", "is trained again from its start"));
}

TEST_F(SearchDisagreement, TrialsWithoutAJournalAreRefused) {
  copy_with_older_journal("none", 0);
  auto error = refusal(ExitCode::kBadData, "none");
  expect_in("none/journal: is empty, but ", error.what());
  expect_in("none/trials holds 4 trials", error.what());
  expect_in("put the journal back from a copy", error.advice());
  fs::remove(journal_path(bench_.folder / "none"));
  error = refusal(ExitCode::kBadData, "none");
  expect_in("none/journal: is missing, but ", error.what());
  EXPECT_FALSE(fs::exists(journal_path(bench_.folder / "none")));
  fs::remove_all(bench_.folder / "none/trials");
  expect_same_outcome("none");
}

TEST_F(SearchDisagreement, AnEmptyJournalWithoutTrialsBegins) {
  fs::create_directories(bench_.folder / "dir/trials");
  std::ofstream(journal_path(bench_.folder / "dir")) << "";
  expect_same_outcome("dir");
}

TEST_F(SearchDisagreement, ADamagedLastLineIsDecidedAnew) {
  const auto lines = lines_of("whole/journal");
  copy_with_older_journal("dir", lines.size() - 1);
  std::string last = lines.back();
  last[last.find("\"value\":") + 8] ^= 1;
  std::ofstream(journal_path(bench_.folder / "dir"), std::ios::app) << last << "\n";
  expect_same_outcome("dir");
  EXPECT_TRUE(log_has("dir", "journal: the last line was cut short or damaged, and is left out"));
}

// The run of 64 updates is the one whose damage matters: its training begins where it ended.
TEST_F(SearchDisagreement, ATrialWhoseOnlyCheckpointIsDamagedIsTrainedAgain) {
  copy_with_older_journal("dir", lines_to_the_last_training());
  const fs::path trial = trial_of("dir", best_);
  fs::create_directories(trial / "checkpoints/step_00000032");
  std::ofstream(trial / "checkpoints/step_00000032/manifest.json") << "{";
  fail(best_, "65\n");
  expect_same_outcome("dir");
  EXPECT_TRUE(log_has(
      "dir", "warning: trial " + std::to_string(best_) + " is trained again from its start: "));
  EXPECT_TRUE(log_has("dir", "checkpoints: none of the 1 checkpoint is valid"));
}

// Once: what comes to grief in a run that began anew has another reason.
TEST_F(SearchDisagreement, ATrialThatFailsAgainWithoutItsDamageHasFailed) {
  for (const std::string damage : {"{", "none"}) {
    const std::string directory = damage == "{" ? "twice" : "sound";
    copy_with_older_journal(directory, lines_to_the_last_training());
    if (damage == "{") std::ofstream(trial_of(directory, best_) / "run.json") << damage;
    fail(best_, damage == "{" ? "65\n65\n" : "65\n");
    EXPECT_EQ(run(path_, directory), ExitCode::kOk);
    const auto state = replayed(directory);
    EXPECT_EQ(state.state_of(best_), TrialState::kFailed) << directory;
    EXPECT_EQ(state.trials()[static_cast<size_t>(best_)].failures, 1) << directory;
    EXPECT_EQ(log_has(directory, "is trained again"), damage == "{");
  }
}

TEST_F(SearchDisagreement, AFolderOfAnotherTrialIsRefused) {
  copy_with_older_journal("dir", lines_to_the_last_training());
  const auto state = replayed("dir");
  const TrialId other = best_ == 0 ? 1 : 0;
  const auto& point = state.trials()[static_cast<size_t>(other)].point;
  const fs::path trial = trial_of("dir", best_);
  std::ofstream(trial / "config.toml") << experiment_of(state.plan(), point).resolved_toml;
  const auto error = refusal(ExitCode::kUsage, "dir");
  expect_in("trials/" + std::to_string(best_) + " holds a run of another configuration",
            error.what());
  expect_in("optim.lr", error.what());
  expect_in("move the folder away", error.advice());
  fs::rename(trial, bench_.folder / "away");
  expect_same_outcome("dir");
}

TEST_F(SearchDisagreement, AFolderThatIsGoneOrOlderIsTrainedOn) {
  copy_with_older_journal("gone", lines_to_the_last_training());
  fs::remove_all(trial_of("gone", best_));
  expect_same_outcome("gone");
  copy_with_older_journal("older", lines_to_the_last_training());
  const fs::path trial = trial_of("older", best_);
  std::ofstream(trial / "checkpoints/state") << "16";
  std::ofstream(trial / "metrics.jsonl")
      << lines_of("whole/trials/" + std::to_string(best_) + "/metrics.jsonl")[0] << "\n";
  expect_same_outcome("older");
}

TEST_F(SearchDisagreement, TablesAreWrittenAnew) {
  fs::copy(bench_.folder / "whole", bench_.folder / "dir", fs::copy_options::recursive);
  for (const char* name : {"trials.jsonl", "best.toml", "search.html"}) {
    std::ofstream(bench_.folder / "dir" / name) << "edited\n";
  }
  expect_same_outcome("dir");
  EXPECT_EQ(read_file(bench_.folder / "dir/best.toml"),
            read_file(bench_.folder / "whole/best.toml"));
  expect_in("<html", read_file(bench_.folder / "dir/search.html"));
}

}  // namespace
}  // namespace stretto::search
