#include "seeds/run_scores.h"

#include <gtest/gtest.h>

#include "tests/base/temp_dir.h"

namespace stretto::seeds {
namespace {

const BestBy kByBleu{.name = "bleu", .higher_is_better = true};

TEST(RunScores, HaveTheBestAndTheLastValidation) {
  const testing::TempDir folder;
  folder.write("metrics.jsonl",
               "{\"step\":0,\"event\":\"valid\",\"loss\":9,\"nll\":9,\"seconds\":1,\"bleu\":99}\n"
               "{\"step\":10,\"event\":\"train\",\"loss\":1,\"seconds\":2}\n"
               "{\"step\":10,\"event\":\"valid\",\"loss\":4.5,\"nll\":4.25,\"target_tokens\":100,"
               "\"seconds\":3,\"bleu\":20}\n"
               "{\"step\":20,\"event\":\"valid\",\"loss\":4,\"nll\":4,\"target_tokens\":100,"
               "\"seconds\":4,\"bleu\":20}\n"
               "{\"step\":30,\"event\":\"valid\",\"loss\":3.5,\"nll\":3.5,\"target_tokens\":100,"
               "\"seconds\":5,\"bleu\":null}\n"
               "{\"step\":30,\"event\":\"end\",\"seconds\":6.5}\n");
  const auto run = read_run_scores(folder.path(), kByBleu);
  ASSERT_TRUE(run.best && run.last);
  EXPECT_EQ(run.best->step, 10) << "the first of two that are equal, and never step 0";
  EXPECT_EQ(run.best->number("nll"), 4.25);
  EXPECT_EQ(run.best->number("target_tokens"), std::nullopt) << "a count is no score";
  EXPECT_EQ(run.last->step, 30);
  EXPECT_EQ(run.last->number("bleu"), std::nullopt);
  EXPECT_EQ(run.seconds, 6.5);
  EXPECT_EQ(read_run_scores(folder.path(), {.name = "nll"}).best->step, 30);
}

TEST(RunScores, TheBestIsOneOfThoseThatWerePrunedTheFurthest) {
  const testing::TempDir folder;
  folder.write("metrics.jsonl",
               "{\"step\":10,\"event\":\"valid\",\"loss\":1,\"bleu\":30}\n"
               "{\"step\":20,\"event\":\"valid\",\"loss\":3,\"bleu\":20,\"sparsity\":0.5}\n"
               "{\"step\":30,\"event\":\"valid\",\"loss\":2,\"bleu\":10,\"sparsity\":0.9}\n");
  EXPECT_EQ(read_run_scores(folder.path(), kByBleu).best->step, 30);
}

TEST(RunScores, FindAScoreThatHappensToBeWhole) {
  const testing::TempDir folder;
  folder.write("metrics.jsonl",
               "{\"step\":1,\"event\":\"valid\",\"loss\":1.5,\"nll\":1.5}\n"
               "{\"step\":2,\"event\":\"valid\",\"loss\":1,\"nll\":1}\n");
  const auto run = read_run_scores(folder.path(), {.name = "nll"});
  EXPECT_EQ(run.best->step, 2);
  EXPECT_EQ(run.best->number("nll"), 1.0);
}

TEST(RunScores, AreEmptyWithoutMetrics) {
  const testing::TempDir folder;
  const auto run = read_run_scores(folder / "nowhere", kByBleu);
  EXPECT_FALSE(run.best || run.last || run.seconds);
  folder.write("metrics.jsonl", "no json\n{\"step\":3,\"event\":\"valid\",\"loss\":nonsense}\n");
  EXPECT_FALSE(read_run_scores(folder.path(), kByBleu).last);
}

}  // namespace
}  // namespace stretto::seeds
