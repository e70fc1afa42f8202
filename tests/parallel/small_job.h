#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "distributed/dist_options.h"
#include "distributed/process_group.h"
#include "optim/arena.h"
#include "optim/optimizer.h"
#include "parallel/gradient_reducer.h"
#include "tests/distributed/thread_group.h"

/// Jobs whose ranks are threads, each with a small model of its own.
namespace stretto::test::small_job {

using distributed::DistOptions;
using parallel::GradientReducer;

inline constexpr int64_t kVocabSize = 3500, kWidth = 64, kInner = 128, kTokens = 12;
inline const std::vector<std::string> kStrategies{"all_reduce", "sharded", "parameter_server"};

// Ranks are threads here: more threads inside each would only be slower.
class GradientReducerTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_before_); }

 private:
  int threads_before_ = at::get_num_threads();
};

// Embedding tied with the output projection, a feed-forward layer and a norm.
struct SmallModel : torch::nn::Module {
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::Tensor sometimes;  // reached only by loss(…, true)
  std::function<void()> before_embedding = [] {};

  SmallModel() {
    embedding = register_module("embedding", torch::nn::Embedding(kVocabSize, kWidth));
    first = register_module("first", torch::nn::Linear(kWidth, kInner));
    second = register_module("second", torch::nn::Linear(kInner, kWidth));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})));
    sometimes = register_parameter("sometimes", torch::empty({kWidth}));
    // The same on every rank without the generator that all threads share.
    const torch::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) {
      const auto i = torch::arange(parameter.numel(), torch::kDouble);
      parameter.copy_((0.1 * torch::sin(i * 1.7 + ++phase)).view(parameter.sizes()));
    }
  }

  // Sum over the tokens of micro-batch j.
  torch::Tensor loss(int64_t j, bool with_sometimes = false) {
    const auto i = torch::arange(kTokens, torch::kLong);
    auto x = embedding((i * 37 + j * 101) % kVocabSize);
    if (x.requires_grad()) {
      x.register_hook([this](const torch::Tensor&) { before_embedding(); });
    }
    if (with_sometimes) x = x + sometimes;
    const auto hidden = norm(x + second(torch::tanh(first(x))));
    const auto logits = torch::matmul(hidden, embedding->weight.t());
    return torch::nn::functional::cross_entropy(
        logits, (i * 53 + j * 29) % kVocabSize,
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  }
};

// One rank of a job, with its own copy of everything.
struct Rank {
  SmallModel model;
  optim::Arena arena{model};
  distributed::ProcessGroup group;
  GradientReducer reducer;
  std::unique_ptr<optim::Optimizer> optimizer;
  int64_t steps = 0;

  Rank(const distributed::ProcessGroup& processes, const DistOptions& options)
      : group(processes), reducer(arena, group, options) {
    if (reducer.owned().size() == 0) return;
    optim::OptimOptions adam;
    adam.name = "adam";
    optimizer = optim::make_optimizer(adam, arena, reducer.owned());
  }

  int64_t local(int64_t micro_batches) const {
    return (micro_batches - group.rank() + group.size() - 1) / group.size();
  }

  // Gradients of micro-batches 0 .. n - 1 of update `number`; j is that of rank j % size.
  void accumulate(int64_t n, int64_t number = 0) {
    reducer.begin(local(n));
    for (int64_t i = 0; i < local(n); ++i) micro_batch(i, number);
  }
  void micro_batch(int64_t i, int64_t number = 0) {
    reducer.before_backward(i);
    model.loss(number * 1000 + i * group.size() + group.rank()).backward();
    reducer.after_backward(i);
  }
  void reduce(int64_t n, int64_t number = 0) {
    accumulate(n, number);
    reducer.finish();
  }

  void step(int64_t n) {
    ++steps;
    if (optimizer) {
      optimizer->step(
          arena,
          {.lr = 1e-3, .grad_scale = 1.0 / static_cast<double>(n * kTokens), .number = steps});
    }
    reducer.publish();
  }
  torch::Tensor owned_grads() {
    const auto slice = reducer.owned();
    return arena.grads().narrow(0, slice.begin, slice.size()).clone();
  }
};

// What each rank of a job returned.
template <class Result>
std::vector<Result> on_ranks(int ranks,
                             const std::function<Result(distributed::ProcessGroup)>& body) {
  std::vector<Result> results(static_cast<size_t>(ranks));
  run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
    results[static_cast<size_t>(group.rank())] = body(group);
  });
  return results;
}

using Tensors = std::vector<torch::Tensor>;

inline Tensors tensors_on_ranks(
    int ranks, const std::function<torch::Tensor(distributed::ProcessGroup)>& body) {
  return on_ranks<torch::Tensor>(ranks, body);
}

// The summed gradient, as the ranks own it; all_reduce: of rank 0, after comparing all.
inline torch::Tensor whole(const std::string& strategy, const Tensors& owned) {
  if (strategy == "sharded") return torch::cat(owned);
  if (strategy == "all_reduce") {
    for (const auto& other : owned) EXPECT_TRUE(torch::equal(owned[0], other));
  }
  return owned[0];
}

// Autograd alone: the truth.
inline torch::Tensor plain_gradient(int64_t micro_batches, int64_t number = 0) {
  SmallModel model;
  optim::Arena arena(model);
  for (int64_t j = 0; j < micro_batches; ++j) model.loss(number * 1000 + j).backward();
  return arena.grads().clone();
}

// Buckets smaller than most tensors of the model.
inline DistOptions options(const std::string& strategy, bool overlap = true) {
  DistOptions result;
  result.strategy = strategy;
  result.overlap = overlap;
  result.bucket_bytes = 40'000;
  return result;
}

inline DistOptions deterministic(const std::string& strategy) {
  auto result = options(strategy);
  result.deterministic = true;
  return result;
}

}  // namespace stretto::test::small_job
