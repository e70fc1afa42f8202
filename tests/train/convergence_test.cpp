/// A small Transformer learns to reverse sequences, by the whole training loop: to the same loss in
/// every precision.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "models/seq2seq_options.h"
#include "optim/arena.h"
#include "optim/precision.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/kernels/scopes.h"
#include "tests/text/special_ids.h"
#include "tests/train/bare_task.h"
#include "tests/train/toy_task.h"
#include "train/trainer.h"

namespace stretto::train {
namespace {

constexpr int64_t kSymbols = 24, kEnd = 3, kFirstSymbol = 4;
constexpr int64_t kUpdates = 300, kAccumulated = 2, kSentencesEach = 12;
constexpr int64_t kAlike = 30;  // updates until runs from the same weights part by rounding
constexpr uint64_t kSeeds = 4, kValidStream = 999;

/// Sentences of 4 to 9 symbols and the same backwards; a function of the index alone.
data::Batch reversals(int64_t index, uint64_t stream) {
  data::Batch batch = data::pair_batch();
  for (int64_t i = index * kSentencesEach; i < (index + 1) * kSentencesEach; ++i) {
    const auto draw = [&](uint64_t j, uint64_t count) {
      return static_cast<int64_t>(Philox::at(stream, static_cast<uint64_t>(i), j)[0] % count);
    };
    std::vector<int64_t> ids(static_cast<size_t>(4 + draw(0, 6)));
    for (size_t j = 0; j < ids.size(); ++j)
      ids[j] = kFirstSymbol + draw(j + 1, kSymbols - kFirstSymbol);
    const auto append = [](data::PackedTokens& to, auto begin, auto end) {
      to.values.insert(to.values.end(), begin, end);
      to.values.push_back(kEnd);
      to.offsets.push_back(static_cast<int32_t>(to.values.size()));
    };
    append(data::source(batch), ids.begin(), ids.end());
    append(data::target(batch), ids.rbegin(), ids.rend());
    batch.sample_ids.push_back(i);
  }
  return batch;
}

class Reversals : public data::BatchSource {
 public:
  explicit Reversals(uint64_t seed) : seed_(seed) {}
  int64_t num_batches() const override { return kUpdates * kAccumulated; }
  data::Batch load(int64_t, int64_t index) const override { return reversals(index, seed_); }

 private:
  uint64_t seed_;
};

class ReversalTask : public stretto::test::BareTask {
 public:
  explicit ReversalTask(uint64_t seed) : source_(seed) {
    models::Seq2SeqOptions options;
    options.d_model = 48;
    options.encoder = models::StackOptions{.num_layers = 1, .num_heads = 4, .ffn_dim = 96};
    options.decoder = models::StackOptions{.num_layers = 1, .num_heads = 4, .ffn_dim = 96};
    options.norm = "pre";
    options.dropout = 0;
    model_ = models::make_model(options,
                                {.src_rows = kSymbols,
                                 .tgt_rows = kSymbols,
                                 .num_tgt_classes = kSymbols,
                                 .src_specials = stretto::testing::kSpecials,
                                 .tgt_specials = stretto::testing::kSpecials,
                                 .seed = seed},
                                losses::make_loss({}));
    EXPECT_LT(models::num_parameters(*model_), 100'000);
  }
  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return source_; }
  Sums loss(const Prepared& batch, const StepContext&) override {
    return sums(model_->loss(batch, {.training = true}).loss_sum, batch);
  }
  bool can_validate() const override { return true; }
  /// On sentences of no training, in fp32.
  Validation validate() override {
    const at::NoGradGuard no_grad;
    double nll = 0, tokens = 0;
    for (int64_t i = 0; i < 40; ++i) {
      const auto loss = model_->loss(reversals(i, kValidStream), {});
      nll += loss.nll_sum.item<double>();
      tokens += static_cast<double>(loss.target_tokens);
    }
    return {.scores = {{.name = "loss", .value = nll / tokens}}};
  }

