#include "nn/batch_norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "nn/linear.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::nn {
namespace {

using testing::noise;

/// gamma and beta that are not 1 and 0, in double.
BatchNorm double_norm(int64_t channels, const BatchNormOptions& options = {}) {
  BatchNorm norm(Init(1, at::kCPU), channels, options);
  norm->to(at::kDouble);
  const at::NoGradGuard no_grad;
  norm->weight.copy_(1 + 0.3 * noise({channels}, 2));
  norm->bias.copy_(0.5 * noise({channels}, 3));
  return norm;
}

torch::nn::BatchNorm1d libtorch_twin(const BatchNorm& norm) {
  torch::nn::BatchNorm1d twin(norm->weight.size(0));
  twin->to(at::kDouble);
  const at::NoGradGuard no_grad;
  twin->weight.copy_(norm->weight);
  twin->bias.copy_(norm->bias);
  return twin;
}

/// Two workers in one process: each thread's numbers are added when both have come.
class TwoWorkers {
 public:
  SumOverRanks sum() {
    return [this](std::span<double> numbers) {
      {
        const std::lock_guard lock(mutex_);
        total_.resize(numbers.size(), 0.0);
        for (size_t i = 0; i < numbers.size(); ++i) total_[i] += numbers[i];
        calls_ += 1;
        sizes_.insert(numbers.size());
      }
      added_.arrive_and_wait();
      std::copy(total_.begin(), total_.end(), numbers.begin());
      copied_.arrive_and_wait();
    };
  }
  int calls() const { return calls_; }
  const std::set<size_t>& sizes() const { return sizes_; }

 private:
  /// Runs when both have copied and before either goes on.
  struct Clear {
    std::vector<double>* total;
    void operator()() const noexcept { total->clear(); }
  };

