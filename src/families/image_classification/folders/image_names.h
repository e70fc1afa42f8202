#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "interchange/names.h"
#include "models/images/image_model_options.h"

/// Names of the tensors of ResNets and vision transformers in files of other packages, and here.
namespace stretto::interchange {

enum class ImageSpelling : uint8_t {
  /// torchvision's; timm's ResNets have the same names.
  kTorchvision,
  /// timm's vision transformers, which DeiT and the models of Google and Meta have too.
  kTimm,
  kTransformers,
  /// ResNets for CIFAR as programs on GitHub have them: `linear`, and `shortcut` for `downsample`.
  kCifar,
};

/// All names of a model in that spelling. Empty where the spelling has none for such a model.
std::vector<NamePair> image_names(const models::ImageModelOptions& model, ImageSpelling spelling);

/// The same of a vision transformer. Their class token is [1, 1, D] and their table of positions
/// [1, length, D]; ours are [D] and [length, D].
std::vector<NamePair> vit_names(const models::VitOptions& options, ImageSpelling spelling);
inline constexpr std::string_view kClassToken = "class_token", kPositions = "positions";

/// Patterns of names that nothing here reads: how many batches a norm has seen, and the pooler that
/// models of `transformers` without a classifier have.
std::span<const std::string_view> unread_image_names();

/// Whether a block of a ResNet has a convolution in its shortcut.
bool has_projection(const models::ResNetShape& shape, int64_t stage, int64_t block);

}  // namespace stretto::interchange
