#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/images/image_model.h"
#include "tests/kernels/gradcheck.h"

/// What tests of models of pictures share.
namespace stretto::models::testing::images {

using stretto::testing::noise;

constexpr int64_t kLabels = 5;

inline std::shared_ptr<ImageModel> image_model(const ImageModelOptions& options,
                                               at::ScalarType dtype = at::kDouble,
                                               int64_t channels = 3) {
  auto model = make_image_model({.model = options, .channels = channels, .num_labels = kLabels});
  model->to(dtype);
  return model;
}

/// The same without memory, with the labels of ImageNet or others.
inline std::shared_ptr<ImageModel> meta_model(const ImageModelOptions& options,
                                              int64_t num_labels = 1000) {
  return make_image_model({.model = options, .num_labels = num_labels, .device = at::kMeta});
}

inline at::Tensor pictures(int64_t count, int64_t size, at::ScalarType dtype = at::kDouble,
                           int64_t channels = 3) {
  return noise({count, channels, size, size}, 21).to(dtype);
}

/// First weights that hide nothing: heads are not zero, gains and statistics of norms are not those
/// that leave rows as they are.
inline void shake(torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (const auto& item : model.named_parameters()) {
    if (item.key() == "head.weight" || item.value().dim() == 1 || item.key() == "class_token") {
      item.value().add_(0.3 * noise(item.value().sizes(), ++seed));
    }
  }
  for (const auto& item : model.named_buffers()) {
    item.value().add_(noise(item.value().sizes(), ++seed).abs() * 0.2);
  }
}

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
  const at::Tensor slope = noise(result.logits.sizes(), 31).to(result.logits.scalar_type());
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

}  // namespace stretto::models::testing::images
