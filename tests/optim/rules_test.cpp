// Every update rule against a slow reference in double, step by step, over a changing rate.
#include <algorithm>

#include "optim/radam.h"
#include "tests/optim/toy.h"

namespace stretto::optim {
namespace {

using testing::expect_steps;
using testing::norm_of;
using testing::Numbers;
using testing::Reference;

Numbers decayed(const Reference& t, Numbers g) {
  for (size_t i = 0; i < g.size(); ++i) g[i] += t.decay * t.p[i];
  return g;
}

void take(Reference& t, const Numbers& direction, double rate) {
  for (size_t i = 0; i < t.p.size(); ++i) t.p[i] -= rate * direction[i];
}

void update_moments(const OptimOptions& o, Reference& t, const Numbers& g) {
  for (size_t i = 0; i < g.size(); ++i) {
    t.m[i] = o.beta1 * t.m[i] + (1 - o.beta1) * g[i];
    t.v[i] = o.beta2 * t.v[i] + (1 - o.beta2) * g[i] * g[i];
  }
}

Numbers adam_direction(const OptimOptions& o, const Reference& t, int step) {
  Numbers direction(t.p.size());
  for (size_t i = 0; i < direction.size(); ++i) {
    direction[i] = t.m[i] / (1 - std::pow(o.beta1, step)) /
                   (std::sqrt(t.v[i] / (1 - std::pow(o.beta2, step))) + o.epsilon);
  }
  return direction;
}

testing::Rule adam(const OptimOptions& o) {
  return [o](Reference& t, const Numbers& g, double lr, int step) {
    const bool decoupled = o.name == "adamw";
    update_moments(o, t, decoupled ? g : decayed(t, g));
    if (decoupled) take(t, Numbers(t.p), lr * t.decay);
    take(t, adam_direction(o, t, step), lr);
  };
}

TEST(Adam, TwelveStepsEqualTheScalarReference) {
  const OptimOptions options{.name = "adam"};
  expect_steps(options, adam(options));
}

TEST(Adam, AddsWeightDecayToTheGradientOfMatricesOnly) {
  const OptimOptions options{.name = "adam", .weight_decay = 0.1};
  expect_steps(options, adam(options));
}

TEST(AdamW, TakesWeightDecayOffTheWeight) {
  const OptimOptions options{.name = "adamw", .weight_decay = 0.1};
  expect_steps(options, adam(options));
}

testing::Rule radam(const OptimOptions& o) {
  return [o](Reference& t, const Numbers& g, double lr, int step) {
    update_moments(o, t, g);
    const double power = std::pow(o.beta2, step), limit = 2 / (1 - o.beta2) - 1;
    const double rho = limit - 2 * step * power / (1 - power);
    if (rho <= 5 && o.radam_start == "none") return;
    take(t, Numbers(t.p), lr * t.decay);
    for (size_t i = 0; i < g.size(); ++i) {
      const double m = t.m[i] / (1 - std::pow(o.beta1, step));
      if (rho <= 5) {
        t.p[i] -= lr * m;
        continue;
      }
      const double r = std::sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho));
      t.p[i] -= lr * r * std::sqrt(1 - power) * m / (std::sqrt(t.v[i]) + o.epsilon);
    }
  };
}

TEST(Radam, TwelveStepsEqualTheScalarReferenceBeforeAndAfterRectification) {
  const OptimOptions options{.name = "radam", .weight_decay = 0.1};
  EXPECT_EQ(Radam::rectification(options.beta2, 5), 0);
  EXPECT_GT(Radam::rectification(options.beta2, 7), 0);
  expect_steps(options, radam(options));
}

TEST(Radam, NoneWaitsUntilTheVarianceCanBeTrusted) {
  const OptimOptions options{.name = "radam", .weight_decay = 0.1, .radam_start = "none"};
  expect_steps(options, radam(options));
}

testing::Rule momentum(const OptimOptions& o) {
  return [o](Reference& t, const Numbers& g, double lr, int) {
    const Numbers d = decayed(t, g);
    for (size_t i = 0; i < d.size(); ++i) {
      t.m[i] = o.momentum * t.m[i] + d[i];
      t.p[i] -= lr * (o.nesterov ? d[i] + o.momentum * t.m[i] : t.m[i]);
    }
  };
}

TEST(Sgd, TwelveStepsWithMomentumEqualTheScalarReference) {
  const OptimOptions options{.name = "sgd", .weight_decay = 0.05, .momentum = 0.9};
  expect_steps(options, momentum(options));
}

TEST(Sgd, NesterovLooksAhead) {
  const OptimOptions options{
      .name = "sgd", .weight_decay = 0.05, .momentum = 0.8, .nesterov = true};
  expect_steps(options, momentum(options));
}

