#include "models/images/alexnet.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <string>

#include "models/parts.h"
#include "nn/pooling.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

struct AlexNetConv {
  int64_t out, kernel, stride, padding;
  bool pools;
};
constexpr std::array<AlexNetConv, 5> kAlexNetConvs{{
    {64, 11, 4, 2, true},
    {192, 5, 1, 2, true},
    {384, 3, 1, 1, false},
    {256, 3, 1, 1, false},
    {256, 3, 1, 1, true},
}};
constexpr nn::PoolWindow kAlexNetPool{.kernel = 3, .stride = 2};
constexpr int64_t kSide = 6;  // of the planes that the linear layers read
constexpr int64_t kHidden = 4096;

}  // namespace

nn::InitRule variance_scaling(int64_t fan_in) {
  // The deviation that a standard normal distribution has left when it is cut at -2 and 2.
  constexpr double kCut = 0.87962566103423978;
  return {.distribution = nn::Distribution::kTruncatedNormal,
          .number = 1 / (std::sqrt(static_cast<double>(fan_in)) * kCut)};
}

AlexNet::AlexNet(const AlexNetOptions& options, const ImagePart& part)
    : ImageModel(part, image_limits_of(options)), options_(options) {
  int64_t in = part.channels;
  for (const AlexNetConv& conv : kAlexNetConvs) {
    const std::string name = "conv" + std::to_string(convs_.size() + 1);
    const nn::Conv2dOptions form{.kernel = conv.kernel,
                                 .stride = conv.stride,
                                 .padding = conv.padding,
                                 .bias = true,
                                 .rule = variance_scaling(in * conv.kernel * conv.kernel)};
    convs_.push_back(register_module(name, nn::Conv2d(part.init.child(name), in, conv.out, form)));
    in = conv.out;
  }
  const auto linear = [&](const std::string& name, int64_t from, int64_t to) {
    const nn::Init place = part.init.child(name).with_linear_rule(variance_scaling(from));
    return register_module(name, nn::Linear(place, from, to));
  };
  fc1_ = linear("fc1", in * kSide * kSide, kHidden);
  fc2_ = linear("fc2", kHidden, kHidden);
  head_ = linear("head", kHidden, part.num_labels);
}

at::Tensor AlexNet::forward(const ImageInput& input, const ForwardContext& context) {
  at::Tensor x = checked(input);
  for (size_t i = 0; i < convs_.size(); ++i) {
    x = convs_[i]->forward(x).relu_();
    if (kAlexNetConvs[i].pools) x = nn::max_pool(x, kAlexNetPool);
  }
  // As PyTorch orders them: channel by channel.
  x = at::adaptive_avg_pool2d(x, {kSide, kSide}).flatten(1);
  const nn::DropoutSource source = context.dropout(input.row_keys);
  x = kernels::dropout(x, source.at(options_.dropout, kImageSites));
  x = kernels::dropout(fc1_->forward(x).relu(), source.at(options_.dropout, kImageSites + 1));
  return nn::watch(*this, head_->forward(fc2_->forward(x).relu()));
}

double AlexNet::operations(int64_t height, int64_t width) const {
  nn::Extent size{height, width};
  double sum = 0;
  for (size_t i = 0; i < convs_.size(); ++i) {
    sum += convs_[i]->operations(size);
    size = convs_[i]->out_of(size);
    if (kAlexNetConvs[i].pools) size = nn::pooled_extent(size, kAlexNetPool);
  }
  return sum + fc1_->operations() + fc2_->operations() + head_->operations();
}

}  // namespace stretto::models
