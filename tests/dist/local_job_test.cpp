// The words of mpirun; tests/dist/faults_test.py has whole jobs.
#include "dist/local_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace stretto::dist {
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
  EXPECT_FALSE(has(words, "--allow-run-as-root"));
  EXPECT_FALSE(has(words, "btl_vader_single_copy_mechanism"));
  const auto root =
      mpirun_words(job, {.mpirun = "m", .folder = "/f", .root = true, .reads_other_memory = false});
  EXPECT_TRUE(has(root, "--allow-run-as-root"));
  EXPECT_TRUE(has(root, "btl_vader_single_copy_mechanism"));
}

}  // namespace
}  // namespace stretto::dist
