#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/images/image_model_options.h"
#include "models/option_conflicts.h"

namespace stretto::models {

/// What keeps a model of pictures from being built: a depth that there is none of, sizes that are
/// missing, heads that do not divide the width. Empty for a sound model. No libtorch.
std::vector<OptionConflict> option_conflicts(const ImageModelOptions& model);

/// What keeps a sound model from reading pictures of this size, in pixels.
/// @param size_key  where the size is set, "data.image_size"
std::vector<OptionConflict> image_size_conflicts(const ImageModelOptions& model,
                                                 const std::string& size_key, int64_t height,
                                                 int64_t width);

}  // namespace stretto::models
