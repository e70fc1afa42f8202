#include "models/images/airbench.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>

#include "nn/pooling.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

constexpr int64_t kWhitenKernel = 2;
constexpr nn::PoolWindow kGroupPool{.kernel = 2, .stride = 2};

/// As PyTorch starts convolutions and linear layers: kaiming_uniform with a = sqrt(5).
nn::InitRule as_pytorch(int64_t fan_in) {
  return {.distribution = nn::Distribution::kUniform,
          .number = 1 / std::sqrt(static_cast<double>(fan_in))};
}

nn::Conv2d dirac_conv(const nn::Init& init, int64_t in, int64_t out) {
  nn::Conv2d conv(init, in, out,
                  nn::Conv2dOptions{.kernel = 3, .padding = 1, .rule = as_pytorch(9 * in)});
  if (init.has_rule("weight") || init.device().is_meta()) return conv;
  const at::NoGradGuard no_grad;
  const int64_t identities = std::min(in, out);
  conv->weight.narrow(0, 0, identities).zero_();
  conv->weight.select(3, 1).select(2, 1).narrow(0, 0, identities).fill_diagonal_(1);
  return conv;
}

}  // namespace

at::Tensor whitening_filters(const at::Tensor& pixels, int64_t kernel, double epsilon) {
  const int64_t channels = pixels.size(1), width = channels * kernel * kernel;
  const auto wide = at::TensorOptions().dtype(at::kDouble);
  at::Tensor moments = at::zeros({width, width}, wide);
  int64_t count = 0;
  constexpr int64_t kAtOnce = 500;  // pictures, so that few patches are in memory
  for (int64_t i = 0; i < pixels.size(0); i += kAtOnce) {
    const at::Tensor some = pixels.narrow(0, i, std::min(kAtOnce, pixels.size(0) - i));
    const at::Tensor patches = some.to(at::kCPU, at::kDouble)
                                   .unfold(2, kernel, 1)
                                   .unfold(3, kernel, 1)
                                   .permute({0, 2, 3, 1, 4, 5})
                                   .reshape({-1, width});
    moments += patches.t().mm(patches);
    count += patches.size(0);
  }
  TORCH_CHECK(count > 0, "[airbench] pictures ", pixels.sizes(), " have no patches");
  const auto [values, vectors] = at::linalg_eigh(moments / count, "U");
  at::Tensor filters = vectors.t();
  // An eigenvector has no sign of its own: its largest number is positive.
  const at::Tensor largest = filters.gather(1, filters.abs().argmax(1, /*keepdim=*/true));
  filters = filters * largest.sign() / (values + epsilon).sqrt().unsqueeze(1);
  return at::cat({filters, -filters}).view({2 * width, channels, kernel, kernel}).to(at::kFloat);
}

AirbenchGroupImpl::AirbenchGroupImpl(const nn::Init& init, int64_t in, int64_t out,
                                     const AirbenchOptions& options) {
  const nn::BatchNormOptions norm{
      .momentum = options.norm_momentum, .epsilon = options.norm_epsilon, .learns_gamma = false};
  for (int64_t i = 1; i <= sizes_of(options).convolutions; ++i) {
    const std::string conv = "conv" + std::to_string(i), norm_name = "norm" + std::to_string(i);
    convs_.push_back(register_module(conv, dirac_conv(init.child(conv), i == 1 ? in : out, out)));
    norms_.push_back(register_module(norm_name, nn::BatchNorm(init.child(norm_name), out, norm)));
  }
}

at::Tensor AirbenchGroupImpl::forward(const at::Tensor& x) const {
  constexpr auto kGelu = kernels::PlaneEnd::kGelu;
  const at::Tensor pooled = nn::max_pool(convs_.front()->forward(x), kGroupPool);
  const at::Tensor first = norms_.front()->forward_to({.end = kGelu}, pooled);
  at::Tensor h = nn::convolved(first, convs_[1], norms_[1], {.end = kGelu});
  if (convs_.size() > 2) {
    h = nn::convolved(h, convs_[2], norms_[2], {.end = kGelu, .residual = first});
  }
  return nn::watch(*this, h);
}

double AirbenchGroupImpl::operations(nn::Extent& size) const {
  double sum = convs_.front()->operations(size);
  size = nn::pooled_extent(size, kGroupPool);
  for (size_t i = 1; i < convs_.size(); ++i) sum += convs_[i]->operations(size);
  return sum;
}

Airbench::Airbench(const AirbenchOptions& options, const ImagePart& part)
    : ImageModel(part, image_limits_of(options)), options_(options) {
  const AirbenchSizes sizes = sizes_of(options);
  const int64_t patch = part.channels * kWhitenKernel * kWhitenKernel;
  whiten_ = register_module(
      "whiten", nn::Conv2d(part.init.child("whiten"), part.channels, 2 * patch,
                           nn::Conv2dOptions{
                               .kernel = kWhitenKernel, .bias = true, .rule = as_pytorch(patch)}));
  whiten_->weight.set_requires_grad(false);
  torch::nn::ModuleList list;
  int64_t in = 2 * patch;
  for (const int64_t width : std::array<int64_t, 3>{sizes.width1, sizes.width2, sizes.width3}) {
    const nn::Init place = part.init.child("layers").child(std::to_string(groups_.size()));
    groups_.push_back(AirbenchGroup(place, in, width, options));
    list->push_back(groups_.back());
    in = width;
  }
  register_module("layers", list);
  const bool has_own_scale = options.head_scale > 0;
  head_scale_ = has_own_scale ? options.head_scale : 1 / static_cast<double>(in);
  // Uniform numbers of deviation 1, as airbench94_muon.py scales them.
  const nn::InitRule unit{.distribution = nn::Distribution::kUniform, .number = std::sqrt(3.0)};
  const nn::Init place =
      part.init.child("head").with_linear_rule(has_own_scale ? as_pytorch(in) : unit);
  head_ = register_module("head",
                          nn::Linear(place, in, part.num_labels, nn::LinearOptions{.bias = false}));
}

void Airbench::start_from(const at::Tensor& pixels) {
  if (options_.whiten_images == 0) return;
  const at::NoGradGuard no_grad;
  whiten_->weight.copy_(whitening_filters(pixels, kWhitenKernel, options_.whiten_epsilon));
}

at::Tensor Airbench::whitened(const at::Tensor& pixels, int64_t epoch) const {
  at::Tensor bias = whiten_->bias;
  // Its gradient is zero then, not missing: the order in which gradients come stays the same.
  if (is_training() && epoch >= options_.whiten_bias_epochs) bias = bias.detach() + 0 * bias;
  return nn::watch(*whiten_, kernels::convolution_2d(pixels, whiten_->weight, bias));
}

at::Tensor Airbench::forward(const ImageInput& input, const ForwardContext& /*context*/) {
  at::Tensor x = at::gelu(whitened(checked(input), input.epoch));
  for (const AirbenchGroup& group : groups_) x = group->forward(x);
  return nn::watch(*this, head_->forward(nn::max_of_plane(x)) * head_scale_);
}

double Airbench::operations(int64_t height, int64_t width) const {
  nn::Extent size{height, width};
  double sum = whiten_->operations(size);
  size = whiten_->out_of(size);
  for (const AirbenchGroup& group : groups_) sum += group->operations(size);
  return sum + head_->operations();
}

}  // namespace stretto::models
