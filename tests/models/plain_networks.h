#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/kernels/gradcheck.h"

/// What tests share that compare a network with the same one of libtorch's operators.
namespace stretto::models::testing::plain {

/// Every parameter and buffer by its name.
inline std::map<std::string, at::Tensor> tensors_of(const torch::nn::Module& model) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& item : model.named_parameters()) tensors[item.key()] = item.value();
  for (const auto& item : model.named_buffers()) tensors[item.key()] = item.value();
  return tensors;
}

/// Logits, and the gradients of all parameters that train along a fixed slope.
struct LogitsAndGradients {
  at::Tensor logits;
  std::map<std::string, at::Tensor> gradients;
};

template <class Forward>
LogitsAndGradients run(const torch::nn::Module& model, const Forward& forward) {
  LogitsAndGradients result{.logits = forward(), .gradients = {}};
  std::vector<at::Tensor> inputs;
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    names.push_back(item.key());
    inputs.push_back(item.value());
  }
  const at::Tensor slope =
      stretto::testing::noise(result.logits.sizes(), 31).to(result.logits.scalar_type());
  const auto gradients = torch::autograd::grad({result.logits}, inputs, {slope});
  for (size_t i = 0; i < names.size(); ++i) result.gradients[names[i]] = gradients[i];
  result.logits = result.logits.detach();
  return result;
}

inline void expect_same(const LogitsAndGradients& got, const LogitsAndGradients& want,
                        double tolerance = 1e-9) {
  const auto near = [&](const at::Tensor& a, const at::Tensor& b) {
    return at::allclose(a, b, tolerance, tolerance * std::max(1.0, b.abs().max().item<double>()));
  };
  EXPECT_TRUE(near(got.logits, want.logits))
      << "logits off by " << (got.logits - want.logits).abs().max().item<double>();
  ASSERT_EQ(got.gradients.size(), want.gradients.size());
  for (const auto& [name, gradient] : want.gradients) {
    const at::Tensor& own = got.gradients.at(name);
    EXPECT_TRUE(near(own, gradient))
        << name << " off by " << (own - gradient).abs().max().item<double>();
  }
}

}  // namespace stretto::models::testing::plain
