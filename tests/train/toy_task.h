#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/pairs/pair_columns.h"
#include "report/metrics_log.h"
#include "train/trainer.h"

/// A task that needs no data, and runs of it, for tests of the training loop.
namespace stretto::train::test {

/// Samples 2 number and 2 number + 1, one target token each.
inline data::Batch toy_batch(int64_t number) {
  data::Batch batch = data::pair_batch();
  batch.sample_ids = {2 * number, 2 * number + 1};
  for (auto* side : {&data::source(batch), &data::target(batch)}) {
    side->values = batch.sample_ids;
    side->offsets = {0, 1, 2};
  }
  return batch;
}

/// Eight micro-batches an epoch, in an order of its own.
class ToySource : public data::BatchSource {
 public:
  int64_t num_batches() const override { return 8; }
  data::Batch load(int64_t epoch, int64_t index) const override {
    const auto order = static_cast<int64_t>(
        Permutation(8, mix64(11, static_cast<uint64_t>(epoch)))(static_cast<uint64_t>(index)));
    return toy_batch(order);
  }
};

/// The sums of a loss that is its negative log-likelihood too.
inline Sums toy_sums(const torch::Tensor& loss, const data::Batch& batch) {
  return {.losses = {loss},
          .statistics = {loss.detach()},
          .counts = {data::target(batch).num_rows(), data::source(batch).num_rows()}};
}

inline Validation toy_validation(double nll) {
  return {.scores = {{.name = "loss", .value = nll},
                     {.name = "nll", .value = nll},
                     {.name = "ppl", .value = std::exp(nll)}},
          .counts = {{"target tokens", 10}}};
}

/// Least squares on made-up inputs that depend on the sample id alone.
class ToyTask : public Task {
 public:
  ToyTask() {
    torch::manual_seed(5);
    net_ = torch::nn::Linear(4, 3);
  }
  torch::nn::Module& model() override { return *net_; }
  const data::BatchSource& train_batches() override { return source_; }
  Sums loss(const Prepared& prepared, const StepContext& context) override {
    const data::Batch& batch = prepared;
    std::vector<torch::Tensor> losses;
    for (const int64_t id : batch.sample_ids) {
      auto x = torch::zeros({4}), y = torch::zeros({3});
      RandomStream random(static_cast<uint64_t>(id) + 100);
      for (int i = 0; i < 4; ++i) x[i] = random.uniform();
      for (int i = 0; i < 3; ++i) y[i] = random.uniform();
      losses.push_back((net_(x) - y).square().sum());
    }
    auto sum = torch::stack(losses).sum();
    if (context.update + 1 == signal_at) std::raise(SIGTERM);
    if (context.update == nan_at && nan_times-- > 0) {
      sum = sum * std::numeric_limits<float>::quiet_NaN();
    }
    if (context.update == spike_at) sum = sum * 1e4;
    return toy_sums(sum, batch);
  }
  std::vector<std::string> statistics() const override { return {"nll"}; }
  std::vector<std::string> counters() const override { return {"target tokens", "source tokens"}; }
  std::vector<double> weights(const data::Batch& batch) const override {
    return {static_cast<double>(data::target(batch).num_rows())};
  }
  std::vector<Score> measures(const Totals& totals) const override {
    return {{.name = "nll", .value = totals.statistics.front() / totals.weights.front()}};
  }
  bool can_validate() const override { return true; }
  Validation validate() override {
    const size_t i = std::min(validations++, nlls.size() - 1);
    Validation result = toy_validation(nlls[i]);
    if (!sample.empty()) result.samples = {report::RowsSample{{{"number", sample}}}};
    return result;
  }
  std::map<std::string, std::string> assets() const override { return {}; }

  int64_t nan_at = -1, spike_at = -1;
  int64_t signal_at = -1;  // in this step, counted from 1, comes a signal: it is the last
  int nan_times = 1000;    // how often update `nan_at` goes wrong
  std::vector<double> nlls{3.0, 2.0, 2.5, 1.0, 1.5, 1.6, 1.7};
  size_t validations = 0;
  std::string sample;  // an input that validations show

 private:
  torch::nn::Linear net_{nullptr};
  ToySource source_;
};

inline report::Display toy_display() {
  report::Display display;
  display.numbers = {report::loss_style(),
                     {.name = "nll"},
                     {.name = "ppl", .remark = "exp of nll", .decimals = 2}};
  display.rate = {.key = "tokens_per_second", .unit = "tokens", .batch = "target_tokens"};
  return display;
}

/// Twelve updates, a checkpoint after every fourth, each update in the metrics.
inline TrainerSetup toy_setup(const std::filesystem::path& run) {
  std::filesystem::create_directories(run);
  TrainerSetup setup;
  setup.train.max_steps = 12;
  setup.train.save_every = 4;
  setup.eval.every = 100;
  setup.optim.lr = 0.05;
  setup.schedule = {.name = "constant", .warmup_steps = 2, .warmup_init_lr = 0};
  setup.report = {.every = 1, .tensorboard = false, .html = false};
  setup.description.display = toy_display();
  setup.run_directory = run;
  setup.identity = {.run_id = "test", .config_hash = "hash"};
  return setup;
}

/// Lines of the run's metrics.jsonl: kind "train", "valid" or "end".
inline std::vector<report::MetricsEvent> events(const TrainerSetup& setup,
                                                const std::string& kind) {
  std::vector<report::MetricsEvent> found;
  for (const auto& event : report::read_metrics(setup.run_directory / "metrics.jsonl")) {
    if (event.event == kind) found.push_back(event);
  }
  return found;
}

inline std::string final_hash(const TrainerSetup& setup) {
  return events(setup, "end").back().weights_hash.value();
}

}  // namespace stretto::train::test
