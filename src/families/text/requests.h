#pragma once

#include <cstdint>
#include <string>

/// What commands are asked of tasks on encoded texts; no libtorch.
namespace stretto::tasks {

/// `stretto embed`
struct EmbedArguments {
  std::string output;            ///< a .npy file; empty = JSON on stdout
  std::string pooling = "mean";  ///< or "cls"
  bool normalize = false;
  int64_t batch_tokens = 0;  ///< of one pass; 0 = as fits the device
  int64_t max_tokens = 0;    ///< of a line, special ones included; 0 = data.max_text_tokens
};

/// What a model of encoded texts is made for, in `stretto plan`.
struct TextSizes {
  int64_t rows = 0;     ///< of the embedding table
  double tokens = 128;  ///< of a sequence, its mean
};

}  // namespace stretto::tasks
