#include "families/translation/engine/ensemble_loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <mutex>

#include "data/pairs/pair_columns.h"
#include "families/translation/engine/translation.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_options.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/thread_group.h"
#include "tests/text/special_ids.h"
#include "text/tokenizer.h"

namespace stretto::tasks {
namespace {

constexpr int64_t kEos = stretto::testing::kSpecials.eos;

using Models = std::vector<std::shared_ptr<models::Seq2SeqModel>>;

constexpr int64_t kClasses = 11;  // of 16 rows
const losses::CrossEntropyOptions kLoss{.label_smoothing = 0.2};

std::shared_ptr<models::Seq2SeqModel> untrained(uint64_t seed) {
  models::Seq2SeqOptions options;
  options.d_model = 16;
  options.encoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 16};
  options.decoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 16};
  auto model = models::make_model(options,
                                  {.src_rows = 16,
                                   .tgt_rows = 16,
                                   .num_tgt_classes = kClasses,
                                   .src_specials = stretto::testing::kSpecials,
                                   .tgt_specials = stretto::testing::kSpecials,
                                   .seed = seed},
                                  losses::make_loss(kLoss));
  const torch::NoGradGuard no_grad;  // fresh weights say nearly the same of every token
  for (auto& parameter : model->parameters()) parameter.mul_(4);
  return model;
}

data::Batch batch_of(
    const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>& pairs) {
  data::Batch batch = data::pair_batch();
  for (const auto& [src, tgt] : pairs) {
    batch.sample_ids.push_back(batch.num_sequences());
    for (auto [side, ids] :
         {std::pair{&data::source(batch), &src}, std::pair{&data::target(batch), &tgt}}) {
      side->values.insert(side->values.end(), ids->begin(), ids->end());
      side->offsets.push_back(static_cast<int32_t>(side->values.size()));
    }
  }
  return batch;
}

double nll(models::Seq2SeqModel& model, const std::vector<int64_t>& src,
           const std::vector<int64_t>& tgt) {
  const torch::NoGradGuard no_grad;
  return tgt.empty() ? 0 : model.loss(batch_of({{src, tgt}}), {}).nll_sum.item<double>();
}

// By the models' own losses: how much more it costs to add each of all tokens to what stands
// before it is the token's -log p.
BatchLoss plain(const Models& models, const data::Batch& batch) {
  BatchLoss sums;
  const double each = kLoss.label_smoothing / double(kClasses - 1);
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const auto part = data::part(batch, i, i + 1);
    std::vector<int64_t> before;
    for (const int64_t target : data::target(part).values) {
      std::vector<double> mean(kClasses);
      for (const auto& model : models) {
        const double base = nll(*model, data::source(part).values, before);
        for (int64_t token = 0; token < kClasses; ++token) {
          auto longer = before;
          longer.push_back(token);
          mean[size_t(token)] += std::exp(base - nll(*model, data::source(part).values, longer)) /
                                 double(models.size());
        }
      }
      double all = 0;
      for (const double p : mean) all -= std::log(p);
      const double own = -std::log(mean[size_t(target)]);
      sums.nll_sum += own;
      sums.loss_sum += (1 - kLoss.label_smoothing - each) * own + each * all;
      before.push_back(target);
    }
  }
  return sums;
}

data::Batch uneven() {
  return batch_of(
      {{{4, 5, kEos}, {6, 7, 8, kEos}}, {{9, kEos}, {kEos}}, {{10, 4, kEos}, {5, 5, kEos}}});
}

