#pragma once

#include <filesystem>

namespace stretto::interchange {

/// How a folder is read, and how strictly.
struct ImportOptions {
  bool encoder_only = false;   ///< what stands behind the encoder is left out
  bool ignore_extra = false;   ///< tensors that the model does not have are left out
  bool allow_missing = false;  ///< tensors that are not there keep their first weights
  /// A text file with the name of each label, a line each in the order of the model's outputs, for
  /// models whose files do not name them. Empty = they are numbers.
  std::filesystem::path labels = {};
};

}  // namespace stretto::interchange
