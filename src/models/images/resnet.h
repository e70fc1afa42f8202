#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <vector>

#include "models/images/image_model.h"
#include "models/images/resnet_options.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/linear.h"
#include "nn/packed_rows.h"

/// Residual networks (He et al. 2015, arXiv:1512.03385, and 2016, arXiv:1603.05027) with ResNeXt's
/// groups and wide ones. Tensors have torchvision's names (`conv1`, `bn1`, `layer1.0.conv1`,
/// `layer2.0.downsample.0`), but for `head`, which is its `fc`, and `final_norm` of v2.
///
/// Shape letters: N samples, C channels, H and W height and width.
namespace stretto::models {

/// What a block is built from.
struct ResNetBlockSetup {
  int64_t in = 0, inner = 0, out = 0;  ///< channels
  int64_t stride = 1;
  double drop_path = 0;
  uint64_t first_site = 0;  ///< of dropout
};

/// Two 3 x 3 convolutions, or a bottleneck of 1 x 1, 3 x 3 and 1 x 1, around which x goes:
///
///     v1, v1.5: relu(bn(conv(relu(bn(conv(x))))) + shortcut(x))
///     v2:       conv(relu(bn(conv(relu(bn(x)))))) + shortcut(x)
///
/// Where v2 projects, the shortcut reads the normed x, as in He et al. 2016. A shortcut of zeros
/// puts them around the channels of x, half on each side.
class ResNetBlockImpl : public torch::nn::Module {
 public:
  ResNetBlockImpl(const nn::Init& init, const ResNetOptions& options, const ResNetShape& shape,
                  const ResNetBlockSetup& setup);

  /// x [N, C, H, W] -> [N, out, H / stride, W / stride]
  at::Tensor forward(const at::Tensor& x, const nn::DropoutSource& dropout) const;
  /// For one sample; `size` becomes that of the planes that come out.
  double operations(nn::Extent& size) const;

 private:
  /// What the last convolution reads.
  at::Tensor inner(const at::Tensor& x, const nn::DropoutSource& dropout) const;
  at::Tensor shortcut(const at::Tensor& x) const;

  bool pre_norm_;
  ResNetBlockSetup setup_;
  double dropout_;
  std::vector<nn::Conv2d> convs_;
  std::vector<nn::BatchNorm> norms_;  // behind the convolutions; of v2 in front of them
  nn::Conv2d projection_{nullptr};
  nn::BatchNorm projection_norm_{nullptr};  // null in v2
};
TORCH_MODULE(ResNetBlock);

/// Convolutions start as he_fan_out(), the head normal with deviation 0.01 (Goyal et al. 2017,
/// section 5.1), gains of norms at 1, or at 0 where model.zero_gamma says so. With no labels there
/// is no head: features() is all that such a network gives.
class ResNet : public ImageModel {
 public:
  ResNet(const ResNetOptions& options, const ImagePart& part);

  at::Tensor forward(const ImageInput& input, const ForwardContext& context) override;
  bool has_dropout() const override;
  double operations(int64_t height, int64_t width) const override;
  at::Tensor first_filters() const override { return conv1_->weight; }

  /// What stands in front of the head: the mean of each channel, [B, D].
  at::Tensor features(const ImageInput& input, const ForwardContext& context);
  int64_t width() const { return shape_.outer_width(shape_.num_stages() - 1); }  ///< D

 private:
  void add_stages(const nn::Init& init);

  ResNetOptions options_;
  ResNetShape shape_;
  nn::Conv2d conv1_{nullptr};
  nn::BatchNorm bn1_{nullptr}, final_norm_{nullptr};
  std::vector<ResNetBlock> blocks_;
  nn::Linear head_{nullptr};
};

}  // namespace stretto::models
