#include "optim/precision.h"

#include "base/error.h"
#include "kernels/cuda/cuda.h"

namespace stretto::optim {
namespace {

using kernels::Compute;

Precision automatic(c10::Device device) {
  const bool gpu = device.is_cuda();
  if (gpu ? kernels::cuda::has_fast_bf16(device) : kernels::has_fast_bf16())
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

bool is_fast(Compute half, c10::Device device) {
  const bool gpu = device.is_cuda();
  if (half == Compute::kFp16) return gpu;
  return gpu ? kernels::cuda::has_fast_bf16(device) : kernels::has_fast_bf16();
}

/// Where half precision rounds but saves no time, the user should know.
Precision mixed(Compute half, const std::string& option, c10::Device device) {
  const std::string products = std::string("products in ") +
                               (half == Compute::kBf16 ? "bf16" : "fp16") + ", all else in fp32";
  if (is_fast(half, device)) return {half, option, products};
  return {half, option,
          products + "; this " + (device.is_cuda() ? "GPU" : "processor") +
              " rounds to it and multiplies in fp32: not faster than fp32",
          true};
}

}  // namespace

Precision choose_precision(const std::string& option, c10::Device device) {
  if (option == "auto") return automatic(device);
  if (option == "fp32") return {Compute::kFp32, "fp32", "as train.precision says"};
  if (option == "tf32") {
    if (device.is_cuda())
      return {Compute::kTf32, "tf32", "fp32 products round their operands to 10 bits of fraction"};
    return {Compute::kFp32, "fp32", "tf32 is arithmetic of GPUs; on a CPU it is fp32", true};
  }
  if (option == "mixed_bf16") return mixed(Compute::kBf16, option, device);
  if (option == "mixed_fp16") return mixed(Compute::kFp16, option, device);
  throw Error(ExitCode::kUsage, "train.precision: unknown precision `" + option + "`",
              "known: auto, fp32, tf32, mixed_bf16, mixed_fp16");
}

std::unique_ptr<LossScaler> loss_scaler_for(const Precision& precision, LossScaleOptions options,
                                            int64_t update_freq) {
  if (options.name == "auto")
    options.name = precision.compute == Compute::kFp16 ? "fairseq" : "none";
  return make_loss_scaler(options, update_freq);
}

}  // namespace stretto::optim
