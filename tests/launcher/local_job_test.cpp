// The words of mpirun; tests/distributed/faults_test.py has whole jobs.
#include "launcher/local_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace stretto::launcher {
namespace {

TEST(LocalJob, MpirunGetsWhatMakesItWorkOnOneMachine) {
  const LocalJob job{.command = {"/bin/stretto", "train", "a b.toml"}, .processes = 4};
  const auto has = [](const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const auto words = mpirun_words(job, {.mpirun = "/bin/mpirun", .folder = "/f"});
  EXPECT_EQ(words.front(), "/bin/mpirun");
  EXPECT_EQ((std::vector<std::string>{words.end() - 3, words.end()}), job.command);
  for (const char* word : {"4", "--oversubscribe", "none", "self,vader", "STRETTO_JOB_FOLDER=/f"}) {
    EXPECT_TRUE(has(words, word)) << word;
  }
  const auto has_pair = [&](const std::string& name, const std::string& value) {
    const auto at = std::find(words.begin(), words.end(), name);
    return at != words.end() && at + 1 != words.end() && at[1] == value;
  };
  EXPECT_TRUE(has_pair("--host", "localhost:4")) << "an allocation may have other machines";
  EXPECT_TRUE(has_pair("orte_tmpdir_base", "/f"));
  EXPECT_FALSE(has(words, "btl_vader_backing_directory"));
  EXPECT_FALSE(has(words, "--allow-run-as-root"));
  EXPECT_FALSE(has(words, "btl_vader_single_copy_mechanism"));
  const auto root =
      mpirun_words(job, {.mpirun = "m", .folder = "/f", .root = true, .reads_other_memory = false});
  EXPECT_TRUE(has(root, "--allow-run-as-root"));
  EXPECT_TRUE(has(root, "btl_vader_single_copy_mechanism"));
}

TEST(LocalJob, MpirunSharesMemoryInTheFolderOfTheJob) {
  const auto words =
      mpirun_words({.command = {"p"}}, {.mpirun = "m", .folder = "/f", .shared = "/dev/shm/j"});
  const auto at = std::find(words.begin(), words.end(), "btl_vader_backing_directory");
  ASSERT_NE(at, words.end());
  EXPECT_EQ(at[1], "/dev/shm/j");
}

TEST(LocalJob, TheGuardIsForMpirunAndNotForItsRanks) {
  const LocalJob job{.command = {"p"}};
  MpirunFacts facts{.mpirun = "m", .folder = "/f"};
  EXPECT_TRUE(mpirun_variables(facts).empty());
  facts.guard = "/lib/guard.so";
  const auto preload_of_ranks = [&] {
    const auto words = mpirun_words(job, facts);
    const auto at = std::find_if(words.begin(), words.end(),
                                 [](const auto& word) { return word.starts_with("LD_PRELOAD="); });
    return at == words.end() ? "none" : *at;
  };
  EXPECT_EQ(mpirun_variables(facts), std::vector<std::string>{"LD_PRELOAD=/lib/guard.so"});
  EXPECT_EQ(preload_of_ranks(), "LD_PRELOAD=");
  facts.preloaded = "/lib/jemalloc.so";
  EXPECT_EQ(mpirun_variables(facts),
            std::vector<std::string>{"LD_PRELOAD=/lib/guard.so:/lib/jemalloc.so"});
  EXPECT_EQ(preload_of_ranks(), "LD_PRELOAD=/lib/jemalloc.so");
}

TEST(LocalJob, RanksIgnoreHangupsWhenTheLauncherDoes) {
  MpirunFacts facts{.mpirun = "m", .folder = "/f"};
  const auto has_nohup = [&] {
    const auto words = mpirun_words({.command = {"p"}}, facts);
    return std::find(words.begin(), words.end(), "STRETTO_NOHUP=1") != words.end();
  };
  EXPECT_FALSE(has_nohup());
  facts.ignores_hangup = true;
  EXPECT_TRUE(has_nohup());
}

}  // namespace
}  // namespace stretto::launcher
