#include "models/images/cifar_net.h"

#include <array>
#include <string>

#include "models/images/alexnet.h"
#include "nn/pooling.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

struct CifarConv {
  int64_t out, kernel;
};
constexpr std::array<CifarConv, 8> kCifarConvs{
    {{128, 3}, {128, 3}, {128, 3}, {256, 3}, {256, 3}, {256, 3}, {320, 3}, {320, 1}}};
constexpr size_t kFirstNorm = 2, kSecondNorm = 5;  // the convolutions in front of norm and pooling

/// Behind pooling with stride 2.
int64_t half(int64_t size) {
  return (size + 1) / 2;
}

}  // namespace

CifarNet::CifarNet(const CifarNetOptions& options, const ImagePart& part)
    : ImageModel(part, image_limits_of(options)), options_(options) {
  int64_t in = part.channels;
  for (size_t i = 0; i < kCifarConvs.size(); ++i) {
    const auto [out, kernel] = kCifarConvs[i];
    const std::string name = "conv" + std::to_string(i + 1);
    const nn::Conv2dOptions form{.kernel = kernel,
                                 .padding = kernel / 2,
                                 .bias = i != kFirstNorm && i != kSecondNorm,
                                 .rule = variance_scaling(in * kernel * kernel)};
    convs_.push_back(register_module(name, nn::Conv2d(part.init.child(name), in, out, form)));
    in = out;
  }
  const nn::BatchNormOptions norm{.momentum = options.norm_momentum,
                                  .epsilon = options.norm_epsilon};
  const auto norm_behind = [&](const char* name, size_t conv) {
    return register_module(name, nn::BatchNorm(part.init.child(name), kCifarConvs[conv].out, norm));
  };
  bn1_ = norm_behind("bn1", kFirstNorm);
  bn2_ = norm_behind("bn2", kSecondNorm);
  const int64_t side = half(half(options.image_size)), inputs = in * side * side;
  head_ = register_module(
      "head", nn::Linear(part.init.child("head").with_linear_rule(variance_scaling(inputs)), inputs,
                         part.num_labels));
}

at::Tensor CifarNet::forward(const ImageInput& input, const ForwardContext& /*context*/) {
  at::Tensor x = checked(input);
  for (size_t i = 0; i < convs_.size(); ++i) {
    if (i == kFirstNorm || i == kSecondNorm) {
      x = nn::convolved(x, convs_[i], i == kFirstNorm ? bn1_ : bn2_,
                        {.end = kernels::PlaneEnd::kRelu});
      x = nn::max_pool_same(x, 3, 2);
    } else {
      x = convs_[i]->forward(x).relu_();
    }
  }
  return nn::watch(*this, head_->forward(x.flatten(1)));
}

double CifarNet::operations(int64_t height, int64_t width) const {
  nn::Extent size{height, width};
  double sum = 0;
  for (size_t i = 0; i < convs_.size(); ++i) {
    sum += convs_[i]->operations(size);
    if (i == kFirstNorm || i == kSecondNorm) size = {half(size.height), half(size.width)};
  }
  return sum + head_->operations();
}

}  // namespace stretto::models
