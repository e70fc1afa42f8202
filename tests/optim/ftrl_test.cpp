// FTRL-Proximal against slow references in double: the rule itself, TensorFlow's form of it at a
// constant rate, and Adagrad, which it is without l1 and l2.
#include "optim/ftrl.h"

#include <algorithm>

#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::expect_steps;
using testing::Numbers;
using testing::Reference;
using testing::Toy;

testing::Rule ftrl(const OptimOptions& o) {
  return [o](Reference& t, const Numbers& g, double lr, int step) {
    const double l1 = t.exempt ? 0 : o.l1, l2 = t.exempt ? 0 : o.l2;
    const double last = step > 1 ? t.last_lr : o.ftrl_start == "zero" ? lr : 0;
    for (size_t i = 0; i < g.size(); ++i) {
      const double d = g[i] + t.decay * t.p[i];
      const double before = last > 0 ? std::sqrt(o.initial_accumulator + t.v[i]) / last : 0;
      t.v[i] += d * d;
      const double now = std::sqrt(o.initial_accumulator + t.v[i]) / lr;
      t.m[i] += d - (now - before) * t.p[i];
      const double shrunk = std::max(std::abs(t.m[i]) - l1, 0.0);
      t.p[i] = std::copysign(shrunk, -t.m[i]) / (now + 2 * l2);
    }
    t.last_lr = lr;
  };
}

TEST(Ftrl, TwelveStepsEqualTheScalarReference) {
  const OptimOptions options{.name = "ftrl", .weight_decay = 0.1};
  expect_steps(options, ftrl(options));
}

TEST(Ftrl, L1AndL2ActOnMatricesOnly) {
  const OptimOptions options{.name = "ftrl", .l1 = 5, .l2 = 3};
  expect_steps(options, ftrl(options));
}

TEST(Ftrl, AStartAtZeroPullsTheFirstWeightsThere) {
  const OptimOptions options{
      .name = "ftrl", .l1 = 0.1, .initial_accumulator = 0.5, .ftrl_start = "zero"};
  expect_steps(options, ftrl(options));
}

/// One weight of each kind, in the order of the arena.
struct Four : torch::nn::Module {
  torch::Tensor p = register_parameter("p", torch::tensor({{0.8F, -0.3F, 0.02F, 0.5F}}));
};

// As TensorFlow's ApplyFtrl has it for learning_rate_power = -0.5, with one rate for all updates.
TEST(Ftrl, AtAConstantRateItIsTensorFlowsRule) {
  constexpr double kRate = 0.05, kL1 = 0.4, kL2 = 0.3;
  Four model;
  Arena arena(model);
  const auto optimizer =
      make_optimizer({.name = "ftrl", .l1 = kL1, .l2 = kL2, .ftrl_start = "zero"}, arena);
  Numbers var = testing::numbers_of(model.p), accum(4, 0.1), linear(4);
  int zeros = 0;
  for (int step = 1; step <= 10; ++step) {
    for (size_t i = 0; i < 4; ++i) {
      const double grad = i == 3 ? 0 : std::sin(0.7 * step + static_cast<double>(i));
      model.p.mutable_grad()[0][static_cast<int64_t>(i)] = grad;
      const double updated = accum[i] + grad * grad;
      linear[i] += grad - (std::sqrt(updated) - std::sqrt(accum[i])) / kRate * var[i];
      const double quadratic = std::sqrt(updated) / kRate + 2 * kL2;
      var[i] = (std::clamp(linear[i], -kL1, kL1) - linear[i]) / quadratic;
      accum[i] = updated;
    }
    optimizer->step(arena, {.lr = kRate, .number = step});
    const Numbers got = testing::numbers_of(model.p);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(got[i], var[i], 2e-6) << "step " << step << ", weight " << i;
      zeros += got[i] == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(zeros, 0) << "l1 never held";
  EXPECT_LT(zeros, 40);
}

double risen_and_fallen(int step) {
  if (step == 7) return 0;
  return step < 5 ? 1e-4 * std::pow(10.0, step) / 2 : 0.2 / step;
}

// A warm-up over four powers of ten: the weights must not follow the rate, nor a rate of 0.
TEST(Ftrl, WithoutL1AndL2ItIsAdagradWhateverTheRateDoes) {
  Four model;
  Arena arena(model);
  const auto optimizer = make_optimizer({.name = "ftrl"}, arena);
  Numbers p = testing::numbers_of(model.p), sum(4, 0.1);
  for (int step = 1; step <= 20; ++step) {
    const double lr = risen_and_fallen(step);
    for (size_t i = 0; i < 4; ++i) {
      const double grad = i == 3 ? 0 : std::cos(0.7 * step + static_cast<double>(i));
      model.p.mutable_grad()[0][static_cast<int64_t>(i)] = grad;
      if (lr == 0) continue;  // such an update moves nothing, the sum neither
      sum[i] += grad * grad;
      p[i] -= lr * grad / std::sqrt(sum[i]);
    }
    optimizer->step(arena, {.lr = lr, .number = step});
    const Numbers got = testing::numbers_of(model.p);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], p[i], 5e-6) << step << ", weight " << i;
  }
}

TEST(Ftrl, ATensorWhoseGroupHasNoRateStays) {
  Toy toy;
  Arena arena(toy);
  const auto before = arena.params().clone();
  const auto optimizer =
      make_optimizer({.name = "ftrl", .l1 = 0.1, .groups = {"* lr_scale=0"}}, arena);
  toy.fill_gradients(1);
  optimizer->step(arena, {.lr = 0.1, .number = 1});
  EXPECT_TRUE(torch::equal(arena.params(), before));
}

}  // namespace
}  // namespace stretto::optim