  std::mutex mutex_;
  std::vector<double> total_;
  std::barrier<> added_{2};
  std::barrier<Clear> copied_{2, Clear{&total_}};
  int calls_ = 0;
  std::set<size_t> sizes_;
};

struct Pass {
  at::Tensor y, dx;
};

Pass run(BatchNorm& norm, const at::Tensor& x, const at::Tensor& slope) {
  const at::Tensor input = x.clone().requires_grad_(true);
  const at::Tensor y = norm->forward(input);
  (y * slope).sum().backward();
  return {y.detach(), input.grad()};
}

void expect_close(const at::Tensor& got, const at::Tensor& want, double tolerance = 1e-10) {
  ASSERT_EQ(got.sizes(), want.sizes());
  ASSERT_GT(want.numel(), 0);
  EXPECT_LT((got - want).abs().max().item<double>(), tolerance);
}

const std::vector<std::vector<int64_t>> kShapes = {{7, 3}, {4, 3, 5}, {2, 3, 2, 4}};

TEST(BatchNorm, GradientsMatchFiniteDifferencesOnRowsAndPlanes) {
  for (const auto& shape : kShapes) {
    const BatchNorm norm = double_norm(3);
    const auto function = [&](const testing::Inputs& in) {
      BatchNorm copy = double_norm(3);
      copy->weight = in[1];
      copy->bias = in[2];
      return copy->forward(in[0]);
    };
    testing::expect_gradients(function, {noise(shape), norm->weight.detach(), norm->bias.detach()});
  }
}

TEST(BatchNorm, SynchronisedGradientsMatchFiniteDifferences) {
  for (const auto& shape : kShapes) {
    const BatchNorm norm = double_norm(3);
    const auto function = [&](const testing::Inputs& in) {
      BatchNorm copy = double_norm(3);
      copy->weight = in[1];
      copy->bias = in[2];
      copy->synchronise([](std::span<double>) {});  // one process
      return copy->forward(in[0]);
    };
    testing::expect_gradients(function, {noise(shape), norm->weight.detach(), norm->bias.detach()});
  }
}

TEST(BatchNorm, EqualsLibtorchOverStepsInTrainingAndEvaluation) {
  for (const bool synchronised : {false, true}) {
    BatchNorm norm = double_norm(4);
    if (synchronised) norm->synchronise([](std::span<double>) {});
    torch::nn::BatchNorm1d twin = libtorch_twin(norm);
    for (uint64_t step = 1; step <= 5; ++step) {
      const at::Tensor x = (3 + 2 * noise({6, 4, 3}, step)).to(at::kDouble);
      const at::Tensor slope = noise({6, 4, 3}, 100 + step).to(at::kDouble);
      const Pass got = run(norm, x, slope);
      const at::Tensor input = x.clone().requires_grad_(true);
      const at::Tensor want = twin->forward(input);
      (want * slope).sum().backward();
      expect_close(got.y, want);
      expect_close(got.dx, input.grad());
      expect_close(norm->weight.grad(), twin->weight.grad());
      expect_close(norm->bias.grad(), twin->bias.grad());
      expect_close(norm->running_mean, twin->running_mean);
      expect_close(norm->running_var, twin->running_var);
    }
    norm->eval();
    twin->eval();
    const at::Tensor x = noise({5, 4}, 42).to(at::kDouble), before = norm->running_mean.clone();
    expect_close(norm->forward(x), twin->forward(x));
    expect_close(norm->running_mean, before, 1e-300);
  }
}

TEST(BatchNorm, RunningStatisticsMoveByTheMomentumTowardsTheUnbiasedVariance) {
  BatchNorm norm(Init(1, at::kCPU), 1, BatchNormOptions{.momentum = 0.25});
  // The batch -1, 3 has mean 1 and unbiased variance 8.
  const at::Tensor x = torch::tensor({-1.f, 3.f}).view({2, 1});
  const double means[] = {0.25, 0.4375, 0.578125};
  const double vars[] = {2.75, 4.0625, 5.046875};
  for (int step = 0; step < 3; ++step) {
    norm->forward(x);
    EXPECT_FLOAT_EQ(norm->running_mean.item<float>(), means[step]) << step;
    EXPECT_FLOAT_EQ(norm->running_var.item<float>(), vars[step]) << step;
  }
}

TEST(BatchNorm, ASingleValueIsNormalisedByTheRunningStatisticsWhereThatIsAsked) {
  for (const bool synchronised : {false, true}) {
    BatchNorm norm = double_norm(3, {.single_by_running = true});
    if (synchronised) norm->synchronise([](std::span<double>) {});
    const at::NoGradGuard no_grad;
    norm->running_mean.fill_(0.5);
    norm->running_var.fill_(4);
    const at::Tensor x = noise({1, 3}).to(at::kDouble);
    expect_close(norm->forward(x), (x - 0.5) / std::sqrt(4 + 1e-5) * norm->weight + norm->bias);
    expect_close(norm->running_mean, at::full({3}, 0.5, at::kDouble), 1e-300);
    expect_close(norm->running_var, at::full({3}, 4.0, at::kDouble), 1e-300);
    EXPECT_GT((norm->forward(at::cat({x, x + 1})) - norm->bias).abs().max().item<double>(), 0.1);
    EXPECT_GT((norm->running_mean - 0.5).abs().max().item<double>(), 0) << "two values are a batch";
  }
}

TEST(BatchNorm, SynchronisedPlanesGetTheirResidualAndReluToo) {
  struct Result {
    at::Tensor y, mean, var;
    std::vector<at::Tensor> gradients;
  };
  const auto run = [](bool synchronised) {
    BatchNorm norm = double_norm(3);
    if (synchronised) norm->synchronise([](std::span<double>) {});  // of one worker
    const auto planes = [](uint64_t seed) {
      return noise({2, 3, 4, 5}, seed).to(at::kDouble).requires_grad_(true);
    };
    const at::Tensor x = planes(4), residual = planes(5);
    const at::Tensor y =
        norm->forward_to({.end = kernels::PlaneEnd::kRelu, .residual = residual}, x);
    const auto gradients = torch::autograd::grad({y}, {x, residual, norm->weight, norm->bias},
                                                 {noise(y.sizes(), 6).to(at::kDouble)});
    return Result{y.detach(), norm->running_mean, norm->running_var, gradients};
  };
  const Result alone = run(false), together = run(true);
  EXPECT_EQ(alone.y.min().item<double>(), 0);
  expect_close(together.y, alone.y);
  expect_close(together.mean, alone.mean);
  expect_close(together.var, alone.var);
  for (size_t i = 0; i < 4; ++i) expect_close(together.gradients[i], alone.gradients[i]);
}

/// Forward and backward of two workers with 5 and 3 rows (or 8 and none).
struct Joined {
  TwoWorkers workers;
  BatchNorm norms[2] = {double_norm(4), double_norm(4)};
  Pass passes[2];

