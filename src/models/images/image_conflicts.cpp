#include "models/images/image_conflicts.h"

#include <string>
#include <utility>

namespace stretto::models {
namespace {

using Conflicts = std::vector<OptionConflict>;

void add(Conflicts& found, std::vector<std::string> keys, std::string what, std::string hint) {
  found.push_back({std::move(keys), std::move(what), std::move(hint)});
}

Conflicts conflicts_of_kind(const ResNetOptions& options) {
  Conflicts found;
  const ResNetShape shape = shape_of(options);
  if (shape.blocks.empty()) {
    add(found, {"model.depth", "model.preset"},
        depth_of(options) == 0
            ? "neither model.preset nor model.depth says how deep the network is"
            : "there is no residual network of " + std::to_string(depth_of(options)) + " layers",
        "use 18, 34, 50, 101, 152 or 200, or with three stages 6 n + 2 or 6 n + 4 layers (20, 32, "
        "44, 56, 110; 16, 28, 40)");
    return found;
  }
  const bool has_groups = shape.groups != 1 || shape.width_per_group != 64;
  if (has_groups && !shape.bottleneck) {
    add(found, {options.groups > 0 ? "model.groups" : "model.width_per_group", "model.depth"},
        "blocks of two 3 x 3 convolutions have no groups, and depth " +
            std::to_string(depth_of(options)) + " has such ones",
        "use a depth of 50 or more with bottlenecks, or leave the key out");
  } else if (shape.inner_width(0) == 0 || shape.inner_width(0) % shape.groups != 0) {
    add(found, {"model.width_per_group", "model.groups", "model.base_width"},
        "the first stage would have " + std::to_string(shape.inner_width(0)) + " channels in " +
            std::to_string(shape.groups) + " groups",
        "make base_width / 64 times width_per_group a whole number");
  }
  if (options.zero_gamma && shape.version == ResNetVersion::kV2) {
    add(found, {"model.zero_gamma", "model.version"},
        "blocks of version v2 end in a convolution, not in a norm",
        "leave zero_gamma out, or use version v1.5");
  }
  return found;
}

Conflicts conflicts_of_kind(const AlexNetOptions& /*options*/) {
  return {};
}

Conflicts conflicts_of_kind(const CifarNetOptions& /*options*/) {
  return {};
}

Conflicts conflicts_of_kind(const AirbenchOptions& options) {
  Conflicts found;
  const AirbenchSizes sizes = sizes_of(options);
  const auto need = [&](const char* key, int64_t size) {
    if (size == 0) {
      add(found, {key, "model.preset"}, "model.preset = \"none\" gives no size",
          "set it, or use a preset such as \"airbench94\"");
    }
  };
  need("model.width1", sizes.width1);
  need("model.width2", sizes.width2);
  need("model.width3", sizes.width3);
  need("model.convolutions", sizes.convolutions);
  if (sizes.convolutions == 1) {
    add(found, {"model.convolutions"}, "a group has 2 or 3 convolutions, got 1", "use 2 or 3");
  }
  return found;
}

Conflicts conflicts_of_kind(const VitOptions& options) {
  Conflicts found;
  const VitSizes sizes = sizes_of(options);
  const auto need = [&](const char* key, int64_t size) {
    if (size == 0) {
      add(found, {key, "model.preset"}, "model.preset = \"none\" gives no size",
          "set it, or use a preset such as \"vit_base_patch16_224\"");
    }
  };
  need("model.num_layers", sizes.num_layers);
  need("model.d_model", sizes.d_model);
  need("model.num_heads", sizes.num_heads);
  need("model.patch_size", sizes.patch_size);
  need("model.image_size", sizes.image_size);
  if (!found.empty()) return found;
  if (sizes.d_model % sizes.num_heads != 0) {
    add(found, {"model.num_heads", "model.d_model"},
        std::to_string(sizes.num_heads) +
            " heads do not divide d_model = " + std::to_string(sizes.d_model),
        "use a number of heads that divides it");
  }
  if (sizes.image_size % sizes.patch_size != 0) {
    add(found, {"model.image_size", "model.patch_size"},
        "patches of " + std::to_string(sizes.patch_size) + " pixels do not divide " +
            std::to_string(sizes.image_size),
        "use a multiple of patch_size");
  }
  return found;
}

}  // namespace

Conflicts option_conflicts(const ImageModelOptions& model) {
  return model.visit([](const auto& kind) { return conflicts_of_kind(kind); });
}

Conflicts image_size_conflicts(const ImageModelOptions& model, const std::string& size_key,
                               int64_t height, int64_t width) {
  Conflicts found;
  std::string problem = image_size_problem(image_limits_of(model), height, width);
  if (!problem.empty()) {
    add(found, {size_key, "model"}, std::move(problem), "use another size or another model");
  }
  return found;
}

}  // namespace stretto::models
