#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "tests/base/temp_dir.h"
#include "tests/train/bare_task.h"
#include "tests/train/pair_source.h"
#include "tests/train/toy_task.h"

/// A small Transformer, and runs of it, for tests of tensors that do not train.
namespace stretto::train::test {

using Weights = std::map<std::string, torch::Tensor>;

/// Validates as the toy does.
class SmallTransformerTask : public ToyTask {
 public:
  explicit SmallTransformerTask(const models::Seq2SeqOptions& options)
      : model_(stretto::test::small_transformer(options, kPieces)) {}

  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return source_; }
  std::vector<optim::TiedName> tied_names() const override { return model_->tied_names(); }
  Sums loss(const Prepared& batch, const StepContext& context) override {
    if (context.update == broken_at) throw std::runtime_error("broken");
    const auto output = model_->loss(
        batch, {.training = true,
                .dropout_key = mix64(context.seed, static_cast<uint64_t>(context.update))});
    return toy_sums(output.loss_sum, batch);
  }

  /// Of all parameters.
  Weights copies() {
    Weights all;
    for (const auto& item : model().named_parameters()) {
      all[item.key()] = item.value().detach().clone();
    }
    return all;
  }

  int64_t broken_at = -1;  ///< the update whose loss throws

 private:
  static constexpr int64_t kPieces = 20;

  std::shared_ptr<models::Seq2SeqModel> model_;
  stretto::test::PairSource source_{
      {.batches = 8, .pairs = 2, .vocabulary = kPieces, .shortest = 3, .lengths = 5}};
};

/// Runs of six updates on one thread, whose encoder is frozen.
class SmallTransformerRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    log::set_quiet(true);
  }
  void TearDown() override {
    log::set_quiet(false);
    at::set_num_threads(threads_before_);
  }

  TrainerSetup frozen_encoder(const std::string& name) const {
    auto setup = toy_setup(dir_.path() / name);
    setup.optim.name = "adamw";
    setup.optim.lr = 0.01;
    setup.optim.weight_decay = 0.1;
    setup.optim.clip_norm = 0.5;
    setup.train.update_freq = 2;
    setup.train.max_steps = 6;
    setup.train.save_every = 2;
    setup.train.freeze = {"encoder.*"};
    return setup;
  }

  stretto::testing::TempDir dir_;

 private:
  const int threads_before_ = at::get_num_threads();
};

}  // namespace stretto::train::test
