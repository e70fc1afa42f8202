#include "search/changes.h"

#include <gtest/gtest.h>

#include <string>

#include "search/load_search.h"
#include "search/search_plan.h"
#include "tests/search/bench.h"

namespace stretto::search {
namespace {

using stretto::testing::block;
using stretto::testing::expect_in;
using stretto::testing::kLearningRate;
using stretto::testing::SearchBench;

SearchPlan with(const SearchBench& bench, const std::string& search, const std::string& rest) {
  return load_search(bench.file(search, rest)).plan;
}

std::string lines_of(const SearchPlan& stored, const SearchPlan& now) {
  std::string all;
  for (const auto& line : forbidden_changes(stored, now)) all += line + "\n";
  return all;
}

TEST(Changes, MoreTrialsMorePointsASmallerSpaceAndOtherSlotsMayBe) {
  const SearchBench bench;
  const auto stored = with(bench, "max_trials = 4\npoints = [\"optim.lr=1e-3\"]\n", kLearningRate);
  EXPECT_EQ(lines_of(stored, stored), "");
  const auto now = with(bench,
                        "max_trials = 9\nslots = 3\nmax_restarts = 0\nmax_hours = 2\n"
                        "points = [\"optim.lr=1e-3\", \"optim.lr=2e-3\"]\n"
                        "overrides = [\"report.every=3\"]\n",
                        "[[space]]\nkey = \"optim.lr\"\nname = \"log\"\nmin = 5e-4\nmax = 1e-2\n");
  EXPECT_EQ(lines_of(stored, now), "");
}

TEST(Changes, OthersAreNamed) {
  const SearchBench bench;
  const auto stored = with(bench, "max_trials = 4\npoints = [\"optim.lr=1e-3\"]\n", kLearningRate);
  const auto expect = [&](const std::string& text, const std::string& search,
                          const std::string& rest) {
    expect_in(text, lines_of(stored, with(bench, search, rest)));
  };
  const std::string points = "points = [\"optim.lr=1e-3\"]\n";
  expect("search.max_trials: 4 in the search, 3 now", "max_trials = 3\n" + points, kLearningRate);
  expect("search.seed: 1 in the search, 2 now", "seed = 2\n" + points, kLearningRate);
  expect("search.points: others", "", kLearningRate);
  expect("the configuration's optim.clip_norm: ",
         "overrides = [\"optim.clip_norm=0.3\"]\n" + points, kLearningRate);
  expect("the configuration's train.max_steps: 64 in the search, 128 now",
         "overrides = [\"train.max_steps=128\"]\n" + points, kLearningRate);
  expect("`optim.lr` is wider now", points,
         "[[space]]\nkey = \"optim.lr\"\nname = \"log\"\nmin = 1e-5\nmax = 1e-2\n");
  expect("`optim.lr` is wider now", points,
         "[[space]]\nkey = \"optim.lr\"\nname = \"log\"\nmin = 1e-3\nmax = 2e-2\n");
  expect("space: 1 table in the search, 2 tables now", points,
         kLearningRate + block("key = \"optim.clip_norm\"\nname = \"double\"\nmin = 1\nmax = 2"));
  expect("trials are ranked by nll in the search, by bleu now", "metric = \"bleu\"\n" + points,
         kLearningRate);
}

TEST(Changes, WhatShapesScoresStaysThoughARunMayChangeIt) {
  const SearchBench bench;
  const auto plan = [&](const std::string& override_text) {
    return with(bench, "overrides = [\"eval.every=8\", \"" + override_text + "\"]\n",
                kLearningRate);
  };
  const auto stored = plan("run.seed=1");
  const auto lines = [&](const std::string& override_text) {
    return lines_of(stored, plan(override_text));
  };
  EXPECT_EQ(lines("eval.max_tokens=99"),
            "the configuration's eval.max_tokens: 4096 in the search, 99 now\n");
  EXPECT_EQ(lines("decode.beam_size=2"),
            "the configuration's decode.beam_size: 5 in the search, 2 now\n");
  EXPECT_EQ(lines("train.patience=3"),
            "the configuration's train.patience: 0 in the search, 3 now\n");
  EXPECT_EQ(lines("train.max_hours=2"),
            "the configuration's train.max_hours: 0.0 in the search, 2.0 now\n");
  for (const char* free : {"train.keep_last=5", "run.threads=3", "data.prefetch=2"}) {
    EXPECT_EQ(lines(free), "") << free;
  }
}

TEST(Changes, ABudgetMayBecomeAWholeGridAndTheGridNarrower) {
  const SearchBench bench;
  const auto grid = [&](const std::string& search, int count) {
    return with(bench, search,
                "[method]\nname = \"grid\"\n" +
                    block("key = \"model.d_model\"\nname = \"int\"\nmin = 64\nmax = " +
                          std::to_string(63 + count)));
  };
  const auto some = grid("max_trials = 16\n", 40), whole = grid("", 40);
  EXPECT_EQ(lines_of(some, whole), "");
  EXPECT_EQ(lines_of(grid("max_trials = 16\n", 6), grid("", 6)), "");
  EXPECT_EQ(lines_of(whole, grid("", 20)), "");
  EXPECT_EQ(lines_of(whole, grid("max_trials = 40\n", 40)), "") << "that is all of it";
  expect_in("search.max_trials: all of the grid in the search, 16 now", lines_of(whole, some));
}

}  // namespace
}  // namespace stretto::search
