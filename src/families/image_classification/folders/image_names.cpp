#include "families/image_classification/folders/image_names.h"

#include <array>
#include <string>

namespace stretto::interchange {
namespace {

using models::ResNetShape;
using models::ResNetShortcut;

/// How a package calls the parts of a ResNet. Numbers of stages, blocks and layers replace `S`, `B`
/// and `L`; stages and layers are counted from `first_stage` and `first_layer`.
struct ResNetSpelling {
  std::string_view stem, stem_norm;
  std::string_view conv, norm;  ///< of a block
  std::string_view shortcut, shortcut_norm;
  std::string_view head;
  int first_stage = 1, first_layer = 1;
};

constexpr ResNetSpelling kOursOfResNet{.stem = "conv1",
                                       .stem_norm = "bn1",
                                       .conv = "layerS.B.convL",
                                       .norm = "layerS.B.bnL",
                                       .shortcut = "layerS.B.downsample.0",
                                       .shortcut_norm = "layerS.B.downsample.1",
                                       .head = "head"};
constexpr ResNetSpelling kTorchvisionResNet{.stem = "conv1",
                                            .stem_norm = "bn1",
                                            .conv = "layerS.B.convL",
                                            .norm = "layerS.B.bnL",
                                            .shortcut = "layerS.B.downsample.0",
                                            .shortcut_norm = "layerS.B.downsample.1",
                                            .head = "fc"};
constexpr ResNetSpelling kCifarResNet{.stem = "conv1",
                                      .stem_norm = "bn1",
                                      .conv = "layerS.B.convL",
                                      .norm = "layerS.B.bnL",
                                      .shortcut = "layerS.B.shortcut.0",
                                      .shortcut_norm = "layerS.B.shortcut.1",
                                      .head = "linear"};
constexpr ResNetSpelling kTransformersResNet{
    .stem = "resnet.embedder.embedder.convolution",
    .stem_norm = "resnet.embedder.embedder.normalization",
    .conv = "resnet.encoder.stages.S.layers.B.layer.L.convolution",
    .norm = "resnet.encoder.stages.S.layers.B.layer.L.normalization",
    .shortcut = "resnet.encoder.stages.S.layers.B.shortcut.convolution",
    .shortcut_norm = "resnet.encoder.stages.S.layers.B.shortcut.normalization",
    .head = "classifier.1",
    .first_stage = 0,
    .first_layer = 0};

const ResNetSpelling& resnet_spelling(ImageSpelling spelling) {
  switch (spelling) {
    case ImageSpelling::kTransformers:
      return kTransformersResNet;
    case ImageSpelling::kCifar:
      return kCifarResNet;
    case ImageSpelling::kTorchvision:
    case ImageSpelling::kTimm:
      break;
  }
  return kTorchvisionResNet;
}

struct BlockPlace {
  int64_t stage, block, layer = 0;
};

std::string placed(std::string_view pattern, const ResNetSpelling& its, const BlockPlace& place) {
  std::string name;
  for (const char letter : pattern) {
    if (letter == 'S') {
      name += std::to_string(place.stage + its.first_stage);
    } else if (letter == 'B') {
      name += std::to_string(place.block);
    } else if (letter == 'L') {
      name += std::to_string(place.layer + its.first_layer);
    } else {
      name += letter;
    }
  }
  return name;
}

void add_norm(const std::string& norm, std::vector<std::string>& names) {
  for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) {
    names.push_back(norm + part);
  }
}

/// All tensors of a ResNet in a fixed order.
std::vector<std::string> resnet_tensors(const ResNetShape& shape, const ResNetSpelling& its) {
  std::vector<std::string> names{std::string(its.stem) + ".weight"};
  add_norm(std::string(its.stem_norm), names);
  for (int64_t stage = 0; stage < shape.num_stages(); ++stage) {
    for (int64_t block = 0; block < shape.blocks[static_cast<size_t>(stage)]; ++block) {
      BlockPlace place{.stage = stage, .block = block};
      for (; place.layer < (shape.bottleneck ? 3 : 2); ++place.layer) {
        names.push_back(placed(its.conv, its, place) + ".weight");
        add_norm(placed(its.norm, its, place), names);
      }
      if (!has_projection(shape, stage, block)) continue;
      names.push_back(placed(its.shortcut, its, place) + ".weight");
      add_norm(placed(its.shortcut_norm, its, place), names);
    }
  }
  for (const char* part : {".weight", ".bias"}) names.push_back(std::string(its.head) + part);
  return names;
}

std::vector<NamePair> resnet_names(const models::ResNetOptions& options, ImageSpelling spelling) {
  const ResNetShape shape = models::shape_of(options);
  if (shape.version == models::ResNetVersion::kV2) return {};
  const auto theirs = resnet_tensors(shape, resnet_spelling(spelling));
  const auto ours = resnet_tensors(shape, kOursOfResNet);
  std::vector<NamePair> names;
  for (size_t i = 0; i < ours.size(); ++i) {
    names.push_back({.theirs = {theirs[i]}, .ours = ours[i]});
  }
  return names;
}

constexpr std::array<std::string_view, 3> kUnread{"*num_batches_tracked", "*pooler.dense.weight",
                                                  "*pooler.dense.bias"};

}  // namespace

bool has_projection(const ResNetShape& shape, int64_t stage, int64_t block) {
  if (shape.shortcut == ResNetShortcut::kAllProjections) return true;
  if (shape.shortcut == ResNetShortcut::kPadding || block > 0) return false;
  return stage > 0 || shape.stem_width != shape.outer_width(0);
}

std::vector<NamePair> image_names(const models::ImageModelOptions& model, ImageSpelling spelling) {
  if (model.is<models::ResNetOptions>()) {
    return resnet_names(model.as<models::ResNetOptions>(), spelling);
  }
  if (model.is<models::VitOptions>()) {
    return vit_names(model.as<models::VitOptions>(), spelling);
  }
  return {};
}

std::span<const std::string_view> unread_image_names() {
  return kUnread;
}

}  // namespace stretto::interchange
