#include "models/heads/adaptive.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/packed_weights.h"
#include "losses/registry.h"
#include "tests/kernels/scopes.h"

namespace stretto::models {
namespace {

/// Width of the rows, rows of a tied table, and tokens: 5, 4 and 6 of them in three softmaxes.
constexpr int64_t kAdaptiveDepth = 8, kAdaptiveTable = 17, kAdaptiveTokens = 15;
const AdaptiveOptions kThreeGroups{.cutoffs = {5, 9}, .div_value = 2};

struct AdaptiveWithTable {
  std::shared_ptr<AdaptiveHead> head;
  nn::Embedding table{nullptr};

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all = head->parameters();
    if (table) all.push_back(table->weight);
    return all;
  }
};

AdaptiveWithTable adaptive(bool tied, double label_smoothing = 0) {
  const nn::Init init(3, at::kCPU);
  AdaptiveWithTable made;
  if (tied) {
    made.table = nn::Embedding(init.child("embedding"), kAdaptiveTable, kAdaptiveDepth, -1);
    made.table->to(at::kDouble);
  }
  made.head = std::make_shared<AdaptiveHead>(
      AdaptiveHeadSetup{.init = init.child("output"),
                        .width = kAdaptiveDepth,
                        .num_classes = kAdaptiveTokens,
                        .groups = kThreeGroups,
                        .tied = made.table},
      nn::OutputLosses{.one = losses::make_loss({.label_smoothing = label_smoothing})});
  made.head->to(at::kDouble);
  return made;
}

at::Tensor adaptive_rows(int64_t count) {
  return at::randn({count, kAdaptiveDepth}, at::detail::createCPUGenerator(7), at::kDouble);
}

/// Tokens of all groups, at both ends of each.
at::Tensor all_groups() {
  return at::tensor({3, 0, 14, 4, 9, 5, 8, 10, 3}, at::kLong);
}

void expect_close_numbers(const at::Tensor& got, const at::Tensor& want, double bound) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LE((got - want).abs().max().item<double>(), bound);
}

/// libtorch's class with the weights of an untied head.
torch::nn::AdaptiveLogSoftmaxWithLoss theirs_of(const AdaptiveHead& head) {
  torch::nn::AdaptiveLogSoftmaxWithLoss theirs(
      torch::nn::AdaptiveLogSoftmaxWithLossOptions(kAdaptiveDepth, kAdaptiveTokens, {5, 9})
          .div_value(2));
  theirs->to(at::kDouble);
  const torch::NoGradGuard no_grad;
  auto ours = head.named_parameters();
  auto parameters = theirs->named_parameters();
  parameters["head.weight"].copy_(ours["weight"]);
  for (const std::string tail : {"0", "1"}) {
    parameters["tail." + tail + ".0.weight"].copy_(ours["tails." + tail + ".down.weight"]);
    parameters["tail." + tail + ".1.weight"].copy_(ours["tails." + tail + ".weight"]);
  }
  return theirs;
}

TEST(AdaptiveHead, LossGradientsAndLogProbabilitiesAreThoseOfLibtorchsClass) {
  const auto made = adaptive(/*tied=*/false);
  auto theirs = theirs_of(*made.head);
  const at::Tensor rows = adaptive_rows(9).requires_grad_(true);
  const at::Tensor loss = made.head->loss(rows, {.labels = all_groups()}).loss_sum;
  const at::Tensor want = -theirs->forward(rows, all_groups()).output.sum();
  expect_close_numbers(loss.detach(), want.detach(), 1e-10);

  std::vector<at::Tensor> ours{rows}, others{rows};
  auto own = made.head->named_parameters();
  auto their = theirs->named_parameters();
  for (const auto& [name, name_there] :
       std::vector<std::pair<std::string, std::string>>{{"weight", "head.weight"},
                                                        {"tails.0.down.weight", "tail.0.0.weight"},
                                                        {"tails.0.weight", "tail.0.1.weight"},
                                                        {"tails.1.down.weight", "tail.1.0.weight"},
                                                        {"tails.1.weight", "tail.1.1.weight"}}) {
    ours.push_back(own[name]);
    others.push_back(their[name_there]);
  }
  const auto got = torch::autograd::grad({loss}, ours);
  const auto expected = torch::autograd::grad({want}, others);
  for (size_t i = 0; i < got.size(); ++i) {
    expect_close_numbers(got[i], expected[i], 1e-10);
    EXPECT_GT(expected[i].abs().max().item<double>(), 1e-3) << i;
  }

  const torch::NoGradGuard no_grad;
  expect_close_numbers(made.head->log_probs(rows).to(at::kDouble), theirs->log_prob(rows), 1e-5);
}

