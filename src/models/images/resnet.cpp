#include "models/images/resnet.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <string>

#include "models/images/plane_dropout.h"
#include "models/parts.h"
#include "nn/pooling.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

constexpr nn::PoolWindow kStemPool{.kernel = 3, .stride = 2, .padding = 1};
const nn::NormEnd kThenRelu{.end = kernels::PlaneEnd::kRelu};
enum BlockSite : uint64_t { kBlockDropout, kBlockPath, kBlockSites };

nn::Conv2d conv_of(const nn::Init& init, int64_t in, int64_t out, nn::Conv2dOptions options) {
  options.padding = options.kernel / 2;
  options.rule = nn::he_fan_out(out, options.kernel);
  return nn::Conv2d(init, in, out, options);
}

/// The convolutions of a block, with their channels.
struct BlockConv {
  int64_t in, out;
  nn::Conv2dOptions options;
};

std::vector<BlockConv> convs_of(const ResNetShape& shape, const ResNetBlockSetup& setup) {
  const int64_t in = setup.in, inner = setup.inner, out = setup.out, stride = setup.stride;
  if (!shape.bottleneck) {
    return {{in, inner, {.kernel = 3, .stride = stride}}, {inner, out, {.kernel = 3}}};
  }
  const bool first_strides = shape.version == ResNetVersion::kV1;
  return {
      {in, inner, {.kernel = 1, .stride = first_strides ? stride : 1}},
      {inner, inner, {.kernel = 3, .stride = first_strides ? 1 : stride, .groups = shape.groups}},
      {inner, out, {.kernel = 1}}};
}

bool projects(const ResNetShape& shape, const ResNetBlockSetup& setup) {
  if (shape.shortcut == ResNetShortcut::kAllProjections) return true;
  return shape.shortcut == ResNetShortcut::kProjection &&
         (setup.in != setup.out || setup.stride != 1);
}

nn::BatchNorm norm_of(const nn::Init& init, int64_t channels, const ResNetOptions& options,
                      bool zero_gamma = false) {
  return nn::BatchNorm(init, channels,
                       nn::BatchNormOptions{.momentum = options.norm_momentum,
                                            .epsilon = options.norm_epsilon,
                                            .zero_gamma = zero_gamma});
}

}  // namespace

ResNetBlockImpl::ResNetBlockImpl(const nn::Init& init, const ResNetOptions& options,
                                 const ResNetShape& shape, const ResNetBlockSetup& setup)
    : pre_norm_(shape.version == ResNetVersion::kV2),
      setup_(setup),
      dropout_(options.block_dropout) {
  const auto convs = convs_of(shape, setup);
  for (size_t i = 0; i < convs.size(); ++i) {
    const std::string number = std::to_string(i + 1), conv = "conv" + number, norm = "bn" + number;
    const bool is_last = i + 1 == convs.size();
    const BlockConv& one = convs[i];
    convs_.push_back(
        register_module(conv, conv_of(init.child(conv), one.in, one.out, one.options)));
    norms_.push_back(
        register_module(norm, norm_of(init.child(norm), pre_norm_ ? one.in : one.out, options,
                                      options.zero_gamma && is_last && !pre_norm_)));
  }
  if (!projects(shape, setup)) return;
  const nn::Init place = init.child("downsample");
  torch::nn::ModuleList downsample;
  projection_ =
      conv_of(place.child("0"), setup.in, setup.out, {.kernel = 1, .stride = setup.stride});
  downsample->push_back(projection_);
  if (!pre_norm_) {
    projection_norm_ = norm_of(place.child("1"), setup.out, options);
    downsample->push_back(projection_norm_);
  }
  register_module("downsample", downsample);
}

at::Tensor ResNetBlockImpl::shortcut(const at::Tensor& x) const {
  if (projection_) {
    return pre_norm_ ? projection_->forward(x) : nn::convolved(x, projection_, projection_norm_);
  }
  at::Tensor kept = x;
  if (setup_.stride != 1) {
    using at::indexing::None, at::indexing::Slice;
    const Slice every(None, None, setup_.stride);
    kept = x.index({Slice(), Slice(), every, every});
  }
  if (setup_.in == setup_.out) return kept;
  const int64_t zeros = setup_.out - setup_.in;
  return at::constant_pad_nd(kept, {0, 0, 0, 0, zeros / 2, zeros - zeros / 2});
}

at::Tensor ResNetBlockImpl::inner(const at::Tensor& x, const nn::DropoutSource& dropout) const {
  at::Tensor h = x;
  for (size_t i = 0; i + 1 < convs_.size(); ++i) {
    h = nn::convolved(h, convs_[i], norms_[pre_norm_ ? i + 1 : i], kThenRelu);
  }
  return drop_planes(h, dropout.at(dropout_, setup_.first_site + kBlockDropout));
}

