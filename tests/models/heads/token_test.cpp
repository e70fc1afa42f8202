#include "models/heads/token.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "losses/registry.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

/// Rows of the matrix, classes of the vocabulary, width of the rows; and how many rows there are.
constexpr int64_t kMatrixRows = 11, kClasses = 8, kDepth = 6, kTokens = 5;

enum class Matrix : uint8_t { kOwn, kTied };
constexpr Matrix kBoth[] = {Matrix::kOwn, Matrix::kTied};

std::string name_of(Matrix matrix) {
  return matrix == Matrix::kOwn ? "own matrix" : "tied matrix";
}

nn::OutputLosses losses_of(double label_smoothing, double r_drop = 0) {
  const losses::CrossEntropyOptions options{.label_smoothing = label_smoothing, .r_drop = r_drop};
  return {.one = losses::make_loss(options), .pair = losses::make_pair_loss(options)};
}

/// A head, and the table that it is tied to.
struct HeadWithTable {
  std::shared_ptr<TokenHead> head;
  nn::Embedding table{nullptr};
};

HeadWithTable built(Matrix matrix, nn::OutputLosses losses, at::ScalarType dtype = at::kDouble) {
  const nn::Init init(3, at::kCPU);
  HeadWithTable made;
  if (matrix == Matrix::kTied) {
    made.table = nn::Embedding(init.child("embedding"), kMatrixRows, kDepth, /*pad=*/0);
  }
  made.head = std::make_shared<TokenHead>(TokenHeadSetup{.init = init.child("output"),
                                                         .width = kDepth,
                                                         .rows = kMatrixRows,
                                                         .num_classes = kClasses,
                                                         .tied = made.table},
                                          std::move(losses));
  // The owner's tensor is the head's, whatever happens to it later.
  if (made.table) made.table->to(dtype);
  made.head->to(dtype);
  return made;
}

at::Tensor rows_of(int64_t count) {
  return at::randn({count, kDepth}, at::detail::createCPUGenerator(7), at::kDouble);
}

at::Tensor labels() {
  return at::tensor({3, 0, 7, 7, 1}, at::kLong);
}

at::Tensor plain_log_probs(const at::Tensor& rows, const at::Tensor& matrix) {
  const at::Tensor logits = rows.matmul(matrix.slice(0, 0, kClasses).t());
  return logits - logits.exp().sum(1, /*keepdim=*/true).log();
}

/// The distribution that smoothing wants: [N, classes].
at::Tensor wanted(double label_smoothing) {
  const at::Tensor all =
      at::full({kTokens, kClasses}, label_smoothing / double(kClasses - 1), at::kDouble);
  return all.scatter(1, labels().unsqueeze(1), 1 - label_smoothing);
}

at::Tensor plain_loss(const at::Tensor& rows, const at::Tensor& matrix, double label_smoothing) {
  return -(wanted(label_smoothing) * plain_log_probs(rows, matrix)).sum();
}

at::Tensor plain_token_nll(const at::Tensor& rows, const at::Tensor& matrix) {
  return -plain_log_probs(rows, matrix).gather(1, labels().unsqueeze(1)).squeeze(1);
}

/// The gradients of rows and matrix.
std::vector<at::Tensor> gradients(const at::Tensor& loss, const at::Tensor& rows,
                                  const at::Tensor& matrix) {
  return torch::autograd::grad({loss}, {rows, matrix});
}

void expect_equal(const at::Tensor& got, const at::Tensor& want, double tolerance = 1e-10) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LE((got - want).abs().max().item<double>(), tolerance);
}

TEST(TokenHead, LossIsThatOfThePlainFormula) {
  for (const Matrix matrix : kBoth) {
    for (const double smoothing : {0.0, 0.1}) {
      SCOPED_TRACE(name_of(matrix) + ", smoothing " + std::to_string(smoothing));
      const torch::NoGradGuard no_grad;
      const auto head = built(matrix, losses_of(smoothing)).head;
      const at::Tensor rows = rows_of(kTokens);
      const auto got = head->loss(rows, {.labels = labels()});
      expect_equal(got.loss_sum, plain_loss(rows, head->matrix(), smoothing));
      expect_equal(got.nll_sum, plain_token_nll(rows, head->matrix()).sum());
      expect_equal(got.token_nll, plain_token_nll(rows, head->matrix()));
      EXPECT_FALSE(got.kl_sum.defined());
    }
  }
}

