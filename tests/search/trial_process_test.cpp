#include "search/trial_process.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stretto::search
