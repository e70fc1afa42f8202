#pragma once

namespace stretto::interchange {

/// How strictly a folder is read.
struct ImportOptions {
  bool encoder_only = false;   ///< what stands behind the encoder is left out
  bool ignore_extra = false;   ///< tensors that the model does not have are left out
  bool allow_missing = false;  ///< tensors that are not there keep their first weights
};

}  // namespace stretto::interchange
