/// A small Transformer learns to reverse sequences: to the same loss in every precision.
#include "optim/precision.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/kernels.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "models/transformer_options.h"
#include "optim/arena.h"
#include "optim/optimizer.h"

namespace stretto::models {
namespace {

constexpr int64_t kSymbols = 24, kEnd = 3, kFirstSymbol = 4;
constexpr int64_t kUpdates = 300, kSentences = 24;

/// Sentences of 4 to 9 symbols and the same backwards; a function of the index alone.
data::Batch reversals(uint64_t index, uint64_t stream) {
  data::Batch batch;
  for (int64_t i = 0; i < kSentences; ++i) {
    const auto draw = [&](uint64_t j, uint64_t count) {
      return static_cast<int64_t>(
          Philox::at(stream, index * kSentences + static_cast<uint64_t>(i), j)[0] % count);
    };
    const int64_t length = 4 + draw(0, 6);
    std::vector<int64_t> ids;
    for (int64_t j = 0; j < length; ++j)
      ids.push_back(kFirstSymbol + draw(static_cast<uint64_t>(j + 1), kSymbols - kFirstSymbol));
    const auto append = [](data::PackedTokens& to, auto begin, auto end) {
      to.ids.insert(to.ids.end(), begin, end);
      to.ids.push_back(kEnd);
      to.offsets.push_back(static_cast<int32_t>(to.ids.size()));
    };
    append(batch.src, ids.begin(), ids.end());
    append(batch.tgt, ids.rbegin(), ids.rend());
    batch.sample_ids.push_back(static_cast<int64_t>(index) * kSentences + i);
  }
  return batch;
}

struct Outcome {
  double valid_loss = 0;  ///< nats a token, computed in fp32
  double scale = 1;       ///< of the loss, at the end
  int64_t skipped = 0;
};

class Training {
 public:
  Training(const std::string& precision, optim::LossScaleOptions scaling, uint64_t seed)
      : precision_(optim::choose_precision(precision, at::kCPU)),
        scaler_(optim::loss_scaler_for(precision_, std::move(scaling), 1)),
        model_(make_model(
            small(),
            {.src_rows = kSymbols, .tgt_rows = kSymbols, .num_tgt_classes = kSymbols, .seed = seed},
            losses::make_loss({}))),
        arena_(*model_),
        seed_(seed) {
    EXPECT_LT(num_parameters(*model_), 100'000);
    options_.name = "adam";
    optimizer_ = optim::make_optimizer(options_, arena_);
  }

  Outcome run(uint64_t updates) {
    Outcome outcome;
    int64_t steps = 0;
    for (uint64_t i = 0; i < updates; ++i) {
      const double norm = gradient(i);
      const bool overflow = !std::isfinite(norm);
      const double max_abs = arena_.grads().abs().max().item<double>() / scaler_->scale();
      scaler_->update({.overflow = overflow, .max_abs = max_abs});
      outcome.skipped += overflow ? 1 : 0;
      if (overflow) continue;
      // A short warm-up; the norm is clipped so that no seed is an outlier.
      const double lr = 4e-3 * std::min(1.0, static_cast<double>(i + 1) / 40);
      optimizer_->step(
          arena_,
          {.lr = lr, .grad_scale = grad_scale_ * optim::clip_factor(norm, 1.0), .number = ++steps});
    }
    outcome.scale = scaler_->scale();
    outcome.valid_loss = validate();
    return outcome;
  }

 private:
  static TransformerOptions small() {
    TransformerOptions options;
    options.d_model = 48;
    options.encoder = options.decoder = {.num_layers = 1, .num_heads = 4, .ffn_dim = 96};
    options.norm = "pre";
    options.dropout = 0;
    return options;
  }

  /// Of the scaled loss, in the arena -> the norm of the true gradient of the mean.
  double gradient(uint64_t i) {
    arena_.zero_grads();
    const double scale = scaler_->scale();
    const LossOutput loss = [&] {
      const kernels::ComputeScope scope(precision_.compute);
      return model_->loss(reversals(i, seed_), {.training = true, .dropout_key = i});
    }();
    (loss.loss_sum * scale).backward();
    grad_scale_ = 1 / (scale * static_cast<double>(loss.target_tokens));
    return std::sqrt(kernels::sum_of_squares(arena_.grads())) * grad_scale_;
  }

  double validate() {
    const at::NoGradGuard no_grad;
    double sum = 0, tokens = 0;
    for (uint64_t i = 0; i < 20; ++i) {
      const LossOutput loss = model_->loss(reversals(i, /*stream=*/999), {});
      sum += loss.nll_sum.item<double>();
      tokens += static_cast<double>(loss.target_tokens);
    }
    return sum / tokens;
  }

  optim::Precision precision_;
  std::unique_ptr<optim::LossScaler> scaler_;
  std::shared_ptr<Seq2SeqModel> model_;
  optim::Arena arena_;
  optim::OptimOptions options_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  uint64_t seed_;
  double grad_scale_ = 1;
};

class OneThread {
 public:
  OneThread() : before_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(before_); }

 private:
  int before_;
};

struct Setting {
  optim::LossScaleOptions scaling = {};
  uint64_t seed = 1;
  uint64_t updates = kUpdates;
};

Outcome train(const std::string& precision, const Setting& setting = {}) {
  const OneThread one_thread;  // thousands of tiny products
  return Training(precision, setting.scaling, setting.seed).run(setting.updates);
}

/// Of seed 1.
double fp32_loss() {
  static const double loss = train("fp32").valid_loss;
  return loss;
}

TEST(MixedPrecision, ReachesTheLossOfFp32WithinNoise) {
  // Noise: how far fp32 runs from different first weights and data lie apart.
  const double fp32 = fp32_loss();
  EXPECT_LT(fp32, 0.7 * std::log(20.0)) << "learns nothing";
  const double noise = std::abs(train("fp32", {.seed = 2}).valid_loss - fp32) + 0.02;
  for (const char* precision : {"mixed_bf16", "mixed_fp16"}) {
    const Outcome mixed = train(precision);
    EXPECT_NEAR(mixed.valid_loss, fp32, noise) << precision;
    EXPECT_NE(mixed.valid_loss, fp32) << precision << " is not there";
    EXPECT_EQ(mixed.skipped, 0) << precision;
  }
}

TEST(MixedPrecision, AScaleThatOverflowsBacksOffAndTrainingRecovers) {
  const double fp32 = fp32_loss();
  for (const char* name : {"fairseq", "backoff", "logmax"}) {
    optim::LossScaleOptions scaling;
    scaling.name = name;
    scaling.init = scaling.max = std::exp2(24);  // far above what binary16 holds
    const Outcome got = train("mixed_fp16", {.scaling = scaling});
    EXPECT_GE(got.skipped, 1) << name;
    EXPECT_LT(got.skipped, 30) << name;
    EXPECT_LT(got.scale, std::exp2(20)) << name;
    EXPECT_NEAR(got.valid_loss, fp32, 0.2) << name;
  }
}

TEST(MixedPrecision, AScaleThatNeverShrinksNeverTrains) {
  optim::LossScaleOptions scaling;
  scaling.name = "static";
  scaling.init = std::exp2(24);
  const Setting setting{.scaling = scaling, .updates = 10};
  EXPECT_EQ(train("mixed_fp16", setting).skipped, 10);
  EXPECT_EQ(train("mixed_bf16", setting).skipped, 0) << "bfloat16 has the range of fp32";
}

}  // namespace
}  // namespace stretto::models
