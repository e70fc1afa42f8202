#include "optim/precision.h"

#include "base/error.h"
#include "kernels/cuda/cuda.h"

namespace stretto::optim {
namespace {

using kernels::Compute;

Precision automatic(const Hardware& hardware) {
  const bool gpu = hardware.gpu;
  if (hardware.fast_bf16)
    return {Compute::kBf16, "mixed_bf16",
            gpu ? "auto: this GPU multiplies bf16 in tensor cores"
                : "auto: this processor multiplies pairs of bf16 (AVX512_BF16)",
            true};
  return {
      Compute::kFp32, "fp32",
      gpu ? "auto: this GPU has no tensor cores for bf16 (they came with compute capability 8.0)"
          : "auto: bf16 products are not faster than fp32 ones on this processor",
      true};
}

Precision automatic_fp16(const Hardware& hardware) {
  if (hardware.gpu && hardware.fast_fp16)
    return {Compute::kFp16, "mixed_fp16", "auto_fp16: this GPU multiplies fp16 in tensor cores",
            true};
  Precision chosen = automatic(hardware);
  chosen.why = std::string("auto_fp16: ") +
               (hardware.gpu ? "this GPU has no tensor cores for fp16 (they came with compute "
                               "capability 7.0)"
                             : "fp16 is for GPUs") +
               "; " + chosen.why;
  return chosen;
}

/// Where half precision rounds but saves no time, the user should know.
Precision mixed(Compute half, const std::string& option, const Hardware& hardware) {
  const std::string products = std::string("products in ") +
                               (half == Compute::kBf16 ? "bf16" : "fp16") + ", all else in fp32";
  const bool fast = half == Compute::kFp16 ? hardware.gpu : hardware.fast_bf16;
  if (fast) return {half, option, products};
  return {half, option,
          products + "; this " + (hardware.gpu ? "GPU" : "processor") +
              " rounds to it and multiplies in fp32: not faster than fp32",
          true};
}

}  // namespace

Hardware hardware_of(c10::Device device) {
  if (!device.is_cuda()) return {.fast_bf16 = kernels::has_fast_bf16()};
  return {.gpu = true,
          .fast_bf16 = kernels::cuda::has_fast_bf16(device),
          .fast_fp16 = kernels::cuda::has_fast_fp16(device)};
}

Precision choose_precision(const std::string& option, const Hardware& hardware,
                           const std::string& key) {
  if (option == "auto") return automatic(hardware);
  if (option == "auto_fp16") return automatic_fp16(hardware);
  if (option == "fp32") return {Compute::kFp32, "fp32", "as " + key + " says"};
  if (option == "tf32") {
    if (hardware.gpu)
      return {Compute::kTf32, "tf32", "fp32 products round their operands to 10 bits of fraction"};
    return {Compute::kFp32, "fp32", "tf32 is arithmetic of GPUs; on a CPU it is fp32", true};
  }
  if (option == "mixed_bf16") return mixed(Compute::kBf16, option, hardware);
  if (option == "mixed_fp16") return mixed(Compute::kFp16, option, hardware);
  throw Error(ExitCode::kUsage, key + ": unknown precision `" + option + "`",
              "known: auto, auto_fp16, fp32, tf32, mixed_bf16, mixed_fp16");
}

Precision choose_precision(const std::string& option, c10::Device device, const std::string& key) {
  return choose_precision(option, hardware_of(device), key);
}

std::unique_ptr<LossScaler> loss_scaler_for(const Precision& precision, LossScaleOptions options,
                                            int64_t update_freq) {
  if (options.name == "auto")
    options.name = precision.compute == Compute::kFp16 ? "fairseq" : "none";
  return make_loss_scaler(options, update_freq);
}

}  // namespace stretto::optim
