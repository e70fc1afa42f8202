#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "interchange/tensors.h"
#include "models/images/image_model_options.h"
#include "store/safetensors.h"

namespace stretto::testing {

using Shapes = std::map<std::string, std::vector<int64_t>>;

/// How the tensors of a ResNet are called, with `S`, `B` and `L` for the numbers of stage, block
/// and layer.
struct ResNetNames {
  std::string stem = "conv1", stem_norm = "bn1";
  std::string conv = "layerS.B.convL", norm = "layerS.B.bnL";
  std::string shortcut = "layerS.B.downsample.0", shortcut_norm = "layerS.B.downsample.1";
  std::string head = "fc";
  int64_t first = 1;  ///< number of the first stage and layer
};
inline ResNetNames cifar_names() {
  return {
      .shortcut = "layerS.B.shortcut.0", .shortcut_norm = "layerS.B.shortcut.1", .head = "linear"};
}
inline ResNetNames transformers_names() {
  const std::string block = "resnet.encoder.stages.S.layers.B.";
  return {.stem = "resnet.embedder.embedder.convolution",
          .stem_norm = "resnet.embedder.embedder.normalization",
          .conv = block + "layer.L.convolution",
          .norm = block + "layer.L.normalization",
          .shortcut = block + "shortcut.convolution",
          .shortcut_norm = block + "shortcut.normalization",
          .head = "classifier.1",
          .first = 0};
}

/// The tensors of a ResNet as PyTorch's modules have them.
class ResNetShapes {
 public:
  ResNetShapes(const models::ResNetShape& shape, ResNetNames names, int64_t labels)
      : shape_(shape), names_(std::move(names)) {
    const int64_t size = shape.has_large_stem ? 7 : 3;
    shapes[names_.stem + ".weight"] = {shape.stem_width, 3, size, size};
    add_norm(names_.stem_norm, shape.stem_width);
    int64_t in = shape.stem_width;
    for (int64_t stage = 0; stage < shape.num_stages(); ++stage) {
      for (int64_t block = 0; block < shape.blocks[static_cast<size_t>(stage)]; ++block) {
        add_block(stage, block, in);
        in = shape.outer_width(stage);
      }
    }
    shapes[names_.head + ".weight"] = {labels, in};
    shapes[names_.head + ".bias"] = {labels};
  }

  Shapes shapes;

 private:
  std::string named(const std::string& pattern, int64_t stage, int64_t block, int64_t layer) const {
    std::string name;
    for (const char c : pattern) {
      if (c == 'S') name += std::to_string(stage + names_.first);
      if (c == 'B') name += std::to_string(block);
      if (c == 'L') name += std::to_string(layer + names_.first);
      if (c != 'S' && c != 'B' && c != 'L') name += c;
    }
    return name;
  }
  void add_norm(const std::string& name, int64_t channels) {
    for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) {
      shapes[name + part] = {channels};
    }
  }
  void add_block(int64_t stage, int64_t block, int64_t in) {
    const int64_t inner = shape_.inner_width(stage), out = shape_.outer_width(stage);
    const auto add = [&](int64_t layer, const std::vector<int64_t>& weight) {
      shapes[named(names_.conv, stage, block, layer) + ".weight"] = weight;
      add_norm(named(names_.norm, stage, block, layer), weight[0]);
    };
    if (shape_.bottleneck) {
      add(0, {inner, in, 1, 1});
      add(1, {inner, inner / shape_.groups, 3, 3});
      add(2, {out, inner, 1, 1});
    } else {
      add(0, {inner, in, 3, 3});
      add(1, {out, inner, 3, 3});
    }
    const bool projects = shape_.shortcut == models::ResNetShortcut::kAllProjections ||
                          (shape_.shortcut == models::ResNetShortcut::kProjection && in != out);
    if (!projects) return;
    shapes[named(names_.shortcut, stage, block, 0) + ".weight"] = {out, in, 1, 1};
    add_norm(named(names_.shortcut_norm, stage, block, 0), out);
  }

  models::ResNetShape shape_;
  ResNetNames names_;
};

inline models::ResNetOptions resnet_of_depth(int64_t depth, int64_t base_width = 0) {
  models::ResNetOptions options;
  options.preset = "none";
  options.depth = depth;
  options.base_width = base_width;
  return options;
}

/// A ResNet of 18 layers that begins with two channels, and three classes.
inline Shapes small_resnet(const ResNetNames& names = {}) {
  return ResNetShapes(models::shape_of(resnet_of_depth(18, 2)), names, 3).shapes;
}

/// A vision transformer with two layers of width 8, two heads, patches of 4 x 4 of pictures of
/// 8 x 8 pixels, and three classes.
inline Shapes small_vit() {
  Shapes shapes{{"patch_embed.proj.weight", {8, 3, 4, 4}},
                {"patch_embed.proj.bias", {8}},
                {"cls_token", {1, 1, 8}},
                {"pos_embed", {1, 5, 8}},
                {"norm.weight", {8}},
                {"norm.bias", {8}},
                {"head.weight", {3, 8}},
                {"head.bias", {3}}};
  for (const char* layer : {"blocks.0.", "blocks.1."}) {
    const std::string its(layer);
    const auto add = [&](const std::string& name, const std::vector<int64_t>& weight) {
      shapes[its + name + ".weight"] = weight;
      shapes[its + name + ".bias"] = {weight[0]};
    };
    add("norm1", {8});
    add("attn.qkv", {24, 8});
    add("attn.proj", {8, 8});
    add("norm2", {8});
    add("mlp.fc1", {12, 8});
    add("mlp.fc2", {8, 12});
  }
  return shapes;
}

/// Tensors of these shapes without bytes, for whoever looks at shapes alone.
struct ShapesAlone {
  explicit ShapesAlone(const Shapes& shapes) {
    for (const auto& [name, shape] : shapes) {
      views.push_back({name, store::DType::kF32, shape, {}});
    }
    for (const auto& view : views) by_name.emplace(view.name, &view);
  }
  ShapesAlone(const ShapesAlone&) = delete;
  ShapesAlone& operator=(const ShapesAlone&) = delete;

  std::vector<store::TensorView> views;
  interchange::TensorsByName by_name;
};

}  // namespace stretto::testing
