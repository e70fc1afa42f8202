#pragma once

#include <filesystem>
#include <string>

namespace stretto::interchange {

/// How a model folder of the package `sentence-transformers` makes one vector of a text.
struct EmbedRecipe {
  std::string options;  ///< those of `stretto embed`: "--pooling mean --normalize"; or empty
  std::string problem;  ///< why there are none, for a warning; empty where modules.json is missing
};

/// Reads modules.json, and the config.json of its module Pooling: `1_Pooling/config.json`. Weights
/// do not depend on them, so that a file which cannot be read is a problem that names the place,
/// and no Error. So is what `embed` does not make: another pooling, several, or further modules.
EmbedRecipe read_embed_recipe(const std::filesystem::path& folder);

}  // namespace stretto::interchange
