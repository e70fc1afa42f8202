#pragma once

#include <cstdint>

/// What commands are asked of labelling alone. No libtorch.
namespace stretto::tasks {

/// `stretto eval`
struct LabelEvalOptions {
  int64_t decimals = 4;  ///< of each score
};

/// `stretto infer`
struct LabelInferOptions {
  bool with_text = false;  ///< the line behind its label
};

}  // namespace stretto::tasks
