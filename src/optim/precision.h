#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/compute.h"
#include "optim/loss_scaler.h"

namespace stretto::optim {

/// What `train.precision` or `eval.precision` means on a device.
///
/// The masters are the parameters themselves: they, gradients and optimizer state stay fp32 in the
/// arena whatever the precision, and products round their operands on the way (while packing them
/// on a CPU, by a cast on a GPU). So no second copy of the weights exists, a checkpoint does not
/// depend on the precision, and weight decay and the update act on fp32 numbers without the loss
/// scale.
struct Precision {
  kernels::Compute compute = kernels::Compute::kFp32;
  std::string name;  ///< "fp32", "tf32", "mixed_bf16" or "mixed_fp16": what was chosen
  std::string why;   ///< one sentence for the user's log
  /// Training says `why` once where it starts: the choice was left to us, or another one than was
  /// asked for, or its rounding saves no time here.
  bool remarkable = false;
};

/// What the choice depends on.
struct Hardware {
  bool gpu = false;
  bool fast_bf16 = false;  ///< a CPU by kernels::has_fast_bf16(), a GPU from 8.0
  bool fast_fp16 = false;  ///< a GPU of compute capability 7.0 or newer
};
Hardware hardware_of(c10::Device device);

/// `option` is "auto", "auto_fp16", "fp32", "tf32", "mixed_bf16" or "mixed_fp16"; anything else
/// throws Error(kUsage) that lists them. "auto" takes mixed_bf16 where the hardware is fast at it
/// and fp32 elsewhere; "auto_fp16" takes mixed_fp16 on a GPU that is fast at it, as papers of its
/// time do, and elsewhere what "auto" takes; "tf32" on a CPU is fp32.
/// @param key  that has the value, for messages
Precision choose_precision(const std::string& option, const Hardware& hardware,
                           const std::string& key = "train.precision");
Precision choose_precision(const std::string& option, c10::Device device,
                           const std::string& key = "train.precision");

/// make_loss_scaler() with "auto" resolved: fairseq for mixed_fp16, none for the others.
std::unique_ptr<LossScaler> loss_scaler_for(const Precision& precision, LossScaleOptions options,
                                            int64_t update_freq);

}  // namespace stretto::optim