  void go(const at::Tensor& x, const at::Tensor& slope, int64_t cut, bool synchronise) {
    const auto work = [&](int rank) {
      const int64_t begin = rank == 0 ? 0 : cut, end = rank == 0 ? cut : x.size(0);
      passes[rank] = run(norms[rank], x.slice(0, begin, end), slope.slice(0, begin, end));
    };
    if (synchronise) {
      for (BatchNorm& norm : norms) norm->synchronise(workers.sum());
    }
    std::thread other(work, 1);
    work(0);
    other.join();
  }
};

TEST(BatchNorm, SynchronisedOverTwoWorkersEqualsOneWorkerWithTheJoinedBatch) {
  for (const int64_t cut : {5, 8}) {
    const at::Tensor x = (noise({8, 4, 3}) * 2 + noise({8, 1, 1}, 9) + 1).to(at::kDouble);
    const at::Tensor slope = noise({8, 4, 3}, 4).to(at::kDouble);
    BatchNorm whole = double_norm(4);
    const Pass want = run(whole, x, slope);
    Joined two;
    two.go(x, slope, cut, true);
    expect_close(at::cat({two.passes[0].y, two.passes[1].y}), want.y);
    expect_close(at::cat({two.passes[0].dx, two.passes[1].dx}), want.dx);
    // The reducer adds the workers' gradients.
    expect_close(two.norms[0]->weight.grad() + two.norms[1]->weight.grad(), whole->weight.grad());
    expect_close(two.norms[0]->bias.grad() + two.norms[1]->bias.grad(), whole->bias.grad());
    for (const BatchNorm& norm : two.norms) {
      expect_close(norm->running_mean, whole->running_mean);
      expect_close(norm->running_var, whole->running_var);
    }
    EXPECT_EQ(two.workers.calls(), 4) << "one sum forward and one backward on each";
    EXPECT_EQ(two.workers.sizes(), (std::set<size_t>{2 * 4, 2 * 4 + 1}));
  }
}

TEST(BatchNorm, PerWorkerStatisticsAreAnotherProblem) {
  const at::Tensor x = (noise({8, 4, 3}) * 2 + noise({8, 1, 1}, 9) + 1).to(at::kDouble);
  const at::Tensor slope = noise({8, 4, 3}, 4).to(at::kDouble);
  BatchNorm whole = double_norm(4);
  const Pass want = run(whole, x, slope);
  Joined two;
  two.go(x, slope, 5, false);
  EXPECT_GT((at::cat({two.passes[0].y, two.passes[1].y}) - want.y).abs().max().item<double>(), 0.1);
  EXPECT_EQ(two.workers.calls(), 0);
  EXPECT_GT((two.norms[0]->running_mean - two.norms[1]->running_mean).abs().max().item<double>(),
            0.01);
  // Each is the norm of its own rows.
  BatchNorm first = double_norm(4);
  expect_close(run(first, x.slice(0, 0, 5), slope.slice(0, 0, 5)).y, two.passes[0].y);
}

TEST(BatchNorm, SynchronisedIsExactFarFromZero) {
  // mean / deviation of 1e4: sums of squares in fp32 would leave nothing of the variance.
  const at::Tensor x = 1e4 + noise({64, 2}, 3);
  BatchNorm norm(Init(1, at::kCPU), 2);
  norm->synchronise([](std::span<double>) {});
  const at::Tensor y = norm->forward(x);
  EXPECT_NEAR(y.std(0, false)[0].item<double>(), 1, 1e-3);
  EXPECT_NEAR(y.mean(0)[1].item<double>(), 0, 1e-3);
}

TEST(BatchNorm, FrozenNormalisesByItsRunningStatisticsAndLeavesThem) {
  for (const bool synchronised : {false, true}) {
    BatchNorm norm = double_norm(3);
    norm->forward((2 + noise({9, 3})).to(at::kDouble));  // so that they are not those of the start
    const at::Tensor mean = norm->running_mean.clone(), var = norm->running_var.clone();
    int handed = 0;
    norm->hand_moments_to([&](const BatchMoments&) { ++handed; });
    if (synchronised) norm->synchronise([&](std::span<double>) { ++handed; });
    norm->freeze();
    const at::Tensor x = (5 * noise({6, 3}, 2)).to(at::kDouble);
    norm->train();
    const at::Tensor y = norm->forward(x);
    norm->eval();
    expect_close(y, norm->forward(x));
    norm->train();
    const at::Tensor expected =
        (x - mean) / (var + 1e-5).sqrt() * norm->weight.detach() + norm->bias.detach();
    expect_close(y, expected);
    EXPECT_TRUE(at::equal(norm->running_mean, mean));
    EXPECT_TRUE(at::equal(norm->running_var, var));
    EXPECT_EQ(handed, 0);
    EXPECT_EQ(norm->forward(x.slice(0, 0, 1)).size(0), 1) << "one row needs no variance";
  }
}

/// x + norm(linear(x)), the end of a residual block.
struct ResidualBlock : torch::nn::Module {
  ResidualBlock()
      : linear(register_module("linear", Linear(Init(1, at::kCPU).child("linear"), 6, 6))),
        norm(register_module("norm", BatchNorm(Init(1, at::kCPU).child("norm"), 6,
                                               BatchNormOptions{.zero_gamma = true}))) {}
  at::Tensor forward(const at::Tensor& x) { return x + norm->forward(linear->forward(x)); }
  Linear linear;
  BatchNorm norm;
};

TEST(BatchNorm, AZeroGammaBlockStartsAsTheIdentityAndLearns) {
  ResidualBlock block;
  const at::Tensor x = noise({10, 6}), slope = noise({10, 6}, 8);
  EXPECT_TRUE(at::equal(block.forward(x), x));
  (block.forward(x) * slope).sum().backward();
  EXPECT_GT(block.norm->weight.grad().abs().min().item<double>(), 1e-3);
  EXPECT_EQ(block.linear->weight.grad().abs().max().item<double>(), 0);
  {
    const at::NoGradGuard no_grad;
    block.norm->weight.sub_(block.norm->weight.grad(), 0.1);
  }
  block.zero_grad();
  (block.forward(x) * slope).sum().backward();
  EXPECT_GT(block.linear->weight.grad().abs().max().item<double>(), 1e-3)
      << "after one step the layers before it learn too";
}

TEST(BatchNorm, ParametersAreVectorsAndStatisticsAreBuffers) {
  ResidualBlock block;
  EXPECT_EQ(block.norm->weight.dim(), 1);
  EXPECT_EQ(block.norm->bias.dim(), 1);
  EXPECT_EQ(block.norm->parameters().size(), 2u);
  EXPECT_EQ(block.norm->buffers().size(), 2u);
}

TEST(BatchNorm, HandsItsMomentsToWhoeverAskedAndLeavesTheRunningOnes) {
  for (const bool synchronised : {false, true}) {
    BatchNorm norm = double_norm(3), twin = double_norm(3);
    std::vector<BatchMoments> moments;
    norm->hand_moments_to([&](const BatchMoments& seen) { moments.push_back(seen); });
    if (synchronised) norm->synchronise([](std::span<double>) {});
    const at::Tensor x = noise({7, 3}).to(at::kDouble);
    expect_close(norm->forward(x), twin->forward(x));
    ASSERT_EQ(moments.size(), 1U);
    expect_close(moments[0].mean, x.mean(0));
    expect_close(moments[0].var, x.var(0));
    EXPECT_FALSE(moments[0].mean.requires_grad());
    EXPECT_EQ(norm->running_mean.abs().max().item<double>(), 0);
    EXPECT_TRUE(at::equal(norm->running_var, at::ones({3}, at::kDouble)));
    norm->hand_moments_to({});
    norm->forward(x);
    expect_close(norm->running_mean, twin->running_mean);
    expect_close(norm->running_var, twin->running_var);
  }
}

TEST(BatchNorm, EveryNormOfAModelIsFound) {
  ResidualBlock block;
  int calls = 0;
  const auto found = batch_norms(block);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], block.norm.get());
  EXPECT_EQ(batch_norms(*block.norm).size(), 1U) << "itself included";
  EXPECT_TRUE(batch_norms(*block.linear).empty());
  found[0]->synchronise([&](std::span<double>) { ++calls; });
  block.forward(noise({4, 6}));
  EXPECT_EQ(calls, 1);
  block.eval();
  block.forward(noise({4, 6}));
  EXPECT_EQ(calls, 1) << "evaluation needs no other process";
}

