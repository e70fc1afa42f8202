#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "store/checkpoint.h"
#include "store/safetensors.h"

/// Weights for a model that does not train. Training loads them into its arena
/// (runs/checkpoint_tensors.h).
namespace stretto::runs {

/// What becomes of packed tensors (store/quantised_file.h).
enum class PackedAs : uint8_t {
  kFaster,   ///< they stay codes where products with them are faster here than fp32, else numbers
  kCodes,    ///< they stay codes wherever a module can take them (nn/compressed.h)
  kNumbers,  ///< fp32 in memory
};

/// By its name in `run.packed_weights`: "auto", "codes" or "numbers".
PackedAs packed_as(std::string_view name);

/// Copies each tensor of a model file by name into the module's parameter or buffer, which stays
/// where it is, on its device and in its dtype: F64, F32, F16 and BF16 are converted (rounded to
/// nearest), packed tensors become numbers, or codes that take the parameter's place. A tied
/// parameter has one tensor in the file, under its first name. Beside the module's weights this
/// needs memory for one tensor at most.
///
/// @param where  the file, for messages
/// @param left_out  pattern (base/name_pattern.h) of tensors that the file may have beyond the
///                  module's: "head.*" where only the encoder is loaded
/// Throws Error(kBadData) that lists what is missing, not in the module, of another shape, or of
/// integers, and a packed tensor that is damaged; then nothing is copied. Throws Error(kNumeric)
/// that names the first tensor with a value that is infinite or NaN: no output of such a model
/// means anything. Warns where kCodes is asked of a file without packed tensors.
void load_weights(const store::SafetensorsFile& file, const std::string& where,
                  torch::nn::Module& module, std::string_view left_out = "",
                  PackedAs packed = PackedAs::kFaster);

/// The same from the model file of a checkpoint.
void load_weights(const store::LoadedCheckpoint& checkpoint, torch::nn::Module& module,
                  std::string_view left_out = "", PackedAs packed = PackedAs::kFaster);

}  // namespace stretto::runs
