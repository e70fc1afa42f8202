#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "models/images/airbench_options.h"
#include "models/images/image_model.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/linear.h"

/// Keller Jordan's networks for CIFAR-10 (2024, arXiv:2404.00498; airbench94_muon.py and
/// airbench96_faster.py of github.com/KellerJordan/cifar10-airbench).
///
/// Shape letters: N samples, C channels, H and W height and width.
namespace stretto::models {

/// The filters that whiten patches: the eigenvectors of the patches' second moments, each divided
/// by sqrt(eigenvalue + epsilon), then the same with the other sign.
/// @param pixels  [n, C, H, W] with at least one patch. -> fp32 [2 C k^2, C, k, k]
at::Tensor whitening_filters(const at::Tensor& pixels, int64_t kernel, double epsilon);

/// gelu(norm1(pool(conv1(x)))), then h = gelu(norm2(conv2(h))); a third convolution has a residual
/// connection around it and the second: gelu(norm3(conv3(h)) + h0). Gains of norms stay 1.
/// Convolutions are 3 x 3: as many filters as there are inputs start as the identity (dirac), the
/// others uniform as PyTorch's.
class AirbenchGroupImpl : public torch::nn::Module {
 public:
  AirbenchGroupImpl(const nn::Init& init, int64_t in, int64_t out, const AirbenchOptions& options);
  /// x [N, in, H, W] -> [N, out, H / 2, W / 2]
  at::Tensor forward(const at::Tensor& x) const;
  /// For one sample; `size` becomes that of the planes that come out.
  double operations(nn::Extent& size) const;

 private:
  std::vector<nn::Conv2d> convs_;
  std::vector<nn::BatchNorm> norms_;
};
TORCH_MODULE(AirbenchGroup);

/// gelu(whiten(x)), three groups `layers.0` to `layers.2`, the largest number of each channel, and
/// a head without bias whose logits are multiplied by head_scale. `whiten` has 2 x 2 filters, which
/// start_from() sets and which stay, and a bias, which learns for whiten_bias_epochs.
class Airbench : public ImageModel {
 public:
  Airbench(const AirbenchOptions& options, const ImagePart& part);

  at::Tensor forward(const ImageInput& input, const ForwardContext& context) override;
  double operations(int64_t height, int64_t width) const override;
  at::Tensor first_filters() const override { return whiten_->weight; }
  void start_from(const at::Tensor& pixels) override;

 private:
  at::Tensor whitened(const at::Tensor& pixels, int64_t epoch) const;

  AirbenchOptions options_;
  double head_scale_;
  nn::Conv2d whiten_{nullptr};
  std::vector<AirbenchGroup> groups_;
  nn::Linear head_{nullptr};
};

}  // namespace stretto::models