TEST(BatchNorm, AProcessWithoutRowsMakesTheCallsOfTheOthers) {
  ResidualBlock block;
  std::vector<std::vector<double>> own, of_others;
  batch_norms(block)[0]->synchronise([&](std::span<double> numbers) {
    own.emplace_back(numbers.begin(), numbers.end());
    const size_t call = own.size() - 1;
    for (size_t i = 0; call < of_others.size() && i < numbers.size(); ++i) {
      numbers[i] += of_others[call][i];
    }
  });
  block.forward(noise({4, 6})).sum().backward();
  ASSERT_EQ(own.size(), 2U) << "forward and backward";
  of_others = std::exchange(own, {});
  const at::Tensor nothing = pass_without_rows(block);
  EXPECT_EQ(nothing.item<double>(), 0);
  nothing.backward();
  ASSERT_EQ(own.size(), of_others.size());
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(own[i], std::vector<double>(of_others[i].size(), 0)) << i;
  }
  EXPECT_FALSE(pass_without_rows(*block.linear).defined());
}

TEST(BatchNorm, TakesStatisticsOfHalfPrecisionInFp32) {
  const at::Tensor x = (100 + noise({512, 2}, 3)).to(at::kBFloat16);
  for (const bool synchronised : {false, true}) {
    BatchNorm norm(Init(1, at::kCPU), 2);
    if (synchronised) norm->synchronise([](std::span<double>) {});
    const at::Tensor y = norm->forward(x);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor want = (wide - wide.mean(0)) / wide.std(0, false);
    expect_close(y.to(at::kFloat), want, 0.02);
    EXPECT_EQ(norm->running_mean.scalar_type(), at::kFloat);
  }
}

TEST(BatchNorm, RefusesWhatHasNoVarianceOrTheWrongShape) {
  BatchNorm norm(Init(1, at::kCPU), 3);
  EXPECT_THROW(norm->forward(noise({1, 3})), Error);
  EXPECT_THROW(norm->forward(noise({4, 2})), c10::Error);
  EXPECT_THROW(norm->forward(noise({3})), c10::Error);
  EXPECT_EQ(norm->forward(noise({0, 3})).size(0), 0) << "no rows is no batch and no error";
  EXPECT_EQ(norm->running_mean.abs().max().item<double>(), 0);
  norm->synchronise([](std::span<double>) {});
  EXPECT_THROW(norm->forward(noise({1, 3})), Error);
  norm->synchronise([](std::span<double> numbers) {
    for (double& number : numbers) number *= 2;  // another process with the same row
  });
  EXPECT_EQ(norm->forward(noise({1, 3})).abs().max().item<double>(), 0);
  norm->eval();
  EXPECT_EQ(norm->forward(noise({1, 3})).size(0), 1);
}

}  // namespace
}  // namespace stretto::nn
