#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <utility>

#include "nn/embedding.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace stretto::nn {
namespace {

TEST(Init, XavierStaysInsideItsBoundForEachMergedPart) {
  const at::Tensor weight = Init(1, at::kCPU).xavier_uniform("weight", 300, 50, 3, std::sqrt(0.5));
  const double bound = std::sqrt(0.5) * std::sqrt(6.0 / (50 + 100));
  EXPECT_LE(weight.abs().max().item<double>(), bound);
  EXPECT_GT(weight.abs().max().item<double>(), 0.99 * bound);
  EXPECT_NEAR(weight.std().item<double>(), bound / std::sqrt(3.0), 0.02 * bound);
  EXPECT_NEAR(weight.mean().item<double>(), 0, 0.02 * bound);
}

TEST(Init, NormalHasTheDeviationAsked) {
  const at::Tensor table = Init(1, at::kCPU).normal("weight", 400, 64, 0.125);
  EXPECT_NEAR(table.std().item<double>(), 0.125, 0.002);
  EXPECT_NEAR(table.mean().item<double>(), 0, 0.002);
}

TEST(Init, IsAFunctionOfSeedAndName) {
  const Init one(1, at::kCPU), two(2, at::kCPU);
  const at::Tensor a = one.child("encoder").normal("weight", 4, 4, 1);
  EXPECT_TRUE(at::equal(a, one.normal("encoder.weight", 4, 4, 1)));
  EXPECT_FALSE(at::equal(a, one.child("decoder").normal("weight", 4, 4, 1)));
  EXPECT_FALSE(at::equal(a, two.child("encoder").normal("weight", 4, 4, 1)));
}

TEST(Sinusoids, AreFairseqsTableFromItsFirstPosition) {
  Sinusoids sinusoids(8);
  const at::Tensor like = torch::empty({1}, torch::kDouble);
  const at::Tensor rows = sinusoids.rows(torch::tensor({0, 5}, torch::kLong), 6, like);
  for (int64_t j = 0; j < 4; ++j) {
    const double w = std::pow(10000.0, -double(j) / 3);
    EXPECT_NEAR(rows[0][j].item<double>(), std::sin(2 * w), 1e-12);
    EXPECT_NEAR(rows[1][4 + j].item<double>(), std::cos(7 * w), 1e-12);
  }
}

TEST(Sinusoids, OfMarianHaveTheFrequenciesOfThePaperFromPositionZero) {
  for (const int64_t width : {8, 7}) {
    Sinusoids sinusoids(width, SinusoidTable::kMarian);
    const at::Tensor like = torch::empty({1}, torch::kDouble);
    const at::Tensor rows = sinusoids.rows(torch::tensor({0, 5}, torch::kLong), 6, like);
    ASSERT_EQ(rows.size(1), width);
    const int64_t sines = width - width / 2;
    for (int64_t j = 0; j < width; ++j) {
      const bool is_sine = j < sines;
      const double w = std::pow(10000.0, -2.0 * double(is_sine ? j : j - sines) / double(width));
      EXPECT_NEAR(rows[0][j].item<double>(), is_sine ? 0 : 1, 1e-12);
      EXPECT_NEAR(rows[1][j].item<double>(), is_sine ? std::sin(5 * w) : std::cos(5 * w), 1e-12);
    }
  }
}

TEST(Sinusoids, GrowWithTheLongestSequence) {
  Sinusoids sinusoids(8);
  const at::Tensor like = torch::empty({1});
  const at::Tensor short_one = sinusoids.rows(torch::tensor({3}, torch::kLong), 4, like);
  const at::Tensor long_one = sinusoids.rows(torch::tensor({3, 999}, torch::kLong), 1000, like);
  EXPECT_TRUE(at::equal(short_one[0], long_one[0]));
}

TEST(Embedding, ScalesByTheRootOfItsWidthAndStartsPadAtZero) {
  Embedding embedding(Init(1, at::kCPU), 6, 16, 0);
  const at::Tensor out = embedding->forward(torch::tensor({5, 0}, torch::kLong), {});
  EXPECT_TRUE(at::allclose(out[0], embedding->weight[5] * 4));
  EXPECT_EQ(out[1].abs().sum().item<double>(), 0);
}

TEST(Embedding, LeavesRowsAsTheyAreWhereNoFactorIsAsked) {
  Embedding embedding(Init(1, at::kCPU), 6, 16, 0);
  const at::Tensor ids = torch::tensor({5, 2}, torch::kLong), place = torch::ones({2, 16});
  const at::Tensor rows = embedding->weight.index_select(0, ids);
  EXPECT_TRUE(at::equal(embedding->forward(ids, {}, {}, RowScale::kOne), rows));
  EXPECT_TRUE(at::allclose(embedding->forward(ids, place, {}, RowScale::kOne), rows + 1));
  const at::Tensor dropped = torch::tensor({false, true});
  const at::Tensor left = embedding->forward(ids, place, dropped, RowScale::kOne);
  EXPECT_TRUE(at::allclose(left[0], rows[0] + 1));
  EXPECT_TRUE(at::equal(left[1], place[1]));
}

TEST(Embedding, StartsByTheRuleThatItIsGiven) {
  const InitRule uniform{.distribution = Distribution::kUniform, .number = 0.1};
  const Embedding table(Init(1, at::kCPU), 400, 64, 3, uniform),
      plain(Init(1, at::kCPU), 400, 64, 3);
  EXPECT_LE(table->weight.abs().max().item<double>(), 0.1 + 1e-6);
  EXPECT_NEAR(table->weight.std().item<double>(), 0.1 / std::sqrt(3.0), 0.001);
  EXPECT_NEAR(plain->weight.std().item<double>(), 0.125, 0.002);
  EXPECT_EQ(table->weight[3].abs().sum().item<double>(), 0);
  // A rule of model.init comes first.
  InitRule ones{.pattern = "weight", .distribution = Distribution::kConstant, .number = 1};
  const Embedding ruled(Init(1, at::kCPU).with_rules({ones}), 4, 8, 3, uniform);
  EXPECT_TRUE(at::equal(ruled->weight.slice(0, 0, 3), at::ones({3, 8})));
  EXPECT_EQ(ruled->weight[3].abs().sum().item<double>(), 0);
}

TEST(Positions, StartByTheRuleThatTheyAreGiven) {
  const InitRule tenth{.distribution = Distribution::kNormal, .number = 0.1};
  const Positions given(Init(1, at::kCPU), "learned", 64, 400, tenth),
      plain(Init(1, at::kCPU), "learned", 64, 400);
  EXPECT_NEAR(given->weight.std().item<double>(), 0.1, 0.002);
  EXPECT_NEAR(plain->weight.std().item<double>(), 0.125, 0.002);
}

/// Keeps gradients of rows that would go to the table.
struct KeptRowGradients : RowGradients {
  void looked_up(const at::Tensor& /*ids*/) override {}
  void add(const at::Tensor& /*ids*/, const at::Tensor& rows) override { kept = rows; }
  at::Tensor kept;
};

TEST(Embedding, GradientsHaveTheFactorOfTheirRowsOnEitherWay) {
  const at::Tensor ids = torch::tensor({5, 2, 5}, torch::kLong);
  const at::Tensor slopes = torch::arange(48, torch::kDouble).view({3, 16}).sin();
  for (const auto& [scale, factor] :
       {std::pair{RowScale::kSqrtWidth, 4.0}, std::pair{RowScale::kOne, 1.0}}) {
    Embedding embedding(Init(1, at::kCPU), 6, 16, 0);
    embedding->to(at::kDouble);
    const at::Tensor place = torch::zeros({3, 16}, torch::kDouble).requires_grad_(true);
    (embedding->forward(ids, place, {}, scale) * slopes).sum().backward();
    const at::Tensor grad = embedding->weight.grad();
    EXPECT_TRUE(at::allclose(grad[5], (slopes[0] + slopes[2]) * factor));
    EXPECT_TRUE(at::allclose(grad[2], slopes[1] * factor));
    EXPECT_EQ(grad[3].abs().sum().item<double>(), 0);
    EXPECT_TRUE(at::equal(place.grad(), slopes));

    const auto elsewhere = std::make_shared<KeptRowGradients>();
    embedding->send_rows_to(elsewhere);
    (embedding->forward(ids, {}, {}, scale) * slopes).sum().backward();
    EXPECT_TRUE(at::allclose(elsewhere->kept, slopes * factor));
  }
}

TEST(FeedForward, OfSiluIsThePlainFormula) {
  const FeedForward silu(Init(1, at::kCPU), 8, 12, "silu");
  const torch::NoGradGuard no_grad;
  silu->up->bias.fill_(0.3);
  const at::Tensor x = at::randn({5, 8}, at::detail::createCPUGenerator(3));
  const at::Tensor inner = x.mm(silu->up->weight.t()) + silu->up->bias;
  const at::Tensor want =
      (inner * at::sigmoid(inner)).mm(silu->down->weight.t()) + silu->down->bias;
  EXPECT_TRUE(at::allclose(silu->forward(x, {}), want, 1e-5, 1e-6));
}

TEST(FeedForward, OfSwigluHasThreeMatricesAndNoBias) {
  FeedForward gated(Init(1, at::kCPU), 8, 12, "swiglu"), plain(Init(1, at::kCPU), 8, 12, "relu");
  EXPECT_EQ(gated->parameters().size(), 2u);  // gate and up are merged
  EXPECT_EQ(gated->up->weight.sizes(), (std::vector<int64_t>{24, 8}));
  EXPECT_EQ(plain->parameters().size(), 4u);
}

TEST(RmsNorm, HasAGainAloneAndDividesByTheRootOfTheMeanSquare) {
  RmsNorm norm(Init(1, at::kCPU), 8), silent(Init(1, at::kCPU), 8, /*zero_gamma=*/true);
  ASSERT_EQ(norm->named_parameters().size(), 1u);
  EXPECT_EQ(norm->named_parameters()[0].key(), "weight");
  const at::Tensor x = torch::arange(24, torch::kFloat).view({3, 8}) - 5;
  const at::Tensor root = (x * x).mean(1, /*keepdim=*/true).sqrt();
  EXPECT_TRUE(at::allclose(norm->forward(x), x / root, 1e-5, 1e-6));
  EXPECT_EQ(silent->forward(x).abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace stretto::nn