TEST(EnsembleLoss, IsThatOfTheMeanOfTheProbabilities) {
  const Models models{untrained(1), untrained(2), untrained(3)};
  const auto batch = uneven();
  const auto want = plain(models, batch), got = ensemble_loss(models, batch, kLoss);
  EXPECT_NEAR(got.nll_sum, want.nll_sum, 1e-4 * want.nll_sum);
  EXPECT_NEAR(got.loss_sum, want.loss_sum, 1e-4 * want.loss_sum);
  double nll_mean = 0, loss_mean = 0;
  const torch::NoGradGuard no_grad;
  for (const auto& model : models) {
    const auto own = model->loss(batch, {});
    nll_mean += own.nll_sum.item<double>() / 3;
    loss_mean += own.loss_sum.item<double>() / 3;
  }
  EXPECT_LT(got.nll_sum, 0.95 * nll_mean);  // not the mean of their losses
  EXPECT_LT(got.loss_sum, 0.95 * loss_mean);
}

TEST(EnsembleLoss, OfOneModelTwiceIsItsOwn) {
  const auto model = untrained(1);
  const auto batch = uneven();
  const torch::NoGradGuard no_grad;
  const auto own = model->loss(batch, {});
  const auto twice = ensemble_loss({model, model}, batch, kLoss);
  EXPECT_NEAR(twice.nll_sum, own.nll_sum.item<double>(), 1e-5 * twice.nll_sum);
  EXPECT_NEAR(twice.loss_sum, own.loss_sum.item<double>(), 1e-5 * twice.loss_sum);
}

TEST(EnsembleLoss, OfACorpusIsTheSameForAnyNumberOfProcesses) {
  stretto::testing::TempDir folder;
  std::string src, tgt;
  for (int i = 0; i < 24; ++i) {
    src += "the " + std::string(1 + i % 3, 'a') + " sees " + std::string(1 + i % 5, 'b') + "\n";
    tgt += "das " + std::string(1 + i % 3, 'a') + " sieht " + std::string(1 + i % 4, 'c') + "\n";
  }
  experiment::Experiment e;
  e.run = {.seed = 3, .threads = 1, .device = "cpu"};
  translation_of(e).data.train_src = translation_of(e).data.valid_src = {folder.write("src", src)};
  translation_of(e).data.train_tgt = translation_of(e).data.valid_tgt = {folder.write("tgt", tgt)};
  translation_of(e).data.cache_dir = (folder.path() / "cache").string();
  translation_of(e).tokenizer.vocab_size = 40;
  translation_of(e).model.d_model = 16;
  translation_of(e).model.encoder =
      models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
  translation_of(e).model.decoder =
      models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
  const auto tokenizers = make_experiment_tokenizers(e);
  Models models;
  for (const int64_t seed : {3, 4}) {
    e.run.seed = seed;
    models.push_back(make_translation_model(e, tokenizers, at::kCPU).model);
  }
  const auto corpus =
      data::open_corpus(translation_of(e).data, data::Split::kValid, tokenizers, 3, 1);
  const auto score = [&](const distributed::ProcessGroup& group) {
    return score_corpus(tokenizers, models, corpus, translation_of(e).decode,
                        {.max_tokens = 40, .loss = translation_of(e).loss, .group = group});
  };
  const CorpusScore one = score({});
  BatchLoss sums;
  const auto batches = data::make_eval_batches(corpus, 40);
  ASSERT_GT(batches->num_batches(), 3);
  for (int64_t i = 0; i < batches->num_batches(); ++i) {
    const auto of_batch = ensemble_loss(models, batches->load(0, i), translation_of(e).loss);
    sums.loss_sum += of_batch.loss_sum;
    sums.nll_sum += of_batch.nll_sum;
  }
  EXPECT_EQ(one.loss, sums.loss_sum / double(one.target_tokens));
  EXPECT_EQ(one.nll, sums.nll_sum / double(one.target_tokens));
  for (const int processes : {2, 3}) {
    std::mutex mutex;
    stretto::test::run_ranks(processes, [&](const distributed::ProcessGroup& group) {
      const CorpusScore shared = score(group);
      const std::lock_guard lock(mutex);
      EXPECT_EQ(shared.loss, one.loss);
      EXPECT_EQ(shared.nll, one.nll);
      EXPECT_EQ(shared.target_tokens, one.target_tokens);
    });
  }
}

}  // namespace
}  // namespace stretto::tasks
