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

/// @param resumed  after this update another optimizer goes on with what the first one saves
torch::Tensor trained(OptimOptions options, const std::string& form,
                      double (*rate)(int) = &schedule, int resumed = 0) {
  options.momentum_form = form;
  Toy toy;
  Arena arena(toy);
  auto optimizer = make_optimizer(options, arena);
  for (int step = 1; step <= kUpdates; ++step) {
    toy.fill_gradients(step);
    optimizer->step(arena, {.lr = rate(step), .grad_scale = 0.1, .number = step});
    if (step != resumed) continue;
    auto next = make_optimizer(options, arena);
    const auto saved = optimizer->state();
    for (size_t i = 0; i < saved.size(); ++i) next->state()[i].values.copy_(saved[i].values);
    optimizer = std::move(next);
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

TEST(MomentumForm, ARateOfZeroGathersGradientsInBothForms) {
  // p with d = 1 and momentum 0.9, worked out with the first form: u = 1, 1.9, 2.71, ...
  struct Row {
    double rate, plain, nesterov;
  };
  const Row table[] = {{0, 0, 0},  // a warm-up from a rate of 0
                       {0.1, -0.19, -0.271},
                       {0, -0.19, -0.271},
                       {0, -0.19, -0.271},
                       {1e-30, -0.19, -0.271},  // as good as 0
                       {0.2, -1.127118, -1.3144062},
                       {0.1, -1.6488211, -1.8839390}};
  struct One : torch::nn::Module {
    torch::Tensor p = register_parameter("p", torch::zeros({1}));
  };
  for (const std::string form : {"rate_outside", "rate_inside"}) {
    for (const bool nesterov : {false, true}) {
      One model;
      Arena arena(model);
      const auto optimizer =
          make_optimizer({.name = "sgd", .nesterov = nesterov, .momentum_form = form}, arena);
      int step = 0;
      for (const auto& [rate, plain, with_nesterov] : table) {
        model.p.mutable_grad().fill_(1);
        optimizer->step(arena, {.lr = rate, .number = ++step});
        EXPECT_NEAR(model.p.item<double>(), nesterov ? with_nesterov : plain, 2e-6)
            << form << (nesterov ? ", Nesterov" : "") << " after update " << step;
      }
    }
  }
}

/// Zeros where it begins, within, and before it ends.
double with_zeros(int step) {
  const bool zero = step <= 3 || (step > 12 && step <= 16) || step == 25;
  return zero ? 0 : schedule(step);
}

TEST(MomentumForm, BothFormsAreEqualOverAScheduleWithZeros) {
  const OptimOptions table[] = {
      {.name = "sgd", .weight_decay = 0.01},
      {.name = "sgd", .weight_decay = 0.01, .nesterov = true},
      {.name = "sgd", .nesterov = true, .groups = {"large lr_scale=0.25", "cube lr_scale=0"}},
      {.name = "lars", .weight_decay = 0.01},
      {.name = "larc", .weight_decay = 0.01}};
  for (const auto& options : table) {
    const auto outside = trained(options, "rate_outside", &with_zeros);
    EXPECT_LT(distance(outside, trained(options, "rate_inside", &with_zeros)), 1e-6)
        << options.name << (options.nesterov ? ", Nesterov" : "");
  }
}

// The unit of the velocity is in the checkpoint.
TEST(MomentumForm, AResumeAmongRatesOfZeroChangesNoBit) {
  for (const bool nesterov : {false, true}) {
    const OptimOptions options{.name = "sgd", .weight_decay = 0.01, .nesterov = nesterov};
    const auto whole = trained(options, "rate_inside", &with_zeros);
    for (const int resumed : {1, 3, 14, 16, 25, 30}) {
      EXPECT_TRUE(trained(options, "rate_inside", &with_zeros, resumed).equal(whole))
          << "after update " << resumed;
    }
  }
}

}  // namespace
}  // namespace stretto::optim
