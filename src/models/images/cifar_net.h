#pragma once

#include <cstdint>
#include <vector>

#include "models/images/cifar_net_options.h"
#include "models/images/image_model.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/linear.h"

namespace stretto::models {

/// OpenSeq2Seq's network for CIFAR (example_configs/image2label/cifar-nv.py):
///
///     conv1, conv2, conv3 128 @ 3, bn1, pool, conv4, conv5, conv6 256 @ 3, bn2, pool,
///     conv7 320 @ 3, conv8 320 @ 1, head over all of their numbers
///
/// with relu behind each, in front of which the norms stand; conv3 and conv6 have no bias. Poolings
/// are 3 x 3 with stride 2 and TensorFlow's padding "SAME". Matrices start by variance_scaling().
class CifarNet : public ImageModel {
 public:
  CifarNet(const CifarNetOptions& options, const ImagePart& part);

  at::Tensor forward(const ImageInput& input, const ForwardContext& context) override;
  double operations(int64_t height, int64_t width) const override;
  at::Tensor first_filters() const override { return convs_.front()->weight; }

 private:
  CifarNetOptions options_;
  std::vector<nn::Conv2d> convs_;
  nn::BatchNorm bn1_{nullptr}, bn2_{nullptr};
  nn::Linear head_{nullptr};
};

}  // namespace stretto::models