TEST(TokenHead, GradientsAreThoseOfThePlainFormulaInDouble) {
  for (const Matrix matrix : kBoth) {
    SCOPED_TRACE(name_of(matrix));
    const auto head = built(matrix, losses_of(0.1)).head;
    const at::Tensor rows = rows_of(kTokens).requires_grad_(true);
    const auto got =
        gradients(head->loss(rows, {.labels = labels()}).loss_sum, rows, head->matrix());
    const auto want = gradients(plain_loss(rows, head->matrix(), 0.1), rows, head->matrix());
    for (size_t i = 0; i < 2; ++i) {
      expect_equal(got[i], want[i]);
      EXPECT_GT(want[i].abs().max().item<double>(), 1e-2);
    }
  }
}

TEST(TokenHead, RowsBeyondTheClassesHaveNoPartAndNoGradient) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Matrix matrix : kBoth) {
      SCOPED_TRACE(name_of(matrix) + ", " + c10::toString(dtype));
      const auto head = built(matrix, losses_of(0.1), dtype).head;
      const at::Tensor rows = rows_of(kTokens).to(dtype).requires_grad_(true);
      const auto loss = [&] { return head->loss(rows, {.labels = labels()}).loss_sum; };
      const at::Tensor before = loss().detach(), log_probs = head->log_probs(rows).detach();
      {
        const torch::NoGradGuard no_grad;
        head->matrix().slice(0, kClasses).fill_(50);
      }
      EXPECT_TRUE(at::equal(loss().detach(), before));
      EXPECT_TRUE(at::equal(head->log_probs(rows).detach(), log_probs));
      const at::Tensor of_matrix = gradients(loss(), rows, head->matrix())[1];
      EXPECT_EQ(of_matrix.slice(0, kClasses).abs().max().item<double>(), 0);
      EXPECT_GT(of_matrix.slice(0, 0, kClasses).abs().min().item<double>(), 0);
    }
  }
}

TEST(TokenHead, LogProbabilitiesAreFp32OfTheClassesAlone) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const Matrix matrix : kBoth) {
      SCOPED_TRACE(name_of(matrix) + ", " + c10::toString(dtype));
      const torch::NoGradGuard no_grad;
      const auto head = built(matrix, losses_of(0.1), dtype).head;
      const at::Tensor rows = rows_of(kTokens).to(dtype);
      const at::Tensor got = head->log_probs(rows);
      EXPECT_EQ(got.scalar_type(), at::kFloat);
      EXPECT_EQ(got.sizes(), (std::vector<int64_t>{kTokens, head->num_classes()}));
      const at::Tensor matrix_of_double = head->matrix().to(at::kDouble);
      expect_equal(got.to(at::kDouble), plain_log_probs(rows.to(at::kDouble), matrix_of_double),
                   1e-5);
      expect_equal(got.exp().sum(1), at::ones({kTokens}), 1e-5);
    }
  }
}

// (CE(P) + CE(Q)) / 2 + alpha / 4 (KL(P || Q) + KL(Q || P)), rows n and N + n of label n.
TEST(TokenHead, LossOfPairsIsThatOfThePlainFormulaWithItsGradients) {
  constexpr double kAlpha = 5, kSmoothing = 0.1;
  for (const Matrix matrix : kBoth) {
    SCOPED_TRACE(name_of(matrix));
    const auto head = built(matrix, losses_of(kSmoothing, kAlpha)).head;
    EXPECT_TRUE(head->learns_from_pairs());
    const at::Tensor rows = rows_of(2 * kTokens).requires_grad_(true);
    const at::Tensor p = plain_log_probs(rows.slice(0, 0, kTokens), head->matrix()),
                     q = plain_log_probs(rows.slice(0, kTokens), head->matrix());
    const at::Tensor kl = ((p.exp() - q.exp()) * (p - q)).sum();
    const at::Tensor loss = -(wanted(kSmoothing) * (p + q)).sum() / 2 + kAlpha / 4 * kl;
    const at::Tensor nll = -(p + q).gather(1, labels().unsqueeze(1)).sum() / 2;

    const auto got = head->loss(rows, {.labels = labels(), .of_pairs = true});
    expect_equal(got.loss_sum, loss);
    expect_equal(got.nll_sum, nll);
    expect_equal(got.kl_sum, kl / 2);
    const auto have = gradients(got.loss_sum, rows, head->matrix()),
               want = gradients(loss, rows, head->matrix());
    for (size_t i = 0; i < 2; ++i) expect_equal(have[i], want[i]);
  }
}

