// Adafactor on all tensors of flat buffers: every processor level, and CUDA, against plain ATen in
// double, step by step.
#include "kernels/optimizer/adafactor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "kernels/cpu/table.h"
#include "kernels/cuda/cuda.h"
#include "tests/kernels/cases.h"

namespace stretto::kernels {
namespace {

using testing::noise;

constexpr int kUpdates = 10;
constexpr double kGradScale = 1.0 / 64;

/// Tensors one after another with gaps of some elements, rates and decays in turn.
class Many {
 public:
  void matrices(int64_t count, int64_t rows, int64_t columns) { add(count, rows, columns, true); }
  void vector(int64_t size) { add(1, 1, size, false); }

  std::vector<AdafactorTensor> tensors;
  int64_t size = 0;

 private:
  void add(int64_t count, int64_t rows, int64_t columns, bool factored) {
    AdafactorTensor tensor{.begin = size,
                           .matrices = count,
                           .rows = rows,
                           .columns = columns,
                           .factored = factored,
                           .lr_scale = tensors.size() % 3 == 1 ? 0.5 : 1,
                           .weight_decay = tensors.size() % 2 == 1 ? 0.1 : 0};
    if (!tensors.empty()) {
      tensor.row_moments = tensors.back().row_moments_end();
      tensor.column_moments = tensors.back().column_moments_end();
    }
    size += tensor.numel() + 5;
    tensors.push_back(tensor);
  }
};

/// One of each kind that the kernels treat apart, the limits between them, and many; for a GPU one
/// with more blocks than a block has threads.
Many all_kinds(const at::Device& device) {
  Many many;
  many.matrices(1, 130, 33);
  many.matrices(1, 1, 1);
  many.matrices(1, 1, 700);  // wide: two tiles and part of a third
  many.matrices(1, 700, 1);
  many.matrices(3, 70, 9);
  many.matrices(300, 3, 3);
  many.matrices(700, 1, 1);
  many.matrices(1, 64, 64);
  many.matrices(2, 65, 64);
  many.matrices(1, 257, 259);
  many.matrices(4, 0, 5);
  many.vector(1500);
  many.vector(1);
  many.vector(0);
  many.vector(9000);
  many.matrices(1, 20'000, 3);   // many partial sums of one column,
  many.matrices(1, 140'000, 1);  // and more
  for (int i = 0; i < 100; ++i) many.matrices(1, 1 + i % 7, 1 + i % 11);
  if (device.is_cuda()) many.matrices(1, 2050, 1050);
  return many;
}

struct Buffers {
  at::Tensor params, grads, rows, columns;
};

Buffers buffers(const Many& many, const at::TensorOptions& options) {
  const AdafactorTensors all(many.tensors);
  Buffers b{noise({many.size}).to(options), at::empty({many.size}, options),
            at::zeros({all.num_row_moments()}, options),
            at::zeros({all.num_column_moments()}, options)};
  b.params.slice(0, 0, 4295).zero_();  // the first matrix: zeros move by the least rate
  return b;
}

/// Gradients of one step, which the step scales back; sizes differ from step to step.
at::Tensor gradients(const Many& many, int number) {
  at::Tensor grads = noise({many.size}, static_cast<uint64_t>(100 + number)) * (64.0 * number);
  grads.slice(0, 0, 2000).zero_();         // rows of the first matrix
  grads.slice(0, many.size - 40).zero_();  // a tensor
  return grads;
}

AdafactorStep step_of(int number) {
  return {.grad_scale = kGradScale, .lr = number <= 5 ? 0.01 * number : 2.0, .number = number};
}

void expect_steps(const at::Device& device, const std::string& where) {
  const Many many = all_kinds(device);
  Buffers got = buffers(many, at::device(device).dtype(at::kFloat));
  Buffers want = buffers(many, at::dtype(at::kDouble));
  const at::Tensor before = got.params.cpu();
  AdafactorTensors all(many.tensors);
  for (int number = 1; number <= kUpdates; ++number) {
    const at::Tensor grads = gradients(many, number);
    got.grads.copy_(grads);
    want.grads.copy_(grads);
    all.step(got.params, got.grads, got.rows, got.columns, step_of(number));
    reference::adafactor_step(want.params, want.grads, want.rows, want.columns, many.tensors,
                              step_of(number));
    const auto close = [](const at::Tensor& x, const at::Tensor& y, double absolute) {
      return at::allclose(x.cpu().to(at::kDouble), y, 2e-5, absolute);
    };
    for (const AdafactorTensor& t : many.tensors)
      ASSERT_TRUE(close(got.params.narrow(0, t.begin, t.numel()),
                        want.params.narrow(0, t.begin, t.numel()), 2e-6))
          << where << ", step " << number << ": " << t.matrices << " of [" << t.rows << ", "
          << t.columns << "]";
    ASSERT_TRUE(close(got.rows, want.rows, 1e-9)) << where << ", step " << number;
    ASSERT_TRUE(close(got.columns, want.columns, 1e-9)) << where << ", step " << number;
  }
  for (const AdafactorTensor& t : many.tensors)
    EXPECT_TRUE(at::equal(got.params.narrow(0, t.begin + t.numel(), 5).cpu(),
                          before.narrow(0, t.begin + t.numel(), 5)))
        << where << ": elements behind a tensor moved";
}

TEST(AdafactorTensors, TenStepsEqualTheReferenceAtEveryLevel) {
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    expect_steps(at::kCPU, level->name);
  }
}

TEST(AdafactorTensors, TenStepsEqualTheReferenceOnCuda) {
  if (!cuda::available()) GTEST_SKIP() << "no GPU, or a build without CUDA";
  expect_steps(at::Device(at::kCUDA, 0), "CUDA");
}

TEST(AdafactorTensors, StepsRepeatTheirBitsOnCuda) {
  if (!cuda::available()) GTEST_SKIP() << "no GPU, or a build without CUDA";
  const Many many = all_kinds(at::kCUDA);
  std::vector<at::Tensor> results;
  for (int run = 0; run < 3; ++run) {
    Buffers b = buffers(many, at::device(at::kCUDA).dtype(at::kFloat));
    AdafactorTensors all(many.tensors);
    for (int number = 1; number <= 3; ++number) {
      b.grads.copy_(gradients(many, number));
      all.step(b.params, b.grads, b.rows, b.columns, step_of(number));
    }
    results.push_back(b.params.cpu());
    EXPECT_TRUE(at::equal(results.back(), results.front())) << run;
  }
}

TEST(AdafactorTensors, BuffersThatDoNotFitAreRefused) {
  AdafactorTensors all({{.begin = 0, .rows = 4, .columns = 6}});
  at::Tensor p = noise({24}), rows = at::zeros({4}), columns = at::zeros({6});
  EXPECT_NO_THROW(all.step(p, p.clone(), rows, columns, step_of(1)));
  EXPECT_THROW(all.step(p, p.slice(0, 1), rows, columns, step_of(1)), c10::Error);
  EXPECT_THROW(all.step(p, p.clone(), columns, rows, step_of(1)), c10::Error);
  at::Tensor square = noise({4, 6});
  EXPECT_THROW(all.step(square, square.clone(), rows, columns, step_of(1)), c10::Error);
  AdafactorTensors behind({{.begin = 1, .rows = 4, .columns = 6}});
  EXPECT_THROW(behind.step(p, p.clone(), rows, columns, step_of(1)), c10::Error);
}

}  // namespace
}  // namespace stretto::kernels
