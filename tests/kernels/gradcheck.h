#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <string>
#include <vector>

/// Gradients against finite differences and against another implementation, for tests of operators.
namespace stretto::testing {

using Inputs = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Inputs&)>;

/// Normal numbers that are the same in every run; `seed` tells tensors of one shape apart.
inline at::Tensor noise(at::IntArrayRef shape, uint64_t seed = 7) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kFloat);
}

/// Compares autograd of `function` with central differences of every element of every input, in
/// double: fine for a few hundred numbers.
inline void expect_gradients(const Function& function, const Inputs& inputs) {
  constexpr double kStep = 1e-6, kTolerance = 1e-6;
  Inputs wide;
  for (const at::Tensor& x : inputs)
    wide.push_back(x.to(at::kDouble).contiguous().requires_grad_(true));
  const at::Tensor out = function(wide);
  ASSERT_EQ(out.scalar_type(), at::kDouble) << "the operator left double precision";
  const at::Tensor slope = noise(out.sizes(), 11).to(at::kDouble);
  const auto gradients = torch::autograd::grad({out}, wide, {slope});
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < wide.size(); ++i) {
    double* x = wide[i].data_ptr<double>();
    const at::Tensor got = gradients[i].contiguous();
    for (int64_t j = 0; j < wide[i].numel(); ++j) {
      const double value = x[j];
      const auto along = [&](double step) {
        x[j] = value + step;
        const double sum = (function(wide) * slope).sum().item<double>();
        x[j] = value;
        return sum;
      };
      const double want = (along(kStep) - along(-kStep)) / (2 * kStep);
      const double have = got.data_ptr<double>()[j];
      ASSERT_NEAR(have, want, kTolerance * std::max(1.0, std::abs(want)))
          << "element " << j << " of input " << i;
    }
  }
}

/// In what an operator computes, and how far from the reference it may be.
struct Precision {
  at::ScalarType type = at::kFloat;
  double relative = 1e-4, absolute = 1e-5, absolute_of_gradients = 3e-5;
  at::Device device = at::kCPU;
};

inline void expect_close(const at::Tensor& got, const at::Tensor& want, const Precision& precision,
                         const std::string& what) {
  const at::Tensor wide = got.to(at::kCPU, at::kDouble);
  EXPECT_TRUE(at::allclose(wide, want, precision.relative, precision.absolute))
      << what << " in " << toString(precision.type) << ": off by "
      << (wide - want).abs().max().item<double>();
}

/// Value and gradients of `fused` against `reference` in fp64 on the CPU, of the same inputs.
inline void expect_equal(const Function& fused, const Function& reference, const Inputs& inputs,
                         const Precision& precision = {}) {
  Inputs narrow, wide;
  for (const at::Tensor& x : inputs) {
    narrow.push_back(x.to(precision.device, precision.type, false, true).requires_grad_(true));
    wide.push_back(
        narrow.back().detach().to(at::kCPU, at::kDouble, false, true).requires_grad_(true));
  }
  const at::Tensor got = fused(narrow), want = reference(wide);
  expect_close(got.detach(), want.detach(), precision, "value");
  const at::Tensor slope = noise(want.sizes(), 5).to(got.scalar_type());
  const auto got_slopes = torch::autograd::grad({got}, narrow, {slope.to(precision.device)});
  const auto want_slopes = torch::autograd::grad({want}, wide, {slope.to(at::kDouble)});
  Precision of_gradients = precision;
  of_gradients.absolute = precision.absolute_of_gradients;
  for (size_t i = 0; i < inputs.size(); ++i)
    expect_close(got_slopes[i], want_slopes[i], of_gradients, "gradient " + std::to_string(i));
}

}  // namespace stretto::testing
