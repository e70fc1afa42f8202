#include "optim/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "optim/adam.h"
#include "optim/sgd.h"

namespace stretto::optim {
namespace {

/// A matrix (decayed), a vector (not decayed) and odd sizes.
struct Toy : torch::nn::Module {
  torch::Tensor matrix, vector;
  Toy() {
    RandomStream random(7);
    matrix = torch::empty({5, 3});
    vector = torch::empty({7});
    for (auto* tensor : {&matrix, &vector}) {
      for (int64_t i = 0; i < tensor->numel(); ++i) {
        tensor->data_ptr<float>()[i] = static_cast<float>(random.normal());
      }
    }
    matrix = register_parameter("matrix", matrix);
    vector = register_parameter("vector", vector);
  }
};

/// The slow reference: one parameter element at a time, in double.
struct Scalar {
  double p = 0, m = 0, v = 0;
};

std::vector<Scalar> elements(const torch::Tensor& tensor) {
  std::vector<Scalar> all;
  const auto flat = tensor.detach().flatten();
  for (int64_t i = 0; i < flat.numel(); ++i) all.push_back({flat[i].item<double>(), 0, 0});
  return all;
}

void fill_gradient(torch::Tensor grad, int step) {
  auto flat = grad.view({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    flat[i] = std::sin(0.7 * static_cast<double>(step) + 1.3 * static_cast<double>(i));
  }
}

template <class Rule>
void expect_ten_steps(const OptimOptions& options, Rule rule) {
  Toy toy;
  Arena arena(toy);
  const auto optimizer = make_optimizer(options, arena);
  auto matrix = elements(toy.matrix), vector = elements(toy.vector);
  for (int step = 1; step <= 10; ++step) {
    fill_gradient(toy.matrix.grad(), step);
    fill_gradient(toy.vector.grad(), step);
    const double lr = 0.01 * step, scale = 0.5;
    const auto apply = [&](std::vector<Scalar>& reference, const torch::Tensor& grad,
                           double decay) {
      const auto flat = grad.flatten();
      for (size_t i = 0; i < reference.size(); ++i) {
        rule(reference[i], flat[static_cast<int64_t>(i)].template item<double>() * scale, lr, decay,
             step);
      }
    };
    apply(matrix, toy.matrix.grad(), options.weight_decay);
    apply(vector, toy.vector.grad(), 0.0);
    optimizer->step(arena, {.lr = lr, .grad_scale = scale, .number = step});
    for (size_t i = 0; i < matrix.size(); ++i) {
      EXPECT_NEAR(toy.matrix.view({-1})[static_cast<int64_t>(i)].item<double>(), matrix[i].p, 2e-5)
          << options.name << " step " << step << " element " << i;
    }
    for (size_t i = 0; i < vector.size(); ++i) {
      EXPECT_NEAR(toy.vector[static_cast<int64_t>(i)].item<double>(), vector[i].p, 2e-5)
          << options.name << " step " << step << " element " << i;
    }
  }
}

auto adam_rule(const OptimOptions& o, bool decoupled) {
  return [o, decoupled](Scalar& s, double g, double lr, double decay, int step) {
    if (decoupled) s.p -= lr * decay * s.p;
    if (!decoupled) g += decay * s.p;
    s.m = o.beta1 * s.m + (1 - o.beta1) * g;
    s.v = o.beta2 * s.v + (1 - o.beta2) * g * g;
    const double m = s.m / (1 - std::pow(o.beta1, step));
    const double v = s.v / (1 - std::pow(o.beta2, step));
    s.p -= lr * m / (std::sqrt(v) + o.epsilon);
  };
}

TEST(Adam, TenStepsEqualTheScalarReference) {
  const OptimOptions options{.name = "adam", .weight_decay = 0};
  expect_ten_steps(options, adam_rule(options, false));
}

TEST(Adam, AddsWeightDecayToTheGradientOfMatricesOnly) {
  const OptimOptions options{.name = "adam", .weight_decay = 0.1};
  expect_ten_steps(options, adam_rule(options, false));
}

TEST(AdamW, TakesWeightDecayOffTheWeight) {
  const OptimOptions options{.name = "adamw", .weight_decay = 0.1};
  expect_ten_steps(options, adam_rule(options, true));
}

TEST(Sgd, TenStepsWithMomentumEqualTheScalarReference) {
  const OptimOptions options{.name = "sgd", .weight_decay = 0.05, .momentum = 0.9};
  expect_ten_steps(options, [&](Scalar& s, double g, double lr, double decay, int) {
    g += decay * s.p;
    s.m = options.momentum * s.m + g;
    s.p -= lr * s.m;
  });
}

TEST(Sgd, NesterovLooksAhead) {
  const OptimOptions options{.name = "sgd", .momentum = 0.8, .nesterov = true};
  expect_ten_steps(options, [&](Scalar& s, double g, double lr, double, int) {
    s.m = options.momentum * s.m + g;
    s.p -= lr * (g + options.momentum * s.m);
  });
}

TEST(Sgd, NesterovEqualsTorchOptim) {
  Toy ours, theirs;
  Arena arena(ours);
  const auto optimizer = make_optimizer({.name = "sgd", .momentum = 0.9, .nesterov = true}, arena);
  torch::optim::SGD reference(theirs.parameters(),
                              torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true));
  for (int step = 1; step <= 5; ++step) {
    fill_gradient(ours.matrix.grad(), step);
    fill_gradient(ours.vector.grad(), step);
    theirs.matrix.mutable_grad() = ours.matrix.grad().clone();
    theirs.vector.mutable_grad() = ours.vector.grad().clone();
    optimizer->step(arena, {.lr = 0.1, .number = step});
    reference.step();
  }
  EXPECT_TRUE(torch::allclose(ours.matrix, theirs.matrix, 1e-6, 1e-6));
  EXPECT_TRUE(torch::allclose(ours.vector, theirs.vector, 1e-6, 1e-6));
}

TEST(Optimizer, AnUnknownNameListsTheKnownOnes) {
  Toy toy;
  const Arena arena(toy);
  try {
    make_optimizer({.name = "adamm"}, arena);
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(error.message().find("adam, adamw, sgd"), std::string::npos) << error.message();
  }
}

TEST(Clipping, BringsANormDownAndNeverUp) {
  EXPECT_DOUBLE_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_NEAR(clip_factor(4.0, 1.0), 0.25, 1e-6);
  EXPECT_DOUBLE_EQ(clip_factor(4.0, 0.0), 1.0);
}

}  // namespace
}  // namespace stretto::optim