TEST(TokenHead, ABiasStartsAtZeroAndIsAddedToLossGradientAndLogProbabilities) {
  for (const Matrix matrix : kBoth) {
    SCOPED_TRACE(name_of(matrix));
    const nn::Init init(3, at::kCPU);
    const auto without = built(matrix, losses_of(0.1));
    TokenHead head({.init = init.child("output"),
                    .width = kDepth,
                    .rows = kMatrixRows,
                    .num_classes = kClasses,
                    .tied = without.table,
                    .bias = true},
                   losses_of(0.1));
    head.to(at::kDouble);
    at::Tensor bias = head.named_parameters()["bias"];
    ASSERT_EQ(bias.sizes(), (std::vector<int64_t>{kMatrixRows}));
    EXPECT_EQ(bias.abs().max().item<double>(), 0);
    {
      const torch::NoGradGuard no_grad;
      bias.copy_(at::linspace(-1, 2, kMatrixRows, at::kDouble));
    }
    const at::Tensor rows = rows_of(kTokens);
    const at::Tensor logits =
        rows.matmul(head.matrix().slice(0, 0, kClasses).t()) + bias.slice(0, 0, kClasses);
    const at::Tensor log_p = at::log_softmax(logits, 1);
    const at::Tensor want = -(wanted(0.1) * log_p).sum();
    const at::Tensor got = head.loss(rows, {.labels = labels()}).loss_sum;
    expect_equal(got.detach(), want.detach());
    expect_equal(torch::autograd::grad({got}, {bias})[0], torch::autograd::grad({want}, {bias})[0]);
    expect_equal(head.log_probs(rows).detach().to(at::kDouble), log_p.detach(), 1e-5);
  }
}

TEST(TokenHead, ALossOfPairsAddsABiasToBothPasses) {
  TokenHead head({.init = nn::Init(3, at::kCPU),
                  .width = kDepth,
                  .rows = kMatrixRows,
                  .num_classes = kClasses,
                  .bias = true},
                 losses_of(0.1, 5));
  head.to(at::kDouble);
  at::Tensor bias = head.named_parameters()["bias"];
  {
    const torch::NoGradGuard no_grad;
    bias.copy_(at::linspace(-1, 2, kMatrixRows, at::kDouble));
  }
  const at::Tensor rows = rows_of(2 * kTokens);
  const at::Tensor log_p = at::log_softmax(
      rows.matmul(head.matrix().slice(0, 0, kClasses).t()) + bias.slice(0, 0, kClasses), 1);
  const at::Tensor p = log_p.slice(0, 0, kTokens), q = log_p.slice(0, kTokens);
  const at::Tensor kl = ((p.exp() - q.exp()) * (p - q)).sum();
  const at::Tensor want = -(wanted(0.1) * (p + q)).sum() / 2 + 5.0 / 4 * kl;
  const auto got = head.loss(rows, {.labels = labels(), .of_pairs = true});
  expect_equal(got.loss_sum, want);
  expect_equal(got.kl_sum, kl / 2);
  expect_equal(torch::autograd::grad({got.loss_sum}, {bias})[0],
               torch::autograd::grad({want}, {bias})[0]);
}

TEST(TokenHead, ALossOfPairsLeavesThatOfOnePassAsItIs) {
  const torch::NoGradGuard no_grad;
  const auto pairs = built(Matrix::kOwn, losses_of(0.1, 5)).head,
             single = built(Matrix::kOwn, losses_of(0.1)).head;
  EXPECT_FALSE(single->learns_from_pairs());
  const at::Tensor rows = rows_of(kTokens);
  EXPECT_TRUE(at::equal(pairs->loss(rows, {.labels = labels()}).loss_sum,
                        single->loss(rows, {.labels = labels()}).loss_sum));
}

TEST(TokenHead, AnOwnMatrixIsItsOnlyParameterAndStartsAsATableOfEmbeddings) {
  const auto head = built(Matrix::kOwn, {}, at::kFloat).head;
  const auto parameters = head->named_parameters();
  ASSERT_EQ(parameters.size(), 1U);
  EXPECT_EQ(parameters[0].key(), "weight");
  EXPECT_TRUE(parameters[0].value().is_same(head->matrix()));
  EXPECT_TRUE(head->matrix().requires_grad());
  const nn::Embedding same(nn::Init(3, at::kCPU).child("output"), kMatrixRows, kDepth, /*pad=*/-1);
  EXPECT_TRUE(at::equal(head->matrix(), same->weight));
}

TEST(TokenHead, ATiedMatrixIsTheTableOfItsOwnerAndHasNoNameHere) {
  const auto [head, table] = built(Matrix::kTied, {}, at::kDouble);
  EXPECT_TRUE(head->named_parameters().is_empty());
  EXPECT_TRUE(head->matrix().is_same(table->weight));
  EXPECT_EQ(head->matrix().scalar_type(), at::kDouble);
}

