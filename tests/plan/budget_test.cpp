#include "plan/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace stretto::plan {
namespace {

constexpr double kUnits = 1000;  // of a micro-batch

ModelSize size_of(double parameters) {
  return {.overrides = {"n=" + std::to_string(int64_t(parameters))},
          .parameters = parameters,
          .flops = 6 * parameters,
          .fan_in = 256};
}

double seconds_of(double parameters) {
  return 0.01 + 6 * parameters * kUnits / 1e11;
}

MeasuredSize measured_size(double parameters, double noise_scale) {
  MeasuredSize one;
  one.size = size_of(parameters);
  one.units = one.batch = kUnits;
  one.seconds = seconds_of(parameters);
  one.peak_bytes = 3e8 + 16 * parameters;
  one.noise_scale = noise_scale;
  for (double updates = 50; updates < 800; updates *= 1.3) {
    one.losses.push_back(
        {parameters, updates, 1 + 60 * std::pow(parameters, -0.28) + 8 * std::pow(updates, -0.5)});
  }
  return one;
}

SizeModel measured_model(double noise_scale = 0) {
  return SizeModel({measured_size(1e6, noise_scale), measured_size(2e6, noise_scale),
                    measured_size(4e6, noise_scale)});
}

/// One process, or several without any communication.
struct IdealTimer : UpdateTimer {
  double seconds(const ModelSize& /*size*/, double compute, int64_t micro_batches,
                 int64_t processes) const override {
    return compute * double(micro_batches) / double(processes);
  }
};

std::vector<ModelSize> many_sizes() {
  std::vector<ModelSize> sizes;
  for (double n = 2.5e5; n < 1e8; n *= 2) sizes.push_back(size_of(n));
  return sizes;
}

TEST(SizeModel, PredictsTimeAndMemoryOfOtherSizes) {
  const auto model = measured_model();
  const auto seconds = model.micro_batch_seconds(size_of(3e6));
  EXPECT_NEAR(seconds.value, seconds_of(3e6), 0.01 * seconds.value);
  EXPECT_GT(seconds.error, 0);
  EXPECT_NEAR(model.micro_batch_seconds(size_of(1.6e7)).value, seconds_of(1.6e7),
              0.05 * seconds_of(1.6e7));
  EXPECT_NEAR(model.peak_bytes(size_of(3e6)).value, 3e8 + 16 * 3e6, 0.05 * 3e8);
}

TEST(PlanBudget, MoreTimeBuysALargerModel) {
  const auto model = measured_model();
  const auto best = [&](double seconds) {
    return plan_budget(model, many_sizes(), {.seconds = seconds}, IdealTimer())
        .choices.front()
        .size.parameters;
  };
  EXPECT_LT(best(60), best(36'000));
}

TEST(PlanBudget, CountsTheUpdatesThatFitIntoTheTime) {
  const auto plan = plan_budget(measured_model(), {size_of(2e6)}, {.seconds = 600}, IdealTimer());
  ASSERT_EQ(plan.choices.size(), 1u);
  const auto& choice = plan.choices.front();
  EXPECT_NEAR(choice.updates.value, 600 / seconds_of(2e6), 0.02 * choice.updates.value);
  EXPECT_EQ(choice.micro_batches, 1) << "without a noise scale the batch stays";
  EXPECT_EQ(choice.rate_factor, 1);
  EXPECT_GT(choice.loss.error, 0);
}

TEST(PlanBudget, NoiseMakesBatchesThatSeveralProcessesShare) {
  const auto model = measured_model(/*noise_scale=*/50 * kUnits);
  const Budget budget{.seconds = 3600, .processes = 8};
  /// Communication of an update costs as much as two micro-batches.
  struct Slow : UpdateTimer {
    double seconds(const ModelSize& /*size*/, double compute, int64_t micro_batches,
                   int64_t processes) const override {
      return compute * (std::ceil(double(micro_batches) / double(processes)) + 2);
    }
  };
  const auto choice = plan_budget(model, {size_of(2e6)}, budget, Slow()).choices.front();
  EXPECT_GE(choice.micro_batches, 8);
  EXPECT_GT(choice.rate_factor, 1);
  EXPECT_LT(choice.rate_factor, 51);
}

// The rate is the configuration's, whatever batch was measured.
TEST(PlanBudget, TheRateIsThatOfTheBatchThatItWasChosenFor) {
  auto one = measured_size(1e6, /*noise_scale=*/kUnits), two = measured_size(2e6, kUnits);
  for (auto* measured : {&one, &two}) {
    measured->micro_batches = 2;
    measured->units *= 2;
    measured->batch *= 2;
    measured->seconds *= 2;
  }
  const SizeModel model({one, two});
  const auto choice = [&](int64_t rate_batches) {
    return plan_budget(model, {size_of(2e6)}, {.seconds = 600, .rate_batches = rate_batches},
                       IdealTimer())
        .choices.front();
  };
  const auto of_one = choice(1), of_measured = choice(2);
  EXPECT_EQ(of_one.micro_batches, of_measured.micro_batches);
  EXPECT_EQ(of_measured.rate_factor, of_measured.worth);
  const double noise = kUnits, b = kUnits * double(of_one.micro_batches);
  EXPECT_NEAR(of_one.rate_factor, (1 + noise / kUnits) / (1 + noise / b), 1e-9);
}

TEST(PlanBudget, ABudgetOfMegabytesForcesCompressionAndThenASmallerModel) {
  const auto model = measured_model();
  const auto with = [&](double bytes) {
    return plan_budget(model, many_sizes(), {.seconds = 36'000, .deploy_bytes = bytes},
                       IdealTimer())
        .choices.front();
  };
  const auto roomy = with(1e12), tight = with(4e6);
  EXPECT_EQ(roomy.forms.front().bits, 32);
  EXPECT_LE(tight.forms.front().bytes(tight.size.parameters), 4e6);
  EXPECT_LT(tight.size.parameters, roomy.size.parameters);
  EXPECT_LT(tight.forms.front().bits, 32) << "a larger model, compressed, beats a small one";
}

TEST(PlanBudget, SaysWhatIsMissingWhereNothingFits) {
  const auto model = measured_model();
  const auto plan = plan_budget(model, {size_of(1e6), size_of(2e6)},
                                {.seconds = 600, .deploy_bytes = 1000}, IdealTimer());
  EXPECT_TRUE(plan.choices.empty());
  EXPECT_EQ(plan.too_large_to_deploy, 2);
  EXPECT_GT(plan.least_deploy_bytes, 1000);
  const auto memory =
      plan_budget(model, {size_of(1e6)}, {.seconds = 600, .memory_bytes = 1e6}, IdealTimer());
  EXPECT_EQ(memory.too_large_to_train, 1);
  EXPECT_NEAR(memory.least_memory, 3.16e8, 0.1e8);
  const auto slow =
      plan_budget(model, {size_of(1e6)},
                  {.seconds = 600, .deploy_seconds = 1e-9, .deploy_units = 30}, IdealTimer());
  EXPECT_EQ(slow.too_slow_to_deploy, 1);
  EXPECT_EQ(plan_budget(model, {size_of(1e6)}, {.seconds = 1e-6}, IdealTimer()).too_slow, 1);
}

TEST(CompressedForm, CountsScales) {
  EXPECT_EQ(CompressedForm{}.bits_per_weight(), 32);
  EXPECT_EQ((CompressedForm{.bits = 4, .group = 64}).bits_per_weight(), 4.25);
  EXPECT_EQ((CompressedForm{.bits = 8, .group = 64}).bytes(1e6), 1.03125e6);
  EXPECT_EQ((CompressedForm{.bits = 4, .group = 32}).text(), "4 bits, groups of 32");
}

}  // namespace
}  // namespace stretto::plan