/// LARS and LARC: the ratio of a tensor from the norms of its weight and gradient.
template <class Ratio>
testing::Rule layer_wise(const OptimOptions& o, Ratio ratio) {
  return [o, ratio](Reference& t, const Numbers& g, double lr, int) {
    const double weight = norm_of(t.p);
    const Numbers d = decayed(t, g);
    const double r = t.exempt || weight == 0 || norm_of(g) == 0
                         ? 1
                         : ratio(t, weight, norm_of(g), norm_of(d), lr);
    for (size_t i = 0; i < d.size(); ++i) {
      t.m[i] = o.momentum * t.m[i] + r * d[i];
      t.p[i] -= lr * (o.nesterov ? r * d[i] + o.momentum * t.m[i] : t.m[i]);
    }
  };
}

TEST(Lars, TwelveStepsEqualTheScalarReference) {
  const OptimOptions options{.name = "lars", .weight_decay = 0.1, .trust_coefficient = 0.02};
  expect_steps(options,
               layer_wise(options, [](const Reference& t, double weight, double g, double, double) {
                 return 0.02 * weight / (g + t.decay * weight);
               }));
}

TEST(Larc, ClipModeNeverScalesUp) {
  // This reaches two matrices: one is clipped and one is not.
  const OptimOptions options{.name = "larc", .weight_decay = 0.1, .trust_coefficient = 0.02};
  int clipped = 0, whole = 0;
  expect_steps(options, layer_wise(options, [&](const Reference&, double weight, double, double d,
                                                double lr) {
                 const double r = 0.02 * weight / (lr * (d + 1e-7));
                 (r < 1 ? clipped : whole) += 1;
                 return std::min(1.0, std::max(r, 1e-7));
               }));
  EXPECT_GT(clipped, 0);
  EXPECT_GT(whole, 0);
}

TEST(Larc, ScaleModeFollowsTheNorm) {
  const OptimOptions options{
      .name = "larc", .weight_decay = 0.1, .trust_coefficient = 0.02, .larc_mode = "scale"};
  expect_steps(options,
               layer_wise(options, [](const Reference&, double weight, double, double d, double) {
                 return std::max(0.02 * weight / (d + 1e-7), 1e-7);
               }));
}

TEST(LarsAndLarc, NesterovLooksAheadAlongTheScaledDirectionInBothForms) {
  for (const char* form : {"rate_outside", "rate_inside"}) {
    SCOPED_TRACE(form);
    OptimOptions options{.name = "lars", .weight_decay = 0.1, .momentum = 0.8, .nesterov = true};
    options.momentum_form = form;
    options.trust_coefficient = 0.02;
    expect_steps(options, layer_wise(options, [](const Reference& t, double weight, double g,
                                                 double, double) {
                   return 0.02 * weight / (g + t.decay * weight);
                 }));
    options.name = "larc";
    expect_steps(options, layer_wise(options, [](const Reference&, double weight, double, double d,
                                                 double lr) {
                   return std::clamp(0.02 * weight / (lr * (d + 1e-7)), 1e-7, 1.0);
                 }));
    options.larc_mode = "scale";
    expect_steps(options,
                 layer_wise(options, [](const Reference&, double weight, double, double d, double) {
                   return std::max(0.02 * weight / (d + 1e-7), 1e-7);
                 }));
  }
}

/// Another rule behind gradients that LARC bounds; counts the tensors that it bounds and those not.
testing::Rule bounded(double eta, testing::Rule rule, int& shorter, int& whole) {
  return [eta, rule = std::move(rule), &shorter, &whole](Reference& t, const Numbers& gradient,
                                                         double lr, int step) {
    Numbers g = gradient;
    const double weight = norm_of(t.p), size = norm_of(g);
    if (!t.exempt && weight > 0 && size > 0) {
      const double r = std::clamp(eta * weight / (lr * (size + 1e-7)), 1e-7, 1.0);
      (r < 1 ? shorter : whole) += 1;
      for (double& one : g) one *= r;
    }
    rule(t, g, lr, step);
  };
}

TEST(BoundedGradients, AdamBehindLarcEqualsTheScalarReference) {
  for (const char* name : {"adam", "adamw"}) {
    SCOPED_TRACE(name);
    const OptimOptions options{.name = name, .weight_decay = 0.1, .larc_eta = 0.02};
    int shorter = 0, whole = 0;
    expect_steps(options, bounded(0.02, adam(options), shorter, whole));
    EXPECT_GT(shorter, 0);
    EXPECT_GT(whole, 0);
  }
}

testing::Rule lamb(const OptimOptions& o) {
  return [o](Reference& t, const Numbers& g, double lr, int step) {
    update_moments(o, t, g);
    Numbers r = decayed(t, adam_direction(o, t, step));
    const double weight = norm_of(t.p), size = norm_of(r);
    take(t, r, t.exempt || weight == 0 || size == 0 ? lr : lr * weight / size);
  };
}

TEST(Lamb, TwelveStepsEqualTheScalarReference) {
  const OptimOptions options{.name = "lamb", .weight_decay = 0.1};
  expect_steps(options, lamb(options));
}

