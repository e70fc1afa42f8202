#include "families/image_classification/folders/image_processor.h"

#include <array>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "image/views.h"
#include "interchange/config_reader.h"

namespace stretto::interchange {
namespace {

constexpr int64_t kMostPixels = 16384;
constexpr double kByteScale = 1.0 / 255;
constexpr double kUsualShare = 224.0 / 256;
// ConvNextImageProcessor cuts nothing out of pictures of this size and above.
constexpr int64_t kSquashedFrom = 384;

/// Numbers of Pillow's filters.
struct PillowFilter {
  int64_t number;
  std::string_view name;
};
constexpr std::array<PillowFilter, 3> kFilters{{{2, "bilinear"}, {3, "bicubic"}, {4, "box"}}};

std::string read_filter(const ConfigReader& config) {
  const int64_t number = config.integer("resample", 2, 0, 5);
  for (const auto& filter : kFilters) {
    if (filter.number == number) return std::string(filter.name);
  }
  config.refuse("resample", "is " + std::to_string(number),
                "bilinear (2), bicubic (3) and box (4) are known");
}

std::vector<double> read_channels(const ConfigReader& config, const char* key,
                                  const std::vector<double>& fallback) {
  if (!config.has(key)) return fallback;
  const auto& list = config.json().at(key);
  const bool is_list = list.is_array() && list.size() == size_t{kImageChannels};
  if (!is_list) config.refuse(key, "has no number for each of three channels");
  std::vector<double> values;
  for (const auto& value : list) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      config.refuse(key, "has no number for each of three channels");
    }
    values.push_back(value.get<double>());
  }
  return values;
}

void read_colours(const ConfigReader& config, const char* mean_key, const char* deviation_key,
                  ImagePreprocessing& pictures) {
  pictures.mean = read_channels(config, mean_key, pictures.mean);
  pictures.std = read_channels(config, deviation_key, pictures.std);
  for (const double deviation : pictures.std) {
    if (!(deviation > 0)) config.refuse(deviation_key, "is not above 0");
  }
}

/// A size as files have it: a number, or an object.
struct StatedSize {
  int64_t shorter = 0;  ///< 0 = not said
  int64_t height = 0, width = 0;
};

StatedSize read_size(const ConfigReader& config, const char* key, bool number_is_shorter) {
  if (!config.has(key)) config.refuse(key, "is missing", "the file is not whole");
  if (config.json().at(key).is_number()) {
    const int64_t size = config.integer(key, 1, kMostPixels);
    return number_is_shorter ? StatedSize{.shorter = size}
                             : StatedSize{.height = size, .width = size};
  }
  const ConfigReader object = config.object(key);
  if (object.has("shortest_edge")) {
    return {.shorter = object.integer("shortest_edge", 1, kMostPixels)};
  }
  return {.height = object.integer("height", 1, kMostPixels),
          .width = object.integer("width", 1, kMostPixels)};
}

int64_t square_side(const ConfigReader& config, const char* key, const StatedSize& size) {
  if (size.height != size.width || size.height == 0) {
    config.refuse(key, "is no square", "models of square pictures are read");
  }
  return size.height;
}

/// The kind of the processor: "ConvNext", "ViT", …
std::string kind_of(const ConfigReader& config) {
  std::string name = config.text("image_processor_type", "");
  if (name.empty()) name = config.text("feature_extractor_type", "");
  for (const char* ending : {"Fast", "Pil", "ImageProcessor", "FeatureExtractor"}) {
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view(ending).size());
  }
  return name;
}

/// Defaults of most classes differ from version to version.
void require_stated(const ConfigReader& config, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (config.has(key)) continue;
    config.refuse(key, "is missing, and its default differs between versions of transformers",
                  "save the processor again, or add the key");
  }
}

void read_convnext(const ConfigReader& config, ImagePreprocessing& pictures) {
  const auto stated = read_size(config, "size", /*number_is_shorter=*/true);
  pictures.size = stated.shorter > 0 ? stated.shorter : square_side(config, "size", stated);
  if (pictures.size >= kSquashedFrom) {
    pictures.squashes = true;
    return;
  }
  const double share = config.number("crop_pct", kUsualShare);
  if (!(share > 0.05 && share <= 1)) config.refuse("crop_pct", "is not within 0.05 and 1");
  pictures.resize = static_cast<int64_t>(static_cast<double>(pictures.size) / share);
}

void read_with_crop(const ConfigReader& config, ImagePreprocessing& pictures) {
  const auto crop = read_size(config, "crop_size", /*number_is_shorter=*/false);
  pictures.size = square_side(config, "crop_size", crop);
  const auto stated = read_size(config, "size", /*number_is_shorter=*/true);
  if (stated.shorter == 0) {
    config.refuse("size", "changes the proportions of a picture before its middle is cut out");
  }
  if (stated.shorter < pictures.size) {
    config.refuse("crop_size", "is larger than what is cut out of, and its margin would be black");
  }
  pictures.resize = stated.shorter;
}

nlohmann::ordered_json stated_as(const char* key, int64_t size) {
  auto object = nlohmann::ordered_json::object();
  object[key] = size;
  return object;
}

nlohmann::ordered_json stated_square(int64_t size) {
  auto object = stated_as("height", size);
  object["width"] = size;
  return object;
}

int64_t resized_side(const ImagePreprocessing& pictures) {
  return pictures.resize > 0 ? pictures.resize : image::default_test_resize(pictures.size);
}

}  // namespace

