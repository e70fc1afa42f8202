#pragma once

#include <torch/torch.h>

#include <csignal>
#include <cstdint>
#include <limits>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/batch_source.h"
#include "train/task.h"

/// A recurrent model that reads endless lanes of numbers, a stretch of each in an update (truncated
/// backpropagation through time): its state from one update to the next is part of its result.
namespace stretto::train::test {

/// L lanes, T numbers in a stretch, D hidden units.
constexpr int64_t kLanes = 12, kStretchLength = 3, kHidden = 4;
constexpr int64_t kStretchesOfEpoch = 4;

/// The numbers of a lane's stretch: other ones in each epoch.
inline std::vector<float> stretch_of(int64_t epoch, int64_t stretch, int64_t lane) {
  const auto key = static_cast<uint64_t>((epoch * kStretchesOfEpoch + stretch) * kLanes + lane);
  RandomStream random(mix64(29, key));
  std::vector<float> numbers;
  for (int64_t i = 0; i < kStretchLength; ++i) {
    numbers.push_back(static_cast<float>(random.uniform()) - 0.5F);
  }
  return numbers;
}

/// Lanes in groups, one group a micro-batch: `groups` micro-batches are a stretch of all lanes.
class LaneSource : public data::BatchSource {
 public:
  explicit LaneSource(int64_t groups) : groups_(groups) {}
  int64_t num_batches() const override { return groups_ * kStretchesOfEpoch; }
  data::Order order() const override { return said_order; }
  data::Batch load(int64_t epoch, int64_t index) const override {
    const int64_t stretch = index / groups_;
    data::Batch batch;
    data::Ragged<float> numbers;
    for (int64_t lane = index % groups_; lane < kLanes; lane += groups_) {
      batch.sample_ids.push_back(stretch * kLanes + lane);
      batch.lanes.push_back(static_cast<int32_t>(lane));
      numbers.append(stretch_of(epoch, stretch, lane));
    }
    batch.columns.emplace_back(std::move(numbers));
    return batch;
  }

  data::Order said_order = data::Order::kLanes;

 private:
  int64_t groups_;
};

/// What ends a run without a last word.
struct Killed {};

/// h_t = tanh(U x_t + W h_{t-1}); the loss is (sum h_{t-1} - x_t)^2, over all numbers. The state of
/// a lane is "h" [L, D], where its last stretch ended, and "stretches" [L], how many it has had.
template <class Base>
class RecurrentOf : public Base {
 public:
  explicit RecurrentOf(int64_t groups = 6) : source_(groups) {
    torch::manual_seed(5);
    in_ = net_.register_module("in", torch::nn::Linear(1, kHidden));
    back_ = net_.register_module("back", torch::nn::Linear(kHidden, kHidden));
  }

  torch::nn::Module& model() override { return net_; }
  const data::BatchSource& train_batches() override { return source_; }
  std::vector<std::string> counters() const override { return {"numbers"}; }
  std::vector<double> weights(const data::Batch& batch) const override {
    return {static_cast<double>(batch.template column<float>(0).num_rows())};
  }

  std::vector<parallel::LaneState> carry() const override {
    return {{.name = "h", .values = torch::zeros({kLanes, kHidden})},
            {.name = "stretches", .values = torch::zeros({kLanes})}};
  }

  Sums loss(const Prepared& prepared, const StepContext& context) override {
    const data::Batch& batch = prepared;
    const auto state = context.carry_of(batch);
    note(batch, context, state[1]);
    auto [loss, h] = read(batch, state[0]);
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    if (fails_in(batch, context, state[1])) loss = loss * kNan;
    if (context.update == spoilt_at && batch.lanes.front() == 0) h = h * kNan;
    if (context.update == overflow_at) {
      loss.register_hook([](const at::Tensor& gradient) {
        return gradient * std::numeric_limits<float>::infinity();
      });
    }
    return {.losses = {loss},
            .counts = {batch.template column<float>(0).num_rows()},
            .carry = {h, state[1] + 1}};
  }

  bool can_validate() const override { return true; }
  /// Reads a text of its own from a state of its own.
  Validation validate() override {
    const torch::NoGradGuard no_grad;
    const auto batch = source_.load(/*epoch=*/1000, /*index=*/0);
    const auto loss =
        read(batch, torch::zeros({batch.num_sequences(), kHidden})).first.template item<double>();
    return {.scores = {{.name = "loss", .value = loss}}, .counts = {{"numbers", 1}}};
  }
  std::map<std::string, std::string> assets() const override { return {}; }

  /// The sum of the losses of a stretch, and the state at its end. @param h  [lanes, D]
  std::pair<at::Tensor, at::Tensor> read(const data::Batch& batch, at::Tensor h) {
    const auto& numbers = batch.template column<float>(0);
    const at::Tensor x = torch::tensor(numbers.values).view({batch.num_sequences(), -1});
    at::Tensor loss = torch::zeros({});
    for (int64_t t = 0; t < kStretchLength; ++t) {
      const at::Tensor x_t = x.narrow(1, t, 1);
      loss = loss + (h.sum(1, /*keepdim=*/true) - x_t).square().sum();
      h = torch::tanh(in_(x_t) + back_(h));
    }
    return {loss, h};
  }

  LaneSource& source() { return source_; }

  /// (update, stretches that lane 0 had before it), an entry for each time that the update ran.
  std::vector<std::pair<int64_t, int64_t>> reads;
  std::vector<size_t> batch_sizes;  ///< samples of each micro-batch

  int64_t nan_at = -1;            ///< this update's loss of lane 0 is NaN …
  int nan_times = 1000;           ///< … so often
  int64_t nan_after = -1;         ///< so is each that reads so many stretches of lane 0
  int64_t overflow_at = -1;       ///< the gradient of this update is infinite, its loss is not
  int64_t killed_at = -1;         ///< in this update
  int64_t signal_at = -1;         ///< in this step, counted from 1, comes a signal: it is the last
  int64_t out_of_memory_at = -1;  ///< in this update
  int64_t spoilt_at = -1;         ///< this update leaves lane 0 a state that is not finite

 private:
  void note(const data::Batch& batch, const StepContext& context, const at::Tensor& stretches) {
    batch_sizes.push_back(batch.lanes.size());
    if (batch.lanes.front() != 0) return;
    reads.emplace_back(context.update, stretches[0].template item<int64_t>());
    if (context.update == killed_at) throw Killed();
    if (context.update == out_of_memory_at) throw std::bad_alloc();
    if (context.update + 1 == signal_at) std::raise(SIGTERM);
  }
  bool fails_in(const data::Batch& batch, const StepContext& context, const at::Tensor& stretches) {
    if (batch.lanes.front() != 0) return false;
    if (context.update == nan_at && nan_times-- > 0) return true;
    return stretches[0].template item<int64_t>() == nan_after;
  }

  torch::nn::Module net_;
  torch::nn::Linear in_{nullptr}, back_{nullptr};
  LaneSource source_;
};

using RecurrentTask = RecurrentOf<Task>;

}  // namespace stretto::train::test
