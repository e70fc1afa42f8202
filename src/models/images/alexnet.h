#pragma once

#include <cstdint>
#include <vector>

#include "models/images/alexnet_options.h"
#include "models/images/image_model.h"
#include "nn/conv2d.h"
#include "nn/linear.h"

namespace stretto::models {

/// How OpenSeq2Seq starts a map with so many inputs: TensorFlow's variance_scaling_initializer,
/// normal with variance 1 / fan_in behind the cut at two deviations.
nn::InitRule variance_scaling(int64_t fan_in);

/// AlexNet with one tower (Krizhevsky 2014, arXiv:1404.5997, section 5), torchvision's shapes:
///
///     conv1 64 @ 11 / 4, pool, conv2 192 @ 5, pool, conv3 384 @ 3, conv4 256 @ 3, conv5 256 @ 3,
///     pool, mean to 6 x 6, dropout, fc1 4096, dropout, fc2 4096, head
///
/// with relu behind all but the last, poolings of 3 x 3 with stride 2, and biases. Matrices start
/// by variance_scaling(), biases at zero. Pictures have at least 63 pixels a side.
class AlexNet : public ImageModel {
 public:
  AlexNet(const AlexNetOptions& options, const ImagePart& part);

  at::Tensor forward(const ImageInput& input, const ForwardContext& context) override;
  bool has_dropout() const override { return options_.dropout > 0; }
  double operations(int64_t height, int64_t width) const override;
  at::Tensor first_filters() const override { return convs_.front()->weight; }

 private:
  AlexNetOptions options_;
  std::vector<nn::Conv2d> convs_;
  nn::Linear fc1_{nullptr}, fc2_{nullptr}, head_{nullptr};
};

}  // namespace stretto::models