ImagePreprocessing read_image_processor(const ConfigReader& config) {
  ImagePreprocessing pictures;
  if (!config.flag("do_resize", true)) {
    config.refuse("do_resize", "is false: pictures of any size come here");
  }
  if (!config.flag("do_rescale", true) ||
      std::abs(config.number("rescale_factor", kByteScale) - kByteScale) > 1e-9) {
    config.refuse("rescale_factor", "is not 1/255, by which bytes are multiplied here");
  }
  const std::string kind = kind_of(config);
  if (kind == "ConvNext") {
    read_convnext(config, pictures);
  } else if (config.flag("do_center_crop", kind == "Bit" || kind == "CLIP" || kind == "DeiT")) {
    read_with_crop(config, pictures);
  } else if (kind == "ViT" || kind.empty()) {
    const auto stated = read_size(config, "size", /*number_is_shorter=*/false);
    if (stated.shorter > 0) config.refuse("size", "keeps proportions, and nothing is cut out");
    pictures.size = square_side(config, "size", stated);
    pictures.squashes = true;
  } else {
    config.refuse("image_processor_type", "is of the kind `" + printable(kind, 60) + "`",
                  "ConvNextImageProcessor, ViTImageProcessor and those with do_center_crop are "
                  "read");
  }
  const bool is_vit = kind == "ViT" || kind.empty();
  if (!is_vit) require_stated(config, {"resample"});
  pictures.interpolation = read_filter(config);
  if (!config.flag("do_normalize", true)) {
    pictures.mean = {0, 0, 0};
    pictures.std = {1, 1, 1};
    return pictures;
  }
  if (is_vit) pictures.mean = pictures.std = {0.5, 0.5, 0.5};
  if (!is_vit) require_stated(config, {"image_mean", "image_std"});
  read_colours(config, "image_mean", "image_std", pictures);
  return pictures;
}

double crop_share(const ImagePreprocessing& pictures) {
  if (pictures.squashes) return 1;
  // Readers round size / share down.
  const auto size = static_cast<double>(pictures.size),
             resize = static_cast<double>(resized_side(pictures));
  return std::floor(size / (size / resize)) == resize ? size / resize : size / (resize + 0.25);
}

std::string processor_incompatibility(const ImagePreprocessing& pictures,
                                      const std::string& model_type) {
  if (model_type == "vit" && !pictures.squashes) return "";
  if (model_type == "resnet" && pictures.squashes != (pictures.size >= kSquashedFrom)) {
    return "augment.test_crop: its processor squashes pictures of 384 pixels and above, and cuts "
           "out the middle of smaller ones";
  }
  return "";
}

std::string write_image_processor(const ImagePreprocessing& pictures,
                                  const std::string& model_type) {
  auto config = nlohmann::ordered_json::object();
  int64_t filter = 2;
  for (const auto& known : kFilters) {
    if (known.name == pictures.interpolation) filter = known.number;
  }
  config["do_resize"] = true;
  if (model_type == "resnet") {
    config["image_processor_type"] = "ConvNextImageProcessor";
    config["size"] = stated_as("shortest_edge", pictures.size);
    config["crop_pct"] = crop_share(pictures);
  } else if (pictures.squashes) {
    config["image_processor_type"] = "ViTImageProcessor";
    config["size"] = stated_square(pictures.size);
  } else {
    config["image_processor_type"] = "BitImageProcessor";
    config["size"] = stated_as("shortest_edge", resized_side(pictures));
    config["do_center_crop"] = true;
    config["crop_size"] = stated_square(pictures.size);
    config["do_convert_rgb"] = true;
  }
  config["resample"] = filter;
  config["do_rescale"] = true;
  config["rescale_factor"] = kByteScale;
  config["do_normalize"] = true;
  config["image_mean"] = pictures.mean;
  config["image_std"] = pictures.std;
  return config.dump(2) + "\n";
}

ImagePreprocessing read_timm_pictures(const ConfigReader& config, int64_t only_size) {
  ImagePreprocessing pictures;
  if (config.has("input_size")) {
    const auto& list = config.json().at("input_size");
    const bool is_list = list.is_array() && list.size() == 3 && list[1].is_number_integer() &&
                         list[1] == list[2] && list[0] == kImageChannels;
    if (!is_list || list[1] < 1 || list[1] > kMostPixels) {
      config.refuse("input_size", "is not [3, SIZE, SIZE]", "models of square pictures are read");
    }
    pictures.size = list[1].get<int64_t>();
  }
  if (only_size > 0) pictures.size = only_size;
  const std::string filter = config.text("interpolation", "bilinear");
  if (filter != "bilinear" && filter != "bicubic" && filter != "box") {
    config.refuse("interpolation", "is `" + printable(filter, 60) + "`",
                  "bilinear, bicubic and box are known");
  }
  pictures.interpolation = filter;
  const double share = config.number("crop_pct", kUsualShare);
  if (!(share > 0.05 && share <= 1)) config.refuse("crop_pct", "is not within 0.05 and 1");
  const std::string mode = config.text("crop_mode", "center");
  pictures.squashes = mode == "squash" && share == 1;
  if (mode != "center" && !pictures.squashes) {
    config.refuse("crop_mode", "is `" + printable(mode, 60) + "`",
                  "`center`, and `squash` of whole pictures, are known");
  }
  if (!pictures.squashes) {
    pictures.resize = static_cast<int64_t>(static_cast<double>(pictures.size) / share);
  }
  read_colours(config, "mean", "std", pictures);
  return pictures;
}

}  // namespace stretto::interchange
