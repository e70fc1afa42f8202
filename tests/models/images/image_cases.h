#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/images/image_model.h"
#include "tests/kernels/gradcheck.h"
#include "tests/models/plain_networks.h"

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

using plain::expect_same, plain::LogitsAndGradients, plain::run, plain::tensors_of;

}  // namespace stretto::models::testing::images