testing::Rule novograd(const OptimOptions& o) {
  return [o](Reference& t, const Numbers& g, double lr, int step) {
    const double now = norm_of(g) * norm_of(g);
    t.norm_sq = step == 1 ? now : o.beta2 * t.norm_sq + (1 - o.beta2) * now;
    const double gain = o.grad_averaging ? 1 - o.beta1 : 1;
    for (size_t i = 0; i < g.size(); ++i) {
      t.m[i] =
          o.beta1 * t.m[i] + gain * (g[i] / std::sqrt(t.norm_sq + o.epsilon) + t.decay * t.p[i]);
      t.p[i] -= lr * t.m[i];
    }
  };
}

TEST(Novograd, TwelveStepsEqualTheScalarReference) {
  const OptimOptions options{.name = "novograd", .beta1 = 0.95, .weight_decay = 0.1};
  expect_steps(options, novograd(options));
}

// As large as here it shows where it stands: under the root.
TEST(Novograd, EpsilonIsAddedToTheSquare) {
  const OptimOptions options{.name = "novograd", .beta1 = 0.95, .epsilon = 10};
  expect_steps(options, novograd(options));
}

TEST(Novograd, GradientAveragingWeighsNewGradientsLess) {
  const OptimOptions options{
      .name = "novograd", .beta1 = 0.95, .weight_decay = 0.1, .grad_averaging = true};
  expect_steps(options, novograd(options));
}

TEST(Adagrad, TwelveStepsEqualTheScalarReference) {
  const OptimOptions options{.name = "adagrad", .weight_decay = 0.1};
  expect_steps(options, [&](Reference& t, const Numbers& g, double lr, int) {
    const Numbers d = decayed(t, g);
    for (size_t i = 0; i < d.size(); ++i) {
      t.v[i] += d[i] * d[i];
      t.p[i] -= lr * d[i] / (std::sqrt(t.v[i]) + options.epsilon);
    }
  });
}

TEST(Rmsprop, TwelveStepsEqualTheScalarReference) {
  const OptimOptions options{.name = "rmsprop", .weight_decay = 0.1, .momentum = 0.5};
  expect_steps(options, [&](Reference& t, const Numbers& g, double lr, int) {
    const Numbers d = decayed(t, g);
    for (size_t i = 0; i < d.size(); ++i) {
      t.v[i] = options.beta2 * t.v[i] + (1 - options.beta2) * d[i] * d[i];
      t.m[i] = options.momentum * t.m[i] + d[i] / (std::sqrt(t.v[i]) + options.epsilon);
      t.p[i] -= lr * t.m[i];
    }
  });
}

/// Second moments of a matrix stack, or of a vector, one element at a time.
Numbers adafactor_moments(Reference& t, const Numbers& g, double share) {
  if (t.shape.size() < 2) {
    for (size_t i = 0; i < g.size(); ++i) t.v[i] += share * (g[i] * g[i] - t.v[i]);
    return t.v;
  }
  const size_t width = static_cast<size_t>(t.shape.back());
  const size_t height = static_cast<size_t>(t.shape[t.shape.size() - 2]);
  const size_t stack = g.size() / (width * height);
  t.rows.resize(stack * height);
  t.columns.resize(stack * width);
  Numbers rows(t.rows.size()), columns(t.columns.size()), moments(g.size());
  for (size_t i = 0; i < g.size(); ++i) {
    const size_t matrix = i / (width * height);
    rows[i / width] += g[i] * g[i] / static_cast<double>(width);
    columns[matrix * width + i % width] += g[i] * g[i] / static_cast<double>(height);
  }
  for (size_t i = 0; i < rows.size(); ++i) t.rows[i] += share * (rows[i] - t.rows[i]);
  for (size_t i = 0; i < columns.size(); ++i) t.columns[i] += share * (columns[i] - t.columns[i]);
  for (size_t i = 0; i < g.size(); ++i) {
    const size_t matrix = i / (width * height);
    double mean = 0;
    for (size_t r = 0; r < height; ++r)
      mean += t.rows[matrix * height + r] / static_cast<double>(height);
    moments[i] = t.rows[i / width] * t.columns[matrix * width + i % width] / mean;
  }
  return moments;
}

TEST(Adafactor, TwelveStepsEqualTheScalarReference) {
  const OptimOptions options{.name = "adafactor", .weight_decay = 0.1};
  expect_steps(options, [](Reference& t, const Numbers& g, double lr, int step) {
    const Numbers moments = adafactor_moments(t, g, std::pow(step, -0.8));
    Numbers update(g.size());
    for (size_t i = 0; i < g.size(); ++i) update[i] = g[i] / std::sqrt(moments[i]);
    const double root = std::sqrt(static_cast<double>(g.size()));
    const double rate = std::min(lr, 1 / std::sqrt(step)) * std::max(1e-3, norm_of(t.p) / root);
    take(t, Numbers(t.p), lr * t.decay);
    take(t, update, rate / std::max(1.0, norm_of(update) / root));
  });
}

}  // namespace
}  // namespace stretto::optim
