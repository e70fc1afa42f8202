#include "search/trial_process.h"

#include <gtest/gtest.h>

#include "tests/base/temp_dir.h"

namespace stretto::search {
namespace {

using TrainWords = std::vector<std::string>;

TrialRun run_of(int64_t threads, const std::vector<std::string>& gpus) {
  return {.config = "/my.toml",
          .overrides = {"train.max_steps=64", "optim.lr=0.001"},
          .directory = "/search/trials/3",
          .until = 16,
          .threads = threads,
          .gpus = gpus};
}

/// The threads of each process, and how many processes there are.
std::pair<std::string, std::string> threads_and_processes(int64_t threads,
                                                          const std::vector<std::string>& gpus) {
  std::pair<std::string, std::string> found;
  const auto words = train_words("stretto", run_of(threads, gpus));
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("run.threads=")) found.first += words[i].substr(12);
    if (words[i] == "--processes") found.second += words.at(i + 1);
  }
  return found;
}

// The threads stand behind the overrides: the last value of a key counts.
TEST(TrainWords, AreAWholeCommandWithTheThreadsOfTheSlots) {
  EXPECT_EQ(train_words("/bin/stretto", run_of(4, {})),
            (TrainWords{"/bin/stretto", "train", "/my.toml", "train.max_steps=64", "optim.lr=0.001",
                        "run.threads=4", "--run", "/search/trials/3", "--until", "16", "--quiet"}));
}

TEST(TrainWords, HaveAProcessForEachOfSeveralGpus) {
  EXPECT_EQ(train_words("/bin/stretto", run_of(4, {"2", "5"})),
            (TrainWords{"/bin/stretto", "train", "/my.toml", "train.max_steps=64", "optim.lr=0.001",
                        "run.threads=2", "--run", "/search/trials/3", "--until", "16", "--quiet",
                        "--processes", "2"}));
}

TEST(TrainWords, PassOnThatChangedDataAreAccepted) {
  auto run = run_of(4, {});
  run.accept_data = true;
  EXPECT_EQ(train_words("/bin/stretto", run).back(), "--accept-data");
}

TEST(TrainWords, ShareTheThreadsOutToProcesses) {
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(threads_and_processes(1, {}), (Pair{"1", ""}));
  EXPECT_EQ(threads_and_processes(6, {"0"}), (Pair{"6", ""})) << "one GPU needs no launcher";
  EXPECT_EQ(threads_and_processes(7, {"0", "1", "2"}), (Pair{"2", "3"}));
  EXPECT_EQ(threads_and_processes(1, {"0", "1", "2", "3"}), (Pair{"1", "4"})) << "one at least";
}

// By hand: of seven steps two were left out, the first before the validation. Losses that are not
// finite are null.
TEST(RunFolderOfATrial, CountsUpdatesWithoutThoseThatWereLeftOut) {
  const testing::TempDir run;
  EXPECT_FALSE(last_validation(run.path(), "nll"));
  EXPECT_EQ(made_so_far(run.path()).updates, 0);
  const std::string train = R"("epoch":1,"event":"train","loss":)";
  run.write("metrics.jsonl", R"({"step":3,)" + train + "2.5,\"seconds\":3}\n" + R"({"step":4,)" +
                                 train + "null,\"skipped\":true}\n" +
                                 R"({"step":5,"epoch":1,"event":"valid","nll":2,"seconds":5})" +
                                 "\n" + R"({"step":7,)" + train +
                                 "null,\"seconds\":7,\"skipped\":true}\n");
  const auto last = last_validation(run.path(), "nll");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->updates, 4);
  EXPECT_EQ(last->value, 2.0);
  EXPECT_EQ(last->seconds, 5.0);
  EXPECT_EQ(made_so_far(run.path()).updates, 5);
  EXPECT_EQ(made_so_far(run.path()).seconds, 7.0);
}

}  // namespace
}  // namespace stretto::search
