// Two forms of momentum: velocity without the learning rate, and with it inside (corrected).
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::Toy;

/// Warm-up, a plateau, drops, a cosine: nearly every update has another rate.
double schedule(int step) {
  if (step <= 10) return 0.02 * step;
  if (step <= 15) return 0.2;
  if (step <= 20) return 0.02;
  return 0.01 * (1 + std::cos(0.2 * step)) + 0.001;
}
constexpr int kUpdates = 40;

torch::Tensor trained(OptimOptions options, const std::string& form) {
  options.momentum_form = form;
  Toy toy;
  Arena arena(toy);
  const auto optimizer = make_optimizer(options, arena);
  for (int step = 1; step <= kUpdates; ++step) {
    toy.fill_gradients(step);
    optimizer->step(arena, {.lr = schedule(step), .grad_scale = 0.1, .number = step});
  }
  return arena.params().clone();
}

/// Largest difference, relative to the largest weight.
double distance(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).abs().max() / a.abs().max()).item<double>();
}

TEST(MomentumForm, BothFormsAreEqualOverAChangingSchedule) {
  for (const bool nesterov : {false, true}) {
    const OptimOptions options{.name = "sgd", .weight_decay = 0.01, .nesterov = nesterov};
    EXPECT_LT(distance(trained(options, "rate_outside"), trained(options, "rate_inside")), 1e-6)
        << nesterov;
  }
}

TEST(MomentumForm, BothFormsAreEqualUnderLayerWiseRates) {
  for (const std::string name : {"lars", "larc"}) {
    const OptimOptions options{.name = name, .weight_decay = 0.01};
    EXPECT_LT(distance(trained(options, "rate_outside"), trained(options, "rate_inside")), 1e-6)
        << name;
  }
}

TEST(MomentumForm, BothFormsAreEqualWithGroupsOfOtherRates) {
  const OptimOptions options{.name = "sgd", .groups = {"large lr_scale=0.25"}};
  EXPECT_LT(distance(trained(options, "rate_outside"), trained(options, "rate_inside")), 1e-6);
}

TEST(MomentumForm, WithoutCorrectionTheResultIsAnother) {
  struct One : torch::nn::Module {
    torch::Tensor p = register_parameter("p", torch::ones({1}));
  } model;
  Arena arena(model);
  const auto optimizer = make_optimizer({.name = "sgd", .momentum_form = "rate_inside"}, arena);
  double p = 1, u = 0, before = 0, plain_p = 1, plain_u = 0;
  for (int step = 1; step <= kUpdates; ++step) {
    const double lr = schedule(step), d = std::sin(0.7 * step);
    model.p.mutable_grad().fill_(d);
    optimizer->step(arena, {.lr = lr, .number = step});
    u = 0.9 * (before == 0 ? 1 : lr / before) * u + lr * d;
    p -= u;
    plain_u = 0.9 * plain_u + lr * d;
    plain_p -= plain_u;
    before = lr;
  }
  EXPECT_NEAR(model.p.item<double>(), p, 1e-5);
  EXPECT_GT(std::abs(model.p.item<double>() - plain_p), 1e-3);
}

TEST(MomentumForm, TheFactorIsOneWhileTheVelocityIsZero) {
  // A warm-up from a rate of 0: no division by it, and the second update has only its own step.
  struct One : torch::nn::Module {
    torch::Tensor p = register_parameter("p", torch::zeros({1}));
  } model;
  Arena arena(model);
  const auto optimizer = make_optimizer({.name = "sgd", .momentum_form = "rate_inside"}, arena);
  const double rates[] = {0, 0.1, 0.2}, expected[] = {0, -0.1, -0.1 - (0.9 * 2 * 0.1 + 0.2)};
  for (int i = 0; i < 3; ++i) {
    model.p.mutable_grad().fill_(1);
    optimizer->step(arena, {.lr = rates[i], .number = i + 1});
    EXPECT_NEAR(model.p.item<double>(), expected[i], 1e-6) << i;
  }
}

}  // namespace
}  // namespace stretto::optim