/// Gradients of looked-up rows that the table does not get.
struct RowsElsewhere : nn::RowGradients {
  void looked_up(const at::Tensor& /*ids*/) override {}
  void add(const at::Tensor& /*ids*/, const at::Tensor& /*rows*/) override { ++calls; }
  int calls = 0;
};

TEST(TokenHead, ATiedTableHasTheGradientsOfItsLookupsBesideThatOfTheProjection) {
  const at::Tensor ids = at::tensor({4, 2, 4, 9, 1}, at::kLong);
  for (const bool elsewhere : {false, true}) {
    SCOPED_TRACE(elsewhere ? "lookups go elsewhere" : "both in one");
    auto [head, table] = built(Matrix::kTied, losses_of(0.1));
    const auto sent = std::make_shared<RowsElsewhere>();
    if (elsewhere) table->send_rows_to(sent);
    head->loss(table->forward(ids, {}), {.labels = labels()}).loss_sum.backward();
    EXPECT_EQ(sent->calls, elsewhere ? 1 : 0);

    const at::Tensor matrix = table->weight.detach().clone().requires_grad_(true);
    const at::Tensor rows = matrix.index_select(0, ids) * std::sqrt(double(kDepth));
    plain_loss(elsewhere ? rows.detach() : rows, matrix, 0.1).backward();
    expect_equal(table->weight.grad(), matrix.grad());
  }
}

TEST(TokenHead, TellsWatchersTheGradientOfThisUseOfTheMatrixUnderOneName) {
  const at::Tensor ids = at::tensor({4, 2, 4, 9, 1}, at::kLong);
  for (const Matrix matrix : kBoth) {
    SCOPED_TRACE(name_of(matrix));
    const auto [head, table] = built(matrix, losses_of(0.1));
    // Tied, the table's own gradient holds that of the lookups too.
    const at::Tensor rows = table ? table->forward(ids, {}) : rows_of(kTokens);
    std::map<std::string, at::Tensor> seen;
    {
      const nn::WatchScope scope(*head, [&](const nn::Watched& watched) {
        if (watched.parameter) seen.emplace(watched.module, watched.values.clone());
      });
      head->loss(rows, {.labels = labels()}).loss_sum.backward();
    }
    ASSERT_EQ(seen.size(), 1U);
    ASSERT_TRUE(seen.contains("output.weight"));
    const at::Tensor alone = head->matrix().detach().clone().requires_grad_(true);
    plain_loss(rows.detach(), alone, 0.1).backward();
    expect_equal(seen["output.weight"], alone.grad());
  }
}

TEST(TokenHead, WithoutALossItOnlyDecodes) {
  const torch::NoGradGuard no_grad;
  const auto head = built(Matrix::kOwn, {}).head;
  EXPECT_FALSE(head->learns_from_pairs());
  EXPECT_EQ(head->log_probs(rows_of(3)).sizes(), (std::vector<int64_t>{3, kClasses}));
  EXPECT_THROW(head->loss(rows_of(kTokens), {.labels = labels()}), c10::Error);
  const auto single = built(Matrix::kOwn, losses_of(0.1)).head;
  EXPECT_THROW(single->loss(rows_of(2 * kTokens), {.labels = labels(), .of_pairs = true}),
               c10::Error);
}

TEST(TokenHead, IsDescribedWithoutMemory) {
  const TokenHead head({.init = nn::Init(3, at::kMeta).child("output"),
                        .width = kDepth,
                        .rows = kMatrixRows,
                        .num_classes = kClasses},
                       {});
  EXPECT_TRUE(head.device().is_meta());
  // Rows that round the vocabulary up are multiplied too: they are in the matrix.
  EXPECT_EQ(head.operations(), 2 * kMatrixRows * kDepth);
}

TEST(TokenHead, RefusesClassesAndTablesThatDoNotFit) {
  const nn::Init init(3, at::kCPU);
  const auto make = [&](int64_t width, int64_t num_classes, const nn::Embedding& tied) {
    return TokenHead({.init = init.child("output"),
                      .width = width,
                      .rows = kMatrixRows,
                      .num_classes = num_classes,
                      .tied = tied},
                     {})
        .num_classes();
  };
  const nn::Embedding table(init.child("embedding"), kMatrixRows, kDepth, -1);
  EXPECT_EQ(make(kDepth, kMatrixRows, table), kMatrixRows);
  EXPECT_THROW(make(kDepth + 1, kClasses, table), c10::Error);
  for (const int64_t classes : {int64_t{0}, kMatrixRows + 1}) {
    EXPECT_THROW(make(kDepth, classes, table), c10::Error) << classes;
    EXPECT_THROW(make(kDepth, classes, nullptr), c10::Error) << classes;
  }
}

}  // namespace
}  // namespace stretto::models
