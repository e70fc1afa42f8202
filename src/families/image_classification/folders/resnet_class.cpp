// ResNets (He et al. 2015) as ResNetForImageClassification has them.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "families/image_classification/folders/image_class.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

using models::ResNetOptions;
using models::ResNetShape;
using models::ResNetVersion;

constexpr int64_t kMostChannels = 65536;
constexpr double kTorchEpsilon = 1e-5;  // of every batch norm there

std::vector<int64_t> read_counts(const ConfigReader& config, const char* key,
                                 std::vector<int64_t> fallback, int64_t most) {
  if (!config.has(key)) return fallback;
  const auto& list = config.json().at(key);
  std::vector<int64_t> counts;
  for (const auto& count : list.is_array() ? list : nlohmann::json::array()) {
    const bool fits = count.is_number_integer() && count >= 1 && count <= most;
    if (!fits || counts.size() == 8) config.refuse(key, "is no list of sizes of a few stages");
    counts.push_back(count.get<int64_t>());
  }
  return counts;
}

/// The depth of a network with these blocks; 0 where there is none.
int64_t depth_with(const std::vector<int64_t>& blocks, bool bottleneck) {
  for (const int64_t depth : {18, 34, 50, 101, 152, 200}) {
    ResNetOptions options;
    options.preset = "none";
    options.depth = depth;
    const ResNetShape shape = models::shape_of(options);
    if (shape.blocks == blocks && shape.bottleneck == bottleneck) return depth;
  }
  return 0;
}

void read_sizes(const ConfigReader& config, bool bottleneck, ResNetOptions& options) {
  options.base_width = config.integer("embedding_size", 64, 1, kMostChannels);
  const auto widths =
      read_counts(config, "hidden_sizes", {256, 512, 1024, 2048}, int64_t{kMostChannels} * 16);
  const int64_t planes = widths.empty() ? 0 : widths.front() / (bottleneck ? 4 : 1);
  options.widen_factor = planes / options.base_width;
  const ResNetShape shape = models::shape_of(options);
  bool is_sound = options.widen_factor > 0 && widths.size() == shape.blocks.size();
  for (size_t i = 0; i < widths.size(); ++i) {
    is_sound = is_sound && shape.outer_width(static_cast<int64_t>(i)) == widths[i];
  }
  if (is_sound) return;
  config.refuse("hidden_sizes", "is not a multiple of embedding_size, doubled from stage to stage");
}

models::ImageModelOptions read_resnet(const ConfigReader& config) {
  ResNetOptions options;
  options.preset = "none";
  const std::string type = config.text("layer_type", "bottleneck");
  if (type != "bottleneck" && type != "basic") {
    config.refuse("layer_type", "is `" + printable(type, 60) + "`",
                  "bottleneck and basic are known");
  }
  const auto blocks = read_counts(config, "depths", {3, 4, 6, 3}, kMaxImageLayers);
  options.depth = depth_with(blocks, type == "bottleneck");
  if (options.depth == 0) {
    config.refuse("depths", "is of no ResNet that there is here",
                  "networks of 18, 34, 50, 101, 152 and 200 layers are read");
  }
  options.stem = "imagenet";
  options.shortcut = "B";
  options.groups = 1;
  options.width_per_group = 64;
  read_sizes(config, type == "bottleneck", options);
  options.version = config.flag("downsample_in_bottleneck", false) ? "v1" : "v1.5";
  if (config.flag("downsample_in_first_stage", false)) {
    config.refuse("downsample_in_first_stage", "is true: the first stage keeps the size here");
  }
  const std::string activation = config.text("hidden_act", "relu");
  if (activation != "relu") {
    config.refuse("hidden_act", "is `" + printable(activation, 60) + "`", "relu is known");
  }
  return options;
}

void write_resnet(const models::ImageModelOptions& model, nlohmann::ordered_json& config) {
  const ResNetShape shape = models::shape_of(model.as<ResNetOptions>());
  std::vector<int64_t> widths;
  for (int64_t i = 0; i < shape.num_stages(); ++i) widths.push_back(shape.outer_width(i));
  config["embedding_size"] = shape.stem_width;
  config["hidden_sizes"] = widths;
  config["depths"] = shape.blocks;
  config["layer_type"] = shape.bottleneck ? "bottleneck" : "basic";
  config["hidden_act"] = "relu";
  config["downsample_in_first_stage"] = false;
  config["downsample_in_bottleneck"] = shape.bottleneck && shape.version == ResNetVersion::kV1;
}

std::string resnet_incompatibility(const models::ImageModelOptions& model) {
  if (!model.is<ResNetOptions>()) return "model.name = \"" + model.name() + "\"";
  const auto& options = model.as<ResNetOptions>();
  const ResNetShape shape = models::shape_of(options);
  if (shape.version == ResNetVersion::kV2) return "model.version: its norms stand behind";
  if (!shape.has_large_stem) return "model.stem: its first filters are 7 x 7 pixels";
  if (shape.shortcut != models::ResNetShortcut::kProjection) {
    return "model.shortcut: convolutions stand where the shape changes, and nowhere else";
  }
  if (shape.groups != 1 || shape.width_per_group != 64) {
    return "model.groups and model.width_per_group: its bottlenecks have no groups, and a quarter "
           "of the width";
  }
  if (options.norm_epsilon != kTorchEpsilon) return "model.norm_epsilon: it is 1e-5 there";
  return "";
}

}  // namespace

const ImageClass kResNetClass{.model_type = "resnet",
                              .name = "ResNetForImageClassification",
                              .read = &read_resnet,
                              .write = &write_resnet,
                              .incompatibility = &resnet_incompatibility};

}  // namespace stretto::interchange
