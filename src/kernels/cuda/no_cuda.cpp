// A build without CUDA: no kernel is in its place, and optimizers are refused.
#include "base/error.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/table.h"
#include "kernels/optimizer/cuda_adafactor.h"
#include "kernels/optimizer/cuda_steps.h"

namespace stretto::kernels::cuda {
namespace {

[[noreturn]] void refuse() {
  throw Error(ExitCode::kUsage, "this build of Stretto has no CUDA kernels",
              "build the preset `cuda` where nvcc 13 is, or set run.device=cpu");
}

}  // namespace

bool is_built() {
  return false;
}

bool available() {
  return false;
}

bool has_fast_bf16(at::Device) {
  return false;
}

bool has_fast_fp16(at::Device) {
  return false;
}

std::optional<int64_t> peak_memory_bytes(at::Device) {
  return std::nullopt;
}

std::optional<int64_t> total_memory_bytes(at::Device) {
  return std::nullopt;
}

bool takes(const at::Tensor&) {
  return false;
}

bool takes_decoding(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                    int64_t) {
  return false;
}

const Table& table() {
  static constexpr Table kEmpty{};
  return kEmpty;
}

bool takes_steps(const at::Tensor&) {
  return false;
}

void adam_runs(at::Tensor&, const at::Tensor&, at::Tensor&, at::Tensor&,
               std::span<const Run<AdamScalars>>) {
  refuse();
}

void momentum_runs(at::Tensor&, const at::Tensor&, at::Tensor&,
                   std::span<const Run<MomentumScalars>>) {
  refuse();
}

void adagrad_runs(at::Tensor&, const at::Tensor&, at::Tensor&,
                  std::span<const Run<AdagradScalars>>) {
  refuse();
}

void ftrl_runs(at::Tensor&, const at::Tensor&, at::Tensor&, at::Tensor&,
               std::span<const Run<FtrlScalars>>) {
  refuse();
}

void rmsprop_runs(at::Tensor&, const at::Tensor&, at::Tensor&, at::Tensor&,
                  std::span<const Run<RmspropScalars>>) {
  refuse();
}

std::vector<SquareSums> lamb_moments(const at::Tensor&, const at::Tensor&, at::Tensor&, at::Tensor&,
                                     std::span<const Run<LambScalars>>) {
  refuse();
}

void lamb_apply(at::Tensor&, const at::Tensor&, const at::Tensor&,
                std::span<const Run<LambScalars>>) {
  refuse();
}

std::vector<SquareSums> squares_of_runs(const at::Tensor&, const at::Tensor&,
                                        std::span<const Run<NormScalars>>) {
  refuse();
}

AdafactorTable::AdafactorTable(const AdafactorPlan&, at::Device) {
  refuse();
}

void AdafactorTable::step(at::Tensor&, const at::Tensor&, at::Tensor&, at::Tensor&,
                          const AdafactorStep&) const {
  refuse();
}

}  // namespace stretto::kernels::cuda
