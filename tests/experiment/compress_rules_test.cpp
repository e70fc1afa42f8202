// What [compress] may ask for.
#include <gtest/gtest.h>

#include <string>

#include "tests/experiment/sound_experiment.h"

namespace stretto::experiment {
namespace {

using test::Edit, test::problem_of;

bool mentions(const std::string& problem, const std::string& words) {
  return problem.find(words) != std::string::npos;
}

TEST(CompressRules, SoundSettingsPass) {
  Experiment e = test::sound();
  e.compress.prune = {.sparsity = 0.9, .begin = 1000, .every = 2000};
  e.compress.quantise = {.bits = 4, .group = 32, .noise = 0.5, .begin = 10};
  EXPECT_TRUE(test::problems_of(e).empty());
  e.compress.prune = {.sparsity = 0.5, .schedule = "cubic", .every = 10, .end = 1000};
  EXPECT_TRUE(test::problems_of(e).empty());
}

TEST(CompressRules, ThePruningsComeBeforeTheEnd) {
  const std::string late =
      problem_of([](Experiment& e) { e.compress.prune = {.sparsity = 0.9, .begin = 19'900}; });
  EXPECT_TRUE(mentions(late, "a share of 0.9 is reached after 20,400 updates")) << late;
  const std::string cubic = problem_of([](Experiment& e) {
    e.compress.prune = {.sparsity = 0.9, .schedule = "cubic", .begin = 100, .end = 150};
  });
  EXPECT_TRUE(mentions(cubic, "there is no second pruning")) << cubic;
}

TEST(CompressRules, ACurveWithStepsStopsNoRun) {
  const std::string problem = problem_of([](Experiment& e) {
    e.compress.prune.sparsity = 0.5;
    e.train.stop = "compute_optimal";
  });
  EXPECT_TRUE(mentions(problem, "each pruning is a step in it")) << problem;
}

TEST(CompressRules, WeightsAreRoundedToBitsThatThereAre) {
  for (const int64_t bits : {1, 5, 7}) {
    const std::string problem = problem_of([&](Experiment& e) { e.compress.quantise.bits = bits; });
    EXPECT_TRUE(mentions(problem, "2, 3, 4, 6 or 8")) << bits << problem;
  }
  EXPECT_TRUE(mentions(
      problem_of([](Experiment& e) { e.compress.quantise = {.bits = 8, .begin = 20'000}; }),
      "the run ends after 20,000"));
}

TEST(CompressRules, WhatLoraAddsIsNotWhatIsStored) {
  const auto with_lora = [](const Edit& change) {
    return problem_of([&](Experiment& e) {
      translation_of(e).model.lora.rank = 4;
      change(e);
    });
  };
  EXPECT_TRUE(mentions(with_lora([](Experiment& e) { e.compress.prune.sparsity = 0.5; }),
                       "that model.lora adds would be pruned"));
  EXPECT_TRUE(mentions(with_lora([](Experiment& e) { e.compress.quantise.bits = 8; }),
                       "that model.lora adds would be rounded"));
  EXPECT_EQ(with_lora([](Experiment& e) {
              e.compress.prune.sparsity = 0.5;
              e.compress.prune.tensors = {"*.ffn.*"};
            }),
            "0 problems");
}

TEST(CompressRules, NoiseAndRoundingExcludeEachOther) {
  EXPECT_TRUE(mentions(problem_of([](Experiment& e) {
                         e.compress.quantise.bits = 8;
                         e.optim.weight_noise = 0.1;
                       }),
                       "noise or rounded ones, not both"));
}

}  // namespace
}  // namespace stretto::experiment
