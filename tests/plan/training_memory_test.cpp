#include "plan/training_memory.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stretto::plan {
namespace {

MemoryInputs ten_million() {
  return {.parameters = 1e7, .units = 4000, .flops = 6e7, .fan_in = 512};
}

TEST(TrainingMemory, HasWeightsGradientsAndTwoMomentsOfAdam) {
  const auto memory = training_memory(ten_million());
  EXPECT_EQ(memory.weights, 4e7);
  EXPECT_EQ(memory.certain(), 16e7);
  EXPECT_GT(memory.activations, 0);
  EXPECT_LT(memory.at_least(), memory.total());
}

TEST(TrainingMemory, CountsAnAverageACopyAndWhatIsFrozen) {
  auto inputs = ten_million();
  inputs.has_average = inputs.copies_to_save = true;
  EXPECT_EQ(training_memory(inputs).certain(), 16e7 + 4e7 + (4e7 + 8e7 + 4e7));
  inputs = ten_million();
  inputs.trained_share = 0;
  EXPECT_EQ(training_memory(inputs).certain(), 4e7);
}

TEST(TrainingMemory, TheLargestWorkFitsAndALittleMoreDoesNot) {
  auto inputs = ten_million();
  const double bytes = 2e9;
  inputs.units = largest_work(inputs, bytes);
  EXPECT_NEAR(training_memory(inputs).total(), bytes, 1);
  EXPECT_EQ(largest_work(inputs, 1e8), 0) << "not even the weights";
  inputs.fan_in = 0;
  EXPECT_TRUE(std::isinf(largest_work(inputs, bytes))) << "nobody knows what activations take";
}

TEST(TrainingMemory, OptimizersKeepDifferentNumbers) {
  EXPECT_EQ(state_values_of("adam", 0), 2);
  EXPECT_EQ(state_values_of("sgd", 0.9), 1);
  EXPECT_EQ(state_values_of("sgd", 0), 0);
  EXPECT_EQ(state_values_of("adafactor", 0.9), 0);
}

}  // namespace
}  // namespace stretto::plan
