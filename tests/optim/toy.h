#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "optim/optimizer.h"

/// A small model with odd sizes, and slow references of update rules in double.
namespace stretto::optim::testing {

/// Three matrices (one longer than a block of a reduction), a vector, and a vector of zeros.
struct Toy : torch::nn::Module {
  std::vector<torch::Tensor> tensors;

  Toy() {
    RandomStream random(7);
    add(random, "small", {5, 3});
    add(random, "large", {70, 33});
    add(random, "cube", {2, 3, 4});
    add(random, "bias", {7});
    tensors.push_back(register_parameter("gamma", torch::zeros({4})));
  }

  void fill_gradients(int step) {
    for (size_t t = 0; t < tensors.size(); ++t) {
      auto grad = tensors[t].grad().view({-1});
      float* values = grad.data_ptr<float>();
      for (int64_t i = 0; i < grad.numel(); ++i) {
        const double phase = 0.7 * step + 1.3 * static_cast<double>(i) + static_cast<double>(t);
        values[i] = static_cast<float>(std::sin(phase) * (1 + static_cast<double>(t)));
      }
    }
  }

 private:
  void add(RandomStream& random, const std::string& name, const std::vector<int64_t>& shape) {
    torch::Tensor tensor = torch::empty(shape);
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      tensor.data_ptr<float>()[i] = static_cast<float>(random.normal());
    }
    tensors.push_back(register_parameter(name, tensor));
  }
};

using Numbers = std::vector<double>;

inline Numbers numbers_of(const torch::Tensor& tensor) {
  const auto flat = tensor.detach().to(torch::kDouble).flatten();
  const double* first = flat.data_ptr<double>();
  return {first, first + flat.numel()};
}

inline double norm_of(const Numbers& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// One tensor of a reference: its weights and whatever the rule keeps.
struct Reference {
  Numbers p, m, v, rows, columns;
  std::vector<int64_t> shape;
  double decay = 0;     ///< of this tensor
  bool exempt = false;  ///< of the no-decay group
  double norm_sq = 0, last_lr = 0;
};

/// rule(tensor, gradient already scaled, rate, step from 1)
using Rule = std::function<void(Reference&, const Numbers&, double, int)>;

inline std::vector<Reference> references(const Toy& toy, double weight_decay) {
  std::vector<Reference> all;
  for (const auto& tensor : toy.tensors) {
    Reference& one = all.emplace_back();
    one.p = numbers_of(tensor);
    one.m = one.v = Numbers(one.p.size());
    one.shape = tensor.sizes().vec();
    one.exempt = tensor.dim() < 2;
    one.decay = one.exempt ? 0 : weight_decay;
  }
  return all;
}

/// What lies between the tensors of a buffer with the arena's offsets.
inline double sum_of_gaps(const Arena& arena, const torch::Tensor& buffer) {
  torch::Tensor rest = buffer.abs().to(torch::kDouble);
  for (const auto& slot : arena.slots()) rest.narrow(0, slot.offset, slot.numel).zero_();
  return rest.sum().item<double>();
}

constexpr int kSteps = 12;
constexpr double kGradScale = 0.5;

/// A rate that rises and then falls.
inline double rate_at(int step) {
  return step <= 5 ? 0.01 * step : 0.1 / step;
}

/// Steps the optimizer and the rule side by side, and compares after every step.
inline void expect_steps(const OptimOptions& options, const Rule& rule, double tolerance = 3e-5) {
  Toy toy;
  Arena arena(toy);
  const auto optimizer = make_optimizer(options, arena);
  auto expected = references(toy, options.weight_decay);
  for (int step = 1; step <= kSteps; ++step) {
    toy.fill_gradients(step);
    for (size_t t = 0; t < expected.size(); ++t) {
      Numbers gradient = numbers_of(toy.tensors[t].grad());
      for (double& value : gradient) value *= kGradScale;
      rule(expected[t], gradient, rate_at(step), step);
    }
    optimizer->step(arena, {.lr = rate_at(step), .grad_scale = kGradScale, .number = step});
    for (size_t t = 0; t < expected.size(); ++t) {
      const Numbers got = numbers_of(toy.tensors[t]);
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], expected[t].p[i], tolerance * (1 + std::abs(expected[t].p[i])))
            << options.name << ", step " << step << ", " << arena.slots()[t].name << '[' << i
            << ']';
      }
    }
    ASSERT_EQ(sum_of_gaps(arena, arena.params()), 0) << options.name << ", step " << step;
    for (const auto& tensor : optimizer->state()) {
      if (!tensor.flat || !tensor.held.is_all()) continue;
      ASSERT_EQ(sum_of_gaps(arena, tensor.values), 0) << tensor.name;
    }
  }
}

}  // namespace stretto::optim::testing