at::Tensor ResNetBlockImpl::forward(const at::Tensor& x, const nn::DropoutSource& dropout) const {
  const kernels::Dropout path = dropout.at(setup_.drop_path, setup_.first_site + kBlockPath);
  const nn::Conv2d& last = convs_.back();
  if (pre_norm_) {
    const at::Tensor normed = norms_.front()->forward_to(kThenRelu, x);
    const at::Tensor added = drop_samples(last->forward(inner(normed, dropout)), path);
    return nn::watch(*this, added.add_(shortcut(projection_ ? normed : x)));
  }
  const at::Tensor h = inner(x, dropout), beside = shortcut(x);
  if (!path.active()) {
    return nn::watch(*this, nn::convolved(h, last, norms_.back(),
                                          {.end = kernels::PlaneEnd::kRelu, .residual = beside}));
  }
  const at::Tensor added = drop_samples(nn::convolved(h, last, norms_.back()), path);
  return nn::watch(*this, added.add_(beside).relu_());
}

double ResNetBlockImpl::operations(nn::Extent& size) const {
  double sum = projection_ ? projection_->operations(size) : 0;
  for (const nn::Conv2d& conv : convs_) {
    sum += conv->operations(size);
    size = conv->out_of(size);
  }
  return sum;
}

ResNet::ResNet(const ResNetOptions& options, const ImagePart& part)
    : ImageModel(part, image_limits_of(options)), options_(options), shape_(shape_of(options)) {
  const bool is_large = shape_.has_large_stem;
  conv1_ =
      register_module("conv1", conv_of(part.init.child("conv1"), part.channels, shape_.stem_width,
                                       {.kernel = is_large ? 7 : 3, .stride = is_large ? 2 : 1}));
  if (shape_.version != ResNetVersion::kV2) {
    bn1_ = register_module("bn1", norm_of(part.init.child("bn1"), shape_.stem_width, options));
  }
  add_stages(part.init);
  if (shape_.version == ResNetVersion::kV2) {
    final_norm_ =
        register_module("final_norm", norm_of(part.init.child("final_norm"), width(), options));
  }
  if (part.num_labels == 0) return;
  const nn::InitRule narrow{.distribution = nn::Distribution::kNormal, .number = 0.01};
  head_ = register_module("head", nn::Linear(part.init.child("head").with_linear_rule(narrow),
                                             width(), part.num_labels));
}

void ResNet::add_stages(const nn::Init& init) {
  int64_t in = shape_.stem_width, block = 0;
  const int64_t last_block = std::max<int64_t>(shape_.num_blocks() - 1, 1);
  for (int64_t stage = 0; stage < shape_.num_stages(); ++stage) {
    const std::string name = "layer" + std::to_string(stage + 1);
    torch::nn::ModuleList list;
    for (int64_t i = 0; i < shape_.blocks[static_cast<size_t>(stage)]; ++i, ++block) {
      const ResNetBlockSetup setup{
          .in = in,
          .inner = shape_.inner_width(stage),
          .out = shape_.outer_width(stage),
          .stride = i == 0 && stage > 0 ? 2 : 1,
          .drop_path =
              options_.drop_path * static_cast<double>(block) / static_cast<double>(last_block),
          .first_site = kImageSites + static_cast<uint64_t>(block) * kBlockSites};
      blocks_.push_back(
          ResNetBlock(init.child(name).child(std::to_string(i)), options_, shape_, setup));
      list->push_back(blocks_.back());
      in = setup.out;
    }
    register_module(name, list);
  }
}

bool ResNet::has_dropout() const {
  return options_.block_dropout > 0 || options_.drop_path > 0;
}

at::Tensor ResNet::features(const ImageInput& input, const ForwardContext& context) {
  const nn::DropoutSource dropout = context.dropout(input.row_keys);
  const at::Tensor pixels = checked(input);
  at::Tensor x = bn1_ ? nn::convolved(pixels, conv1_, bn1_, kThenRelu) : conv1_->forward(pixels);
  if (shape_.has_large_stem) x = nn::max_pool(x, kStemPool);
  for (const ResNetBlock& block : blocks_) x = block->forward(x, dropout);
  if (final_norm_) x = final_norm_->forward_to(kThenRelu, x);
  return nn::mean_of_plane(x);
}

at::Tensor ResNet::forward(const ImageInput& input, const ForwardContext& context) {
  TORCH_CHECK(head_, "[resnet] a network without labels has no logits");
  return nn::watch(*this, head_->forward(features(input, context)));
}

double ResNet::operations(int64_t height, int64_t width) const {
  nn::Extent size{height, width};
  double sum = conv1_->operations(size);
  size = conv1_->out_of(size);
  if (shape_.has_large_stem) size = nn::pooled_extent(size, kStemPool);
  for (const ResNetBlock& block : blocks_) sum += block->operations(size);
  return head_ ? sum + head_->operations() : sum;
}

}  // namespace stretto::models
