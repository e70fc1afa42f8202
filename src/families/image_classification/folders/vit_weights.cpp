#include "families/image_classification/folders/vit_weights.h"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "families/image_classification/folders/image_description.h"
#include "families/image_classification/folders/weight_shapes.h"

namespace stretto::interchange {
namespace {

using models::VitOptions;
using models::VitSizes;

/// What the two spellings call the tensors whose shapes are looked at.
struct VitLandmarks {
  ImageSpelling spelling;
  std::string_view patches, class_token, positions;
  std::string_view layer;  ///< in front of a layer's number
  std::string_view up;     ///< behind it: the first map of the feed-forward part
  std::string_view head;
};
constexpr std::array<VitLandmarks, 2> kLandmarks{{
    {ImageSpelling::kTorchvision, "conv_proj.weight", "class_token", "encoder.pos_embedding",
     "encoder.layers.encoder_layer_", ".mlp.0.weight", "heads.head.weight"},
    {ImageSpelling::kTimm, "patch_embed.proj.weight", "cls_token", "pos_embed", "blocks.",
     ".mlp.fc1.weight", "head.weight"},
}};

struct PublishedHeads {
  int64_t d_model, num_heads;
};
constexpr std::array<PublishedHeads, 5> kPublishedHeads{
    {{192, 3}, {384, 6}, {768, 12}, {1024, 16}, {1280, 16}}};

[[noreturn]] void no_such_vit(const std::string& where, const std::string& what,
                              const std::string& advice) {
  throw Error(ExitCode::kBadData,
              where + ": a vision transformer that there is none of here: " + what, advice);
}

const VitLandmarks* find_landmarks(const TensorsByName& tensors) {
  for (const auto& known : kLandmarks) {
    const bool has_all = tensors.contains(std::string(known.patches)) &&
                         tensors.contains(std::string(known.layer) + "0" + std::string(known.up));
    if (has_all) return &known;
  }
  return nullptr;
}

int64_t heads_of(int64_t d_model, const std::string& where) {
  for (const auto& published : kPublishedHeads) {
    if (published.d_model == d_model) return published.num_heads;
  }
  no_such_vit(where,
              "no published model has a width of " + std::to_string(d_model) +
                  ", so that nothing tells the number of its heads",
              "give a folder with a config.json: timm's, with `num_heads` in `model_args`, or that "
              "of transformers");
}

/// Patches of a side, of a table of positions.
int64_t grid_of(int64_t num_patches, const std::string& where) {
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(num_patches))));
  if (side > 0 && side * side == num_patches) return side;
  no_such_vit(where, counted(num_patches, "position") + " are no square of patches",
              "models of square pictures are read");
}

}  // namespace

std::string vit_preset_of(const VitSizes& sizes) {
  for (const auto& preset : models::kVitPresets) {
    const auto& its = preset.sizes;
    const bool is_it = its.num_layers == sizes.num_layers && its.d_model == sizes.d_model &&
                       its.num_heads == sizes.num_heads && its.ffn_dim == sizes.ffn_dim &&
                       its.patch_size == sizes.patch_size;
    if (is_it && its.image_size == sizes.image_size) return std::string(preset.name);
  }
  return "";
}

bool looks_like_vit(const TensorsByName& tensors) {
  return find_landmarks(tensors) != nullptr;
}

std::optional<ImageWeights> find_vit(const TensorsByName& tensors, int64_t num_heads,
                                     const std::string& where) {
  const VitLandmarks* its = find_landmarks(tensors);
  if (its == nullptr) return std::nullopt;
  const auto shape = [&](std::string_view name, size_t dimensions) -> const auto& {
    return shape_of_weight(tensors, std::string(name), dimensions, where);
  };
  const auto& patches = shape(its->patches, 4);
  if (patches[1] != kImageChannels || patches[2] != patches[3]) {
    no_such_vit(where,
                "its patches are " + std::to_string(patches[2]) + " x " +
                    std::to_string(patches[3]) + " pixels of " + counted(patches[1], "channel"),
                "square patches of pictures with three channels are read");
  }
  const bool has_token = tensors.contains(std::string(its->class_token));
  const auto& positions = shape(its->positions, 3);
  const int64_t num_patches = positions[1] - (has_token ? 1 : 0);
  VitSizes sizes{
      .num_layers = count_numbered(tensors, std::string(its->layer), std::string(its->up)),
      .d_model = patches[0],
      .num_heads = num_heads > 0 ? num_heads : heads_of(patches[0], where),
      .ffn_dim = shape(std::string(its->layer) + "0" + std::string(its->up), 2)[0],
      .patch_size = patches[2],
      .image_size = patches[2] * grid_of(num_patches, where)};
  VitOptions options;
  options.preset = vit_preset_of(sizes);
  if (options.preset.empty()) {
    options.preset = "none";
    options.num_layers = sizes.num_layers;
    options.d_model = sizes.d_model;
    options.num_heads = sizes.num_heads;
    options.ffn_dim = sizes.ffn_dim;
    options.patch_size = sizes.patch_size;
    options.image_size = sizes.image_size;
  }
  options.pooling = has_token ? "class_token" : "mean";
  return ImageWeights{.name = options.preset == "none" ? "VisionTransformer" : options.preset,
                      .model = options,
                      .spelling = its->spelling,
                      .num_labels = shape(its->head, 2)[0]};
}

}  // namespace stretto::interchange
