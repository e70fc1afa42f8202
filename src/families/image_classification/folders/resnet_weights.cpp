#include "families/image_classification/folders/resnet_weights.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "families/image_classification/folders/image_description.h"
#include "families/image_classification/folders/weight_shapes.h"

namespace stretto::interchange {
namespace {

using models::ResNetOptions;
using models::ResNetShape;

[[noreturn]] void no_such_resnet(const std::string& where, const std::string& what) {
  throw Error(ExitCode::kBadData, where + ": a ResNet that there is none of here: " + what,
              "ResNets of 18, 34, 50, 101, 152 and 200 layers, ResNeXts, wide ResNets, and those "
              "for CIFAR of 6 n + 2 layers are read");
}

std::string block_name(int64_t stage, int64_t block) {
  return "layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".";
}

std::vector<int64_t> blocks_of(const TensorsByName& tensors) {
  std::vector<int64_t> blocks;
  constexpr int64_t kMostStages = 4;
  while (std::ssize(blocks) < kMostStages) {
    const std::string stage = "layer" + std::to_string(blocks.size() + 1) + ".";
    const int64_t count = count_numbered(tensors, stage, ".conv1.weight");
    if (count == 0) break;
    blocks.push_back(count);
  }
  return blocks;
}

/// The depth of a network with these blocks; 0 where there is none.
int64_t depth_of_blocks(const std::vector<int64_t>& blocks, bool bottleneck) {
  // 50 layers are 6 n + 2 and have four stages; wide networks count two more.
  const int64_t three = blocks.size() == 3 ? 6 * blocks.front() : 0;
  for (const int64_t depth : {three + 2, three + 4, int64_t{18}, int64_t{34}, int64_t{50},
                              int64_t{101}, int64_t{152}, int64_t{200}}) {
    ResNetOptions options;
    options.preset = "none";
    options.depth = depth;
    const ResNetShape shape = models::shape_of(options);
    if (shape.blocks == blocks && shape.bottleneck == bottleneck) return depth;
  }
  return 0;
}

/// Reads a ResNet's tensors.
class ResNetReader {
 public:
  ResNetReader(const TensorsByName& tensors, const std::string& where)
      : tensors_(tensors), where_(where) {}

  ImageWeights read() {
    options_.preset = "none";
    is_cifar_ = tensors_.contains("linear.weight");
    const auto blocks = blocks_of(tensors_);
    bottleneck_ = has("layer1.0.conv3.weight");
    options_.depth = depth_of_blocks(blocks, bottleneck_);
    if (options_.depth == 0) refuse_blocks(blocks);
    read_stem();
    read_widths();
    read_shortcuts(blocks);
    name_preset();
    const auto& head = shape(is_cifar_ ? "linear.weight" : "fc.weight", 2);
    return {.name = options_.preset == "none" ? "ResNet" : options_.preset,
            .model = options_,
            .spelling = is_cifar_ ? ImageSpelling::kCifar : ImageSpelling::kTorchvision,
            .num_labels = head[0]};
  }

 private:
  bool has(const std::string& name) const { return tensors_.contains(name); }
  const std::vector<int64_t>& shape(const std::string& name, size_t dimensions) const {
    return shape_of_weight(tensors_, name, dimensions, where_);
  }
  const char* shortcut() const { return is_cifar_ ? "shortcut.0.weight" : "downsample.0.weight"; }

  [[noreturn]] void refuse_blocks(const std::vector<int64_t>& blocks) const {
    std::vector<std::string> counts;
    for (const int64_t count : blocks) counts.push_back(std::to_string(count));
    no_such_resnet(where_, "its stages have " + join(counts, ", ") + " blocks of " +
                               (bottleneck_ ? "three" : "two") + " convolutions");
  }

  void read_stem() {
    const auto& stem = shape("conv1.weight", 4);
    if (stem[1] != kImageChannels) {
      no_such_resnet(where_, "it reads pictures of " + counted(stem[1], "channel"));
    }
    if (stem[2] != stem[3] || (stem[2] != 7 && stem[2] != 3)) {
      no_such_resnet(where_, "its first filters are " + std::to_string(stem[2]) + " x " +
                                 std::to_string(stem[3]) + " pixels");
    }
    options_.stem = stem[2] == 7 ? "imagenet" : "cifar";
    options_.base_width = stem[0];
  }

  // A bottleneck's inner width is planes * width_per_group / 64 * groups.
  void read_widths() {
    const auto& first = shape("layer1.0.conv1.weight", 4);
    const auto& second = shape("layer1.0.conv2.weight", 4);
    int64_t planes = first[0];
    options_.groups = 1;
    options_.width_per_group = 64;
    if (bottleneck_) {
      const int64_t inner = first[0];
      planes = shape("layer1.0.conv3.weight", 4)[0] / 4;
      options_.groups = inner / second[1];
      if (planes > 0 && options_.groups > 0) {
        options_.width_per_group = inner / options_.groups * 64 / planes;
      }
    }
    options_.widen_factor = planes / options_.base_width;
    const ResNetShape found = models::shape_of(options_);
    if (planes == 0 || found.stage_width != planes || found.inner_width(0) != first[0]) {
      no_such_resnet(where_, "its widths are " + std::to_string(options_.base_width) + " and " +
                                 std::to_string(first[0]) + ", and " + std::to_string(planes) +
                                 " behind a block");
    }
  }

  void read_shortcuts(const std::vector<int64_t>& blocks) {
    const bool projects = has(block_name(1, 0) + shortcut());
    const bool projects_all = blocks.front() > 1 && has(block_name(0, 1) + shortcut());
    options_.shortcut = projects_all ? "C" : projects ? "B" : "A";
  }

  /// Names the published network with these sizes, if there is one.
  void name_preset() {
    for (const auto& preset : models::kResNetPresets) {
      ResNetOptions published;
      published.preset = std::string(preset.name);
      const ResNetShape theirs = models::shape_of(published), ours = models::shape_of(options_);
      const bool is_it =
          theirs.blocks == ours.blocks && theirs.bottleneck == ours.bottleneck &&
          theirs.version != models::ResNetVersion::kV2 && theirs.shortcut == ours.shortcut &&
          theirs.has_large_stem == ours.has_large_stem && theirs.stem_width == ours.stem_width &&
          theirs.stage_width == ours.stage_width && theirs.groups == ours.groups &&
          theirs.width_per_group == ours.width_per_group;
      if (!is_it) continue;
      options_ = published;
      return;
    }
  }

  const TensorsByName& tensors_;
  const std::string& where_;
  ResNetOptions options_;
  bool bottleneck_ = false, is_cifar_ = false;
};

}  // namespace

bool looks_like_resnet(const TensorsByName& tensors) {
  return tensors.contains("conv1.weight") && tensors.contains("layer1.0.conv1.weight") &&
         tensors.contains("bn1.running_mean");
}

std::optional<ImageWeights> find_resnet(const TensorsByName& tensors, const std::string& where) {
  if (!looks_like_resnet(tensors)) return std::nullopt;
  return ResNetReader(tensors, where).read();
}

}  // namespace stretto::interchange