 private:
  std::shared_ptr<models::Seq2SeqModel> model_;
  Reversals source_;
};

struct Way {
  std::string precision = "fp32";
  optim::LossScaleOptions scaling = {};
};

struct TrainingResult {
  double valid_loss = 0;       ///< nats a token, at the end
  std::vector<double> losses;  ///< of the first updates, in training
  double first_norm = 0;       ///< of the gradient of the first of them
  double scale = 1;            ///< of the loss, at the end
  int64_t skipped = 0;
};

// Plain momentum, since Adam would hide a wrong scale of the gradient; at a rate that diverges
// without clipping, and that half of the right gradient does not reach the same loss with.
TrainerSetup setup_of(const Way& way, const std::filesystem::path& run) {
  auto setup = test::toy_setup(run);
  setup.train.max_steps = setup.train.save_every = setup.eval.every = kUpdates;
  setup.train.update_freq = kAccumulated;
  setup.train.loss_scale = way.scaling;
  setup.train.forensics.max_reports = 0;
  setup.optim.name = "sgd";
  setup.optim.nesterov = true;
  setup.optim.lr = 1;
  setup.optim.clip_norm = 0.3;
  setup.schedule = {.name = "linear", .warmup_steps = 40, .warmup_init_lr = 0};
  setup.precision = optim::choose_precision(way.precision, at::kCPU);
  return setup;
}

TrainingResult train(const Way& way, uint64_t seed, int64_t updates = kUpdates) {
  const stretto::testing::Threads one_thread(1);  // thousands of tiny products
  const stretto::testing::TempDir folder;
  ReversalTask task(seed);
  auto setup = setup_of(way, folder / "run");
  setup.run.seed = static_cast<int64_t>(seed);
  setup.train.max_steps = updates;
  EXPECT_EQ(Trainer(task, setup).run(), ExitCode::kOk);
  const auto steps = test::events(setup, "train");
  TrainingResult result;
  result.valid_loss = test::events(setup, "valid").back().loss.value();
  result.first_norm = steps.front().grad_norm.value_or(0);  // of an overflow there is none
  result.scale = steps.back().loss_scale.value();
  for (const auto& step : steps) {
    result.skipped += step.skipped.value_or(false) ? 1 : 0;
    if (step.step <= kAlike) result.losses.push_back(step.loss.value());
  }
  EXPECT_EQ(static_cast<int64_t>(steps.size()), updates + result.skipped);
  return result;
}

/// The same from several first weights and data.
std::vector<TrainingResult> train_seeds(const Way& way) {
  std::vector<TrainingResult> all;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) all.push_back(train(way, seed));
  return all;
}

double mean_loss(const std::vector<TrainingResult>& runs) {
  double sum = 0;
  for (const auto& run : runs) sum += run.valid_loss;
  return sum / static_cast<double>(runs.size());
}

/// Standard deviation of one run's loss.
double noise_of(const std::vector<TrainingResult>& runs) {
  double sum = 0;
  for (const auto& run : runs) sum += std::pow(run.valid_loss - mean_loss(runs), 2);
  return std::sqrt(sum / static_cast<double>(runs.size() - 1));
}

double furthest(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// Far above what binary16 holds.
optim::LossScaleOptions overflowing(const std::string& name) {
  optim::LossScaleOptions scaling;
  scaling.name = name;
  scaling.init = scaling.max = std::exp2(24);
  return scaling;
}

TEST(Convergence, EachPrecisionReachesTheLossOfFp32WithinNoise) {
  const auto fp32 = train_seeds({});
  EXPECT_LT(mean_loss(fp32), 0.3) << "0.22 is usual, a guess among 20 symbols 3.0";
  EXPECT_LT(noise_of(fp32), 0.06) << "such noise hides a gradient of half the right length";
  // Three standard deviations of the difference of two means.
  const double within = 3 * noise_of(fp32) * std::sqrt(2.0 / kSeeds);

  struct Case {
    Way way;
    bool overflows;
  };
  for (const auto& [way, overflows] :
       {Case{{"mixed_bf16", {}}, false}, Case{{"mixed_fp16", {.name = "fairseq"}}, false},
        Case{{"mixed_fp16", overflowing("backoff")}, true},
        Case{{"mixed_fp16", overflowing("logmax")}, true}}) {
    SCOPED_TRACE(way.precision + " " + way.scaling.name);
    const auto runs = train_seeds(way);
    EXPECT_NEAR(mean_loss(runs), mean_loss(fp32), within);
    for (size_t i = 0; i < runs.size(); ++i) {
      EXPECT_NE(runs[i].valid_loss, fp32[i].valid_loss) << "it is fp32";
      if (overflows) {
        EXPECT_GE(runs[i].skipped, 1);
        EXPECT_LT(runs[i].skipped, 30);
        EXPECT_LT(runs[i].scale, std::exp2(20));
      } else {
        EXPECT_EQ(runs[i].skipped, 0);
        // From the same weights with the same data; half of a step would be 0.03 off.
        EXPECT_NEAR(runs[i].first_norm, fp32[i].first_norm, 0.02 * fp32[i].first_norm);
        EXPECT_LT(furthest(runs[i].losses, fp32[i].losses), 0.01);
      }
    }
  }
}

// On a CPU.
TEST(Convergence, AutoAndTf32AreThePrecisionThatTheyChoose) {
  EXPECT_EQ(optim::choose_precision("tf32", at::kCPU).compute, kernels::Compute::kFp32);
  for (const std::string name : {"auto", "tf32"}) {
    const auto chosen = optim::choose_precision(name, at::kCPU).compute;
    const std::string same = chosen == kernels::Compute::kBf16 ? "mixed_bf16" : "fp32";
    EXPECT_EQ(train({name}, 1).valid_loss, train({same}, 1).valid_loss) << name;
  }
}

TEST(Convergence, AScaleThatNeverShrinksNeverTrains) {
  const Way fp16{"mixed_fp16", {.name = "static", .init = std::exp2(24)}};
  Way bf16 = fp16;
  bf16.precision = "mixed_bf16";
  stretto::testing::failure(ExitCode::kNumeric, [&] { train(fp16, 1, 10); });
  EXPECT_EQ(train(bf16, 1, 10).skipped, 0) << "bfloat16 has the range of fp32";
}

}  // namespace
}  // namespace stretto::train