TEST(AdaptiveHead, LossesOfTokensAreTheirLogProbabilities) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied);
    const torch::NoGradGuard no_grad;
    const auto made = adaptive(tied);
    const at::Tensor rows = adaptive_rows(9);
    const auto sums = made.head->loss(rows, {.labels = all_groups()});
    const at::Tensor log_p = made.head->log_probs(rows).to(at::kDouble);
    EXPECT_EQ(log_p.sizes(), (std::vector<int64_t>{9, kAdaptiveTokens}));
    expect_close_numbers(log_p.exp().sum(1), at::ones({9}, at::kDouble), 1e-5);
    expect_close_numbers(sums.token_nll, -log_p.gather(1, all_groups().unsqueeze(1)).squeeze(1),
                         1e-5);
    expect_close_numbers(sums.nll_sum, sums.token_nll.sum(), 1e-10);
    expect_close_numbers(sums.loss_sum, sums.nll_sum, 1e-10);
    EXPECT_FALSE(sums.right_sum.defined());
  }
}

TEST(AdaptiveHead, ATiedTableProjectsAtFullWidthAndHasItsGradients) {
  const auto made = adaptive(/*tied=*/true);
  ASSERT_EQ(made.head->named_parameters().keys(), (std::vector<std::string>{"clusters"}));
  const at::Tensor rows = adaptive_rows(9);
  const at::Tensor table = made.table->weight, clusters = made.head->parameters()[0];
  const at::Tensor loss = made.head->loss(rows, {.labels = all_groups()}).loss_sum;
  // From the formulas, token by token.
  const at::Tensor of_head =
      at::log_softmax(at::matmul(rows, at::cat({table.slice(0, 0, 5), clusters}).t()), 1);
  at::Tensor want = at::zeros({}, at::kDouble);
  for (int64_t n = 0; n < 9; ++n) {
    const int64_t token = all_groups()[n].item<int64_t>();
    if (token < 5) {
      want = want - of_head[n][token];
      continue;
    }
    const int64_t cluster = token < 9 ? 0 : 1;
    const int64_t begin = cluster == 0 ? 5 : 9, end = cluster == 0 ? 9 : kAdaptiveTokens;
    const at::Tensor inside = at::log_softmax(at::matmul(table.slice(0, begin, end), rows[n]), 0);
    want = want - of_head[n][5 + cluster] - inside[token - begin];
  }
  expect_close_numbers(loss.detach(), want.detach(), 1e-10);
  const auto got = torch::autograd::grad({loss}, {table, clusters});
  const auto expected = torch::autograd::grad({want}, {table, clusters});
  for (size_t i = 0; i < 2; ++i) expect_close_numbers(got[i], expected[i], 1e-10);
  EXPECT_EQ(got[0].slice(0, kAdaptiveTokens).abs().max().item<double>(), 0)
      << "rows that round the table up";
}

TEST(AdaptiveHead, EveryMatrixHasAGradientWhateverTokensComeUp) {
  for (const bool tied : {false, true}) {
    const auto made = adaptive(tied);
    for (const int64_t token : {0, 6, 12}) {
      SCOPED_TRACE(token);
      for (at::Tensor& parameter : made.parameters()) parameter.mutable_grad() = at::Tensor();
      const at::Tensor rows = adaptive_rows(3).requires_grad_(true);
      made.head->loss(rows, {.labels = at::full({3}, token, at::kLong)}).loss_sum.backward();
      EXPECT_GT(rows.grad().abs().min().item<double>(), 0);
      for (const at::Tensor& parameter : made.parameters()) {
        EXPECT_TRUE(parameter.grad().defined());
        EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>());
      }
    }
  }
}

TEST(AdaptiveHead, PartsOfTheRowsAddUpToAllOfThem) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied);
    const auto made = adaptive(tied);
    const at::Tensor rows = adaptive_rows(9);
    const auto loss_of = [&](int64_t begin, int64_t end) {
      const HeadTargets targets{.labels = all_groups().slice(0, begin, end)};
      return made.head->loss(rows.slice(0, begin, end), targets).loss_sum;
    };
    const at::Tensor whole = loss_of(0, 9);
    // The second part has no token of the last cluster.
    const at::Tensor parts = loss_of(0, 5) + loss_of(5, 6) + loss_of(6, 9);
    expect_close_numbers(parts.detach(), whole.detach(), 1e-10);
    const auto got = torch::autograd::grad({parts}, made.parameters());
    const auto want = torch::autograd::grad({whole}, made.parameters());
    for (size_t i = 0; i < got.size(); ++i) expect_close_numbers(got[i], want[i], 1e-10);
  }
}

TEST(AdaptiveHead, ItsMatricesStartAsTheyAreTold) {
  const nn::Init init(3, at::kCPU);
  const nn::InitRule rule{.distribution = nn::Distribution::kUniform, .number = 0.001};
  AdaptiveHeadSetup setup{.init = init.child("output"),
                          .width = kAdaptiveDepth,
                          .num_classes = kAdaptiveTokens,
                          .groups = kThreeGroups,
                          .first_rows = rule};
  for (const bool tied : {false, true}) {
    if (tied) setup.tied = nn::Embedding(init, kAdaptiveTable, kAdaptiveDepth, /*pad=*/-1);
    const AdaptiveHead head(setup, {});
    for (const auto& item : head.named_parameters()) {
      // A linear map starts by its own rule.
      const bool is_ruled = item.key().find("down") == std::string::npos;
      EXPECT_EQ(item.value().abs().max().item<double>() <= 0.001, is_ruled) << item.key();
    }
  }
}

