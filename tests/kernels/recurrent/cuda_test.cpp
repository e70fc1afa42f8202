// Recurrent layers on a GPU, where they are plain ATen, against the same in fp64 on the CPU.
#include "kernels/cuda/cuda.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/kernels/recurrent/recurrent_cases.h"

namespace stretto::kernels {
namespace {

TEST(CudaRecurrent, LayersEqualTheReference) {
  if (!cuda::available()) GTEST_SKIP() << "no CUDA build, or no GPU that the driver offers";
  for (const cases::Case& one : cases::large_recurrent()) {
    const bool draws = one.name.find("extra") != std::string::npos &&
                       one.name.find("extra 0") == std::string::npos;
    if (draws) continue;  // their keys lie on the CPU
    SCOPED_TRACE(one.name);
    testing::expect_equal(one.run, one.reference, one.inputs,
                          {at::kFloat, 1e-3, 1e-4, 1e-3, at::kCUDA});
  }
}

TEST(CudaRecurrent, MasksAreThoseOfTheCpu) {
  if (!cuda::available()) GTEST_SKIP() << "no CUDA build, or no GPU that the driver offers";
  const at::Tensor x = testing::noise({9, 32}), w = testing::noise({32, 8}, 2) * 0.3;
  const auto run = [&](at::Device device) {
    Recurrent options = cases::layer(Cell::kLstm, {0, 3, 9}, false, cases::Extra::kAll);
    for (Dropout* drop :
         {&options.cell.zoneout.hidden, &options.cell.zoneout.cell, &options.recurrent_dropout})
      drop->row_keys = drop->row_keys.to(device);
    return recurrent(x.to(device), {.hidden = w.to(device)}, {}, options).h.to(at::kCPU);
  };
  EXPECT_TRUE(at::allclose(run(at::kCUDA), run(at::kCPU), 1e-4, 1e-5));
}

}  // namespace
}  // namespace stretto::kernels
