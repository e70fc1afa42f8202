#pragma once

#include <string>

#include "families/image_classification/folders/image_description.h"

namespace stretto::interchange {

class ConfigReader;

/// preprocessor_config.json of `transformers`: what ConvNextImageProcessor (ResNets),
/// ViTImageProcessor, and those of the form of BitImageProcessor do to a picture.
/// Throws Error(kBadData) that names the key for whatever is done otherwise here.
ImagePreprocessing read_image_processor(const ConfigReader& config);
/// The same file for a model of this `model_type`, "resnet" or "vit".
std::string write_image_processor(const ImagePreprocessing& pictures,
                                  const std::string& model_type);
/// Why there is no such file that says the same; empty where there is.
std::string processor_incompatibility(const ImagePreprocessing& pictures,
                                      const std::string& model_type);

/// `pretrained_cfg` of timm, or a config.json that has its keys at the top.
/// @param only_size  of a model that takes no other; 0 = as `input_size` says
ImagePreprocessing read_timm_pictures(const ConfigReader& config, int64_t only_size);
/// The share of the resized shorter side that is shown, `crop_pct`.
double crop_share(const ImagePreprocessing& pictures);

}  // namespace stretto::interchange
