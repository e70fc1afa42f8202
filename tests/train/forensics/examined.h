#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "nn/watch.h"
#include "optim/arena.h"
#include "tests/train/bare_task.h"
#include "train/forensics/forensics.h"

/// Tasks whose updates are examined, and their batches.
namespace stretto::train::test {

inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline void append(data::PackedTokens& tokens, const std::vector<int64_t>& ids) {
  tokens.append(ids);
}

/// Sample i: one pair with a token that no other has, 4 + i, on both sides.
inline data::Batch batch_of(const std::vector<int64_t>& samples) {
  auto batch = data::pair_batch(samples);
  for (const int64_t sample : samples) {
    append(data::source(batch), {4 + sample, 20, 3});
    append(data::target(batch), {21, 4 + sample, 3});
  }
  return batch;
}

class TransformerTask : public stretto::test::BareTask {
 public:
  explicit TransformerTask(const std::string& tie_embeddings = "decoder")
      : model_(stretto::test::small_transformer(2, 24, tie_embeddings)) {}
  torch::nn::Module& model() override { return *model_; }
  Sums loss(const Prepared& batch, const StepContext& context) override {
    const auto output = model_->loss(
        batch, {.training = true, .dropout_key = static_cast<uint64_t>(context.update)});
    return sums(output.loss_sum, batch);
  }

 private:
  std::shared_ptr<models::Seq2SeqModel> model_;
};

inline torch::Tensor weight(optim::Arena& arena, const std::string& name) {
  for (const auto& slot : arena.slots()) {
    if (slot.name == name) return optim::Arena::view(arena.params(), slot);
  }
  throw std::logic_error("no weight " + name);
}

inline NonfiniteReport look(Task& task, optim::Arena& arena,
                            const std::vector<data::Batch>& batches, double scale = 1) {
  return examine(task, arena, batches, {.seed = 1, .update = 6}, scale, kernels::Compute::kFp32);
}

/// y = w2 * sqrt(relu(w1 * x)): the root's slope is infinite where relu gives zero.
struct RootsImpl : torch::nn::Module {
  RootsImpl() {
    first = register_module("first", torch::nn::Linear(1, 1));
    second = register_module("second", torch::nn::Linear(1, 1));
    calls = register_buffer("calls", torch::zeros({1}));
    torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) parameter.fill_(1);
    first->bias.zero_();
  }
  torch::Tensor forward(const torch::Tensor& x) {
    calls.add_(1);
    const auto inner = nn::watch(*first, first->forward(x).clamp_min(0));
    return nn::watch(*second, second->forward(inner.sqrt()));
  }

  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::Tensor calls;  // as running statistics
};
TORCH_MODULE(Roots);

class RootsTask : public stretto::test::BareTask {
 public:
  torch::nn::Module& model() override { return *net; }
  Sums loss(const Prepared& prepared, const StepContext&) override {
    const data::Batch& batch = prepared;
    const auto x =
        torch::tensor(std::vector<float>(batch.sample_ids.begin(), batch.sample_ids.end()))
            .view({-1, 1});
    return sums(net(x).sum() * factor, batch);
  }
  Roots net;
  double factor = 1;
};

/// Two heads on one input, each with a loss that counts for so much in a micro-batch.
class TwoLossesTask : public stretto::test::BareTask {
 public:
  torch::nn::Module& model() override { return *net_; }
  std::vector<std::string> losses() const override { return {"first", "second"}; }
  std::vector<double> weights(const data::Batch&) const override { return weight; }
  Sums loss(const Prepared& prepared, const StepContext&) override {
    const data::Batch& batch = prepared;
    const auto x =
        torch::tensor(std::vector<float>(batch.sample_ids.begin(), batch.sample_ids.end()))
            .view({-1, 1});
    Sums both = sums(net_->first(x).sum(), batch);
    both.losses.push_back(net_->second(x).sum());
    return both;
  }
  std::vector<double> weight{1e6, 1e6};

 private:
  struct Net : torch::nn::Module {
    torch::nn::Linear first = register_module("first", torch::nn::Linear(1, 1));
    torch::nn::Linear second = register_module("second", torch::nn::Linear(1, 1));
  };
  std::shared_ptr<Net> net_ = std::make_shared<Net>();
};

}  // namespace stretto::train::test
