// What optimizer steps hand to a GPU, counted by capturing it as a graph. Capturing fails where the
// host waits for the GPU. For the CUDA build only.
#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "kernels/optimizer/adafactor.h"
#include "kernels/optimizer/steps.h"

namespace stretto::kernels {
namespace {

/// Kernels and copies that `work` launches; none of them runs.
size_t launches_of(const std::function<void()>& work) {
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(stream);
  cudaGraph_t graph = nullptr;
  size_t count = 0;
  C10_CUDA_CHECK(cudaDeviceSynchronize());
  // Relaxed: the allocator may ask the driver for memory meanwhile.
  C10_CUDA_CHECK(cudaStreamBeginCapture(stream.stream(), cudaStreamCaptureModeRelaxed));
  work();
  C10_CUDA_CHECK(cudaStreamEndCapture(stream.stream(), &graph));
  C10_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  C10_CUDA_CHECK(cudaGraphDestroy(graph));
  return count;
}

at::Tensor on_gpu(int64_t size) {
  return at::ones({size}, at::device(at::kCUDA).dtype(at::kFloat));
}

TEST(LaunchesOnCuda, AdafactorTakesAsManyForHundredsOfTensorsAsForOne) {
  if (!cuda::available()) GTEST_SKIP() << "no GPU that the driver offers";
  for (const int64_t count : {1, 300}) {
    std::vector<AdafactorTensor> tensors;
    for (int64_t i = 0; i < count; ++i)
      tensors.push_back({.begin = i * 70 * 40,
                         .rows = 70,
                         .columns = 40,
                         .row_moments = i * 70,
                         .column_moments = i * 40});
    AdafactorTensors all(tensors);
    at::Tensor params = on_gpu(count * 70 * 40), grads = params.clone();
    at::Tensor rows = on_gpu(count * 70), columns = on_gpu(count * 40);
    const auto step = [&] {
      all.step(params, grads, rows, columns, {.grad_scale = 1, .lr = 0.1, .number = 1});
    };
    step();  // makes the table
    EXPECT_EQ(launches_of(step), 6U) << count << " tensors";
  }
}

TEST(LaunchesOnCuda, AdamTakesAsManyForHundredsOfRunsAsForOne) {
  if (!cuda::available()) GTEST_SKIP() << "no GPU that the driver offers";
  for (const int64_t count : {1, 300}) {
    std::vector<kernels::Run<AdamScalars>> runs;
    for (int64_t i = 0; i < count; ++i) runs.push_back({i * 1000, i * 1000 + 999, {}});
    at::Tensor params = on_gpu(count * 1000), grads = params.clone();
    at::Tensor m = params.clone(), v = params.clone();
    const auto step = [&] { adam_runs(params, grads, m, v, runs); };
    EXPECT_EQ(launches_of(step), 2U) << count << " runs";  // the table's copy, and one kernel
  }
}

}  // namespace
}  // namespace stretto::kernels