TEST(AdaptiveHead, KnowsItsParameters) {
  const auto made = adaptive(/*tied=*/false);
  int64_t count = 0;
  for (const at::Tensor& parameter : made.parameters()) count += parameter.numel();
  EXPECT_EQ(kThreeGroups.num_parameters(kAdaptiveDepth, kAdaptiveTokens), count);
  EXPECT_EQ(kThreeGroups.least_tokens(), 11);
  EXPECT_EQ(AdaptiveOptions{}.least_tokens(), 0);
}

// Each product of a search and of an evaluation would lay out a copy of its own, and keep it.
TEST(AdaptiveHead, TheMatrixOfATiedHeadIsMadeOnceWhileWeightsAreLaidOut) {
  const torch::NoGradGuard no_grad;
  const stretto::testing::OwnProducts own;
  auto made = adaptive(/*tied=*/true);
  made.head->to(at::kFloat);
  made.table->to(at::kFloat);
  const at::Tensor rows = adaptive_rows(3).to(at::kFloat);
  const at::Tensor want = made.head->log_probs(rows);
  kernels::PackedWeights packed;
  const kernels::PackedWeightsScope scope(packed);
  ASSERT_NE(kernels::PackedWeightsScope::current(), nullptr);
  EXPECT_TRUE(at::allclose(made.head->log_probs(rows), want, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(made.head->log_probs(rows), want, 1e-5, 1e-6));
  const at::Tensor kept = packed.made_of(made.head->parameters()[0], [] { return at::Tensor(); });
  ASSERT_TRUE(kept.defined());
  EXPECT_EQ(kept.sizes(), (std::vector<int64_t>{5 + 2, kAdaptiveDepth}));
}

TEST(AdaptiveHead, LabelSmoothingStaysWithinASoftmax) {
  const torch::NoGradGuard no_grad;
  const auto smooth = adaptive(/*tied=*/false, 0.1), sharp = adaptive(/*tied=*/false);
  const at::Tensor rows = adaptive_rows(9);
  const auto got = smooth.head->loss(rows, {.labels = all_groups()});
  const auto plain = sharp.head->loss(rows, {.labels = all_groups()});
  expect_close_numbers(got.nll_sum, plain.nll_sum, 1e-10);
  EXPECT_GT(got.loss_sum.item<double>(), plain.loss_sum.item<double>());
}

TEST(AdaptiveHead, CountsTheClustersByTheirShareOfTokens) {
  const auto made = adaptive(/*tied=*/false);
  const double head = 2.0 * (5 + 2) * kAdaptiveDepth;
  const double tails = 2.0 * ((8 * 4 + 4 * 4) + (8 * 2 + 6 * 2));
  EXPECT_GT(made.head->operations(), head);
  EXPECT_LT(made.head->operations(), head + tails);
  // The clusters' shares: 1/6 + … + 1/9 and 1/10 + … + 1/15, over 1 + 1/2 + … + 1/15.
  const double all = 3.318229;
  EXPECT_NEAR(made.head->operations(), head + 2 * 48 * 0.545635 / all + 2 * 28 * 0.489261 / all,
              0.5);
}

TEST(AdaptiveHead, RefusesWhatCannotBeDivided) {
  const auto problem = [](std::vector<double> cutoffs, int64_t tokens) {
    return AdaptiveOptions{.cutoffs = std::move(cutoffs)}.problem(tokens);
  };
  EXPECT_EQ(problem({5, 9}, 11), "");
  EXPECT_EQ(problem({}, 11), "there is no cutoff");
  EXPECT_EQ(problem({0, 9}, 11), "the shortlist has no token");
  EXPECT_EQ(problem({5, 9}, 10), "from cutoff 9 to 10 there are fewer than two tokens");
  EXPECT_EQ(problem({9, 5}, 11), "from cutoff 9 to 5 there are fewer than two tokens");
  for (const double no_number_of_tokens : {2.5, -1.0, 1e300, std::nan("")}) {
    EXPECT_EQ(problem({1, no_number_of_tokens}, 11),
              "cutoffs must be whole numbers from 1 to 1000000000");
  }
  const AdaptiveHeadSetup setup{
      .init = nn::Init(3, at::kCPU), .width = 4, .num_classes = 8, .groups = kThreeGroups};
  EXPECT_THROW(AdaptiveHead(setup, {}), c10::Error);
  const auto made = adaptive(/*tied=*/false);
  const at::Tensor rows = adaptive_rows(1);
  for (const int64_t label : {int64_t{-1}, kAdaptiveTokens}) {
    EXPECT_THROW(made.head->loss(rows, {.labels = at::full({1}, label, at::kLong)}), c10::Error);
  }
  EXPECT_THROW(made.head->loss(rows, {.labels = at::full({1}, 0, at::kLong), .of_pairs = true}),
               c10::Error);
}

}  // namespace
}  // namespace stretto::models
