#include "models/heads/label.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/packed.h"
#include "models/parts.h"
#include "tests/kernels/gradcheck.h"

namespace stretto::models {
namespace {

constexpr int64_t kLabelDepth = 6, kLabels = 3;

BertOptions pooled_by(const std::string& pooling, double head_dropout = 0) {
  BertOptions options;
  options.preset = "none";
  options.num_layers = 1;
  options.d_model = kLabelDepth;
  options.num_heads = 2;
  options.pooling = pooling;
  options.head_dropout = head_dropout;
  return options;
}

LabelHead head_of(const BertOptions& options, int64_t num_labels = kLabels) {
  LabelHead head(options, {.init = nn::Init(3, at::kCPU).child("head"),
                           .num_labels = num_labels,
                           .first_site = kTextHeadSites});
  head.to(at::kDouble);
  return head;
}

nn::PackedRows input() {
  data::PackedTokens tokens;
  const std::vector<std::vector<int64_t>> texts{{5, 6, 7, 8}, {9}, {10, 11}};
  for (const auto& ids : texts) tokens.append(ids);
  const std::vector<int64_t> samples{17, 4, 99};
  return pack(tokens, &samples, at::kCPU);
}

at::Tensor rows() {
  return stretto::testing::noise({7, kLabelDepth}).to(at::kDouble);
}

TEST(LabelHead, PoolsAsTheOptionSays) {
  const at::Tensor x = rows(), first = at::stack({x[0], x[4], x[5]});
  const at::Tensor mean = at::stack({x.slice(0, 0, 4).mean(0), x[4], x.slice(0, 5).mean(0)});
  for (const char* pooling : {"cls_tanh", "cls_relu", "cls", "mean"}) {
    const LabelHead head = head_of(pooled_by(pooling));
    const auto weights = head.named_parameters();
    at::Tensor plain = std::string(pooling) == "mean" ? mean : first;
    if (std::string(pooling).starts_with("cls_")) {
      plain = plain.matmul(weights["pooler.weight"].t()) + weights["pooler.bias"];
      plain = std::string(pooling) == "cls_relu" ? plain.clamp_min(0) : plain.tanh();
    }
    const at::Tensor got = head.pooled(x, input(), {});
    EXPECT_TRUE(at::allclose(got, plain, 1e-9, 1e-10)) << pooling;
    const at::Tensor logits = plain.matmul(weights["output.weight"].t()) + weights["output.bias"];
    EXPECT_TRUE(at::allclose(head.logits(got), logits, 1e-9, 1e-10)) << pooling;
  }
}

TEST(LabelHead, OfACausalStackIsThePlainFormula) {
  const at::Tensor x = rows();
  const std::vector<at::Tensor> texts{x.slice(0, 0, 4), x.slice(0, 4, 5), x.slice(0, 5)};
  const auto plain_pool = [](const at::Tensor& text, const std::string& pooling) {
    const at::Tensor last = text[text.size(0) - 1], max = text.amax(0), mean = text.mean(0);
    if (pooling == "last") return last;
    if (pooling == "max") return max;
    return pooling == "mean" ? mean : at::cat({last, max, mean});
  };
  for (const std::string pooling : {"last", "max", "mean", "concat"}) {
    LabelHead head({.pooling = pooling, .head_dropout = 0.5, .head_units = 5}, kLabelDepth,
                   {.init = nn::Init(3, at::kCPU).child("head"),
                    .num_labels = kLabels,
                    .first_site = kTextHeadSites});
    head.to(at::kDouble);
    EXPECT_EQ(head.reads_one_row(), pooling == "last");
    std::vector<at::Tensor> each;
    for (const at::Tensor& text : texts) each.push_back(plain_pool(text, pooling));
    const auto weights = head.named_parameters();
    const at::Tensor hidden =
        (at::stack(each).matmul(weights["hidden.weight"].t()) + weights["hidden.bias"]).relu();
    const at::Tensor logits = hidden.matmul(weights["output.weight"].t()) + weights["output.bias"];
    const at::Tensor got = head.pooled(x, input(), {});
    EXPECT_TRUE(at::allclose(got, hidden, 1e-9, 1e-10)) << pooling;
    EXPECT_TRUE(at::allclose(head.logits(got), logits, 1e-9, 1e-10)) << pooling;
    const at::Tensor dropped = head.pooled(x, input(), {.training = true, .dropout_key = 5});
    EXPECT_FALSE(at::allclose(dropped, got)) << pooling;
  }
}

LabelHead normed_head(double dropout_of_units = 0) {
  LabelHead head({.pooling = "concat",
                  .head_dropout = 0,
                  .head_units = 5,
                  .head_norm = "batch_norm",
                  .head_units_dropout = dropout_of_units},
                 kLabelDepth,
                 {.init = nn::Init(3, at::kCPU).child("head"),
                  .num_labels = kLabels,
                  .first_site = kTextHeadSites});
  head.to(at::kDouble);
  const at::NoGradGuard no_grad;
  for (const char* norm : {"norm", "hidden_norm"}) {
    for (auto& item : head.named_parameters()) {
      if (!item.key().starts_with(std::string(norm) + ".")) continue;
      item.value().add_(0.3 * stretto::testing::noise(item.value().sizes().vec(), 5));
    }
  }
  return head;
}

/// The same in plain operations, by moments that are given.
struct PlainNorm {
  at::Tensor mean, var;

  at::Tensor operator()(const LabelHead& head, const std::string& name, const at::Tensor& x) const {
    const auto weights = head.named_parameters();
    return (x - mean) / (var + 1e-5).sqrt() * weights[name + ".weight"] + weights[name + ".bias"];
  }
  static PlainNorm of_batch(const at::Tensor& x) {
    return {x.mean(0), (x - x.mean(0)).square().mean(0)};
  }
  static PlainNorm of_running(const LabelHead& head, const std::string& name) {
    const auto buffers = head.named_buffers();
    return {buffers[name + ".running_mean"].clone(), buffers[name + ".running_var"].clone()};
  }
};

at::Tensor plain_hidden(const LabelHead& head, const at::Tensor& normed) {
  const auto weights = head.named_parameters();
  return (normed.matmul(weights["hidden.weight"].t()) + weights["hidden.bias"]).relu();
}

at::Tensor concat_of(const at::Tensor& text) {
  return at::cat({text[text.size(0) - 1], text.amax(0), text.mean(0)});
}

TEST(LabelHead, NormsPooledRowsAndUnitsOverTheTextsOfABatch) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = rows();
  const at::Tensor pooled = at::stack(
      {concat_of(x.slice(0, 0, 4)), concat_of(x.slice(0, 4, 5)), concat_of(x.slice(0, 5))});
  LabelHead head = normed_head();
  const ForwardContext training{.training = true, .dropout_key = 5};
  const at::Tensor hidden = plain_hidden(head, PlainNorm::of_batch(pooled)(head, "norm", pooled));
  const at::Tensor want = PlainNorm::of_batch(hidden)(head, "hidden_norm", hidden);
  EXPECT_TRUE(at::allclose(head.pooled(x, input(), training), want, 1e-8, 1e-9));
  EXPECT_TRUE(at::allclose(head.named_buffers()["norm.running_mean"], 0.1 * pooled.mean(0)));

  // Elsewhere a text has the same logits whatever stands beside it.
  head.eval();
  const at::Tensor kept =
      plain_hidden(head, PlainNorm::of_running(head, "norm")(head, "norm", pooled));
  const at::Tensor answers = PlainNorm::of_running(head, "hidden_norm")(head, "hidden_norm", kept);
  EXPECT_TRUE(at::allclose(head.pooled(x, input(), {}), answers, 1e-8, 1e-9));
}

TEST(LabelHead, OneTextAloneIsNormedByTheRunningStatisticsInTraining) {
  const torch::NoGradGuard no_grad;
  data::PackedTokens tokens;
  tokens.append(std::vector<int64_t>{10, 11});
  const std::vector<int64_t> samples{99};
  const nn::PackedRows alone = pack(tokens, &samples, at::kCPU);
  const at::Tensor x = rows().slice(0, 5);
  LabelHead head = normed_head();
  head.pooled(rows(), input(), {.training = true, .dropout_key = 5});
  const at::Tensor mean = head.named_buffers()["norm.running_mean"].clone();
  const at::Tensor trained = head.pooled(x, alone, {.training = true, .dropout_key = 6});
  EXPECT_TRUE(at::equal(head.named_buffers()["norm.running_mean"], mean));
  head.eval();
  EXPECT_TRUE(at::allclose(head.pooled(x, alone, {}), trained, 1e-9, 1e-10));
}

TEST(LabelHead, DropsUnitsByAShareOfTheirOwn) {
  const torch::NoGradGuard no_grad;
  const ForwardContext training{.training = true, .dropout_key = 5};
  const at::Tensor whole = normed_head().pooled(rows(), input(), training);
  const at::Tensor dropped = normed_head(0.5).pooled(rows(), input(), training);
  const at::Tensor is_kept = dropped.ne(0);
  EXPECT_FALSE(is_kept.all().item<bool>());
  EXPECT_TRUE(at::allclose(dropped, 2 * whole * is_kept, 1e-6, 1e-7));
  const CausalPool pool{.head_dropout = 0.4};
  EXPECT_EQ(pool.dropout_of_units(), 0.4) << "as head_dropout, where nothing else is said";
}

TEST(LabelHead, HasTheTensorsThatItsPoolingNeeds) {
  const auto names = [](const BertOptions& options, int64_t num_labels) {
    return head_of(options, num_labels).named_parameters().keys();
  };
  EXPECT_EQ(
      names(pooled_by("cls_tanh"), 2),
      (std::vector<std::string>{"pooler.weight", "pooler.bias", "output.weight", "output.bias"}));
  EXPECT_EQ(names(pooled_by("cls_tanh"), 0),
            (std::vector<std::string>{"pooler.weight", "pooler.bias"}));
  EXPECT_EQ(names(pooled_by("mean"), 1),
            (std::vector<std::string>{"output.weight", "output.bias"}));
  EXPECT_TRUE(names(pooled_by("cls"), 0).empty());
  EXPECT_THROW(head_of(pooled_by("cls"), 0).logits(at::zeros({1, kLabelDepth}, at::kDouble)),
               c10::Error);
}

TEST(LabelHead, DropoutIsThatOfEachSequenceAlone) {
  const ForwardContext training{.training = true, .dropout_key = 5};
  const LabelHead head = head_of(pooled_by("cls", 0.4)), plain = head_of(pooled_by("cls"));
  const at::Tensor all = head.pooled(rows(), input(), training);
  EXPECT_FALSE(at::allclose(all, plain.pooled(rows(), input(), {})));
  EXPECT_TRUE(at::equal(head.pooled(rows(), input(), {}), plain.pooled(rows(), input(), {})));
  // The last sequence by itself.
  data::PackedTokens tokens;
  tokens.append(std::vector<int64_t>{10, 11});
  const std::vector<int64_t> samples{99};
  const at::Tensor alone =
      head.pooled(rows().slice(0, 5), pack(tokens, &samples, at::kCPU), training);
  EXPECT_TRUE(at::equal(alone[0], all[2]));
}

// As inference has it: nobody gives keys to rows from which nothing is dropped.
TEST(LabelHead, DropsNothingAtInferenceAndNeedsNoKeys) {
  data::PackedTokens tokens;
  for (const size_t length : {3, 2, 2}) tokens.append(std::vector<int64_t>(length, 10));
  const auto keyless = pack(tokens, nullptr, at::kCPU);
  ASSERT_FALSE(keyless.row_keys.defined());
  for (const std::string pooling : {"cls", "mean"}) {
    const LabelHead head = head_of(pooled_by(pooling, 0.4)), plain = head_of(pooled_by(pooling));
    EXPECT_TRUE(at::equal(head.pooled(rows(), keyless, {}), plain.pooled(rows(), keyless, {})));
  }
}

at::Tensor logits() {
  return stretto::testing::noise({4, kLabels}, 2).to(at::kDouble) * 2;
}

TEST(LabelCrossEntropy, IsThePlainFormula) {
  const at::Tensor labels = at::tensor({2, 0, 1, 2}, at::kLong);
  const at::Tensor weights = at::tensor({0.5, 2.0, 3.0}, at::kFloat);
  for (const double smoothing : {0.0, 0.3}) {
    const LabelLosses got =
        label_cross_entropy(logits(), labels, {.of_classes = weights, .smoothing = smoothing});
    const LabelLosses even = label_cross_entropy(logits(), labels, {.smoothing = smoothing});
    for (int64_t b = 0; b < 4; ++b) {
      const at::Tensor p = logits()[b].exp() / logits()[b].exp().sum();
      const int64_t label = labels[b].item<int64_t>();
      double plain = 0;
      for (int64_t c = 0; c < kLabels; ++c) {
        const double share = c == label ? 1 - smoothing : smoothing / (kLabels - 1);
        plain -= share * std::log(p[c].item<double>());
      }
      const double weight = weights[label].item<double>();
      EXPECT_NEAR(even.each[b].item<double>(), plain, 1e-12);
      EXPECT_NEAR(got.each[b].item<double>(), weight * plain, 1e-12);
      EXPECT_EQ(got.weight[b].item<double>(), weight);
      EXPECT_EQ(even.weight[b].item<double>(), 1);
    }
  }
}

TEST(BinaryCrossEntropy, IsThePlainFormula) {
  const at::Tensor labels =
      at::tensor({1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0}, at::kLong).view({4, 3});
  const at::Tensor weights = at::tensor({1.0, 2.0, 0.5}, at::kFloat);
  const at::Tensor p = 1 / (1 + (-logits()).exp());
  const at::Tensor parts = -(labels * p.log() + (1 - labels) * (1 - p).log());
  EXPECT_TRUE(at::allclose(models::binary_cross_entropy(logits(), labels).each, parts.mean(1)));
  EXPECT_TRUE(at::allclose(models::binary_cross_entropy(logits(), labels, weights).each,
                           (parts * weights).mean(1)));
}

TEST(SquaredError, IsThePlainFormula) {
  const at::Tensor values = at::tensor({1.5, -2.0}, at::kFloat);
  const LabelLosses got = squared_error(at::tensor({1.0, 1.0}, at::kFloat).view({2, 1}), values);
  EXPECT_TRUE(at::allclose(got.each, at::tensor({0.25, 9.0}, at::kFloat)));
  EXPECT_EQ(got.weight.sum().item<double>(), 2);
  EXPECT_THROW(squared_error(at::zeros({2, 2}), values), c10::Error);
}

const std::vector<LabelTarget> kLabelTargets{LabelTarget::kOne, LabelTarget::kSeveral,
                                             LabelTarget::kValue};

/// Logits of 4 samples.
at::Tensor logits_for(LabelTarget target, uint64_t seed) {
  const int64_t outputs = target == LabelTarget::kValue ? 1 : kLabels;
  return stretto::testing::noise({4, outputs}, seed).to(at::kDouble) * 2;
}

TEST(LabelPredictions, AreProbabilitiesOrValuesAndNeedNoLabels) {
  for (const LabelTarget target : kLabelTargets) {
    const at::Tensor x = logits_for(target, 2), got = label_predictions(target, x);
    const at::Tensor powers = x.exp();
    const at::Tensor plain = target == LabelTarget::kOne       ? powers / powers.sum(1, true)
                             : target == LabelTarget::kSeveral ? powers / (1 + powers)
                                                               : x;
    EXPECT_TRUE(at::allclose(got, plain));
  }
}

TEST(LabelPredictions, OfSeveralModelsAreTheirMean) {
  for (const LabelTarget target : kLabelTargets) {
    const at::Tensor a = logits_for(target, 2), b = logits_for(target, 3);
    const at::Tensor mean = (label_predictions(target, a) + label_predictions(target, b)) / 2;
    EXPECT_TRUE(at::allclose(label_predictions(target, mean_label_logits(target, {a, b})), mean));
    EXPECT_TRUE(mean_label_logits(target, {a}).is_same(a));
  }
}

TEST(LabelLosses, OfATargetAreThoseOfItsFunction) {
  const at::Tensor one = at::tensor({2, 0, 1, 2}, at::kLong),
                   several =
                       at::tensor({1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0}, at::kLong).view({4, 3}),
                   values = at::tensor({1.5, -2.0, 0.0, 3.0}, at::kDouble);
  const LabelWeights weights{.of_classes = at::tensor({0.5, 2.0, 3.0}, at::kDouble),
                             .smoothing = 0.2};
  const at::Tensor x = logits_for(LabelTarget::kOne, 2), v = logits_for(LabelTarget::kValue, 2);
  EXPECT_TRUE(at::equal(label_losses(LabelTarget::kOne, x, one, weights).each,
                        label_cross_entropy(x, one, weights).each));
  EXPECT_TRUE(at::equal(label_losses(LabelTarget::kSeveral, x, several, weights).each,
                        models::binary_cross_entropy(x, several, weights.of_classes).each));
  EXPECT_TRUE(at::equal(label_losses(LabelTarget::kValue, v, values, weights).each,
                        squared_error(v, values).each));
}

TEST(LabelsRight, AreSamplesWithExactlyTheirLabels) {
  const at::Tensor x = at::tensor({1.0, 2.0, -1.0, 3.0, -2.0, -1.0}, at::kDouble).view({2, 3});
  const auto right = [&](LabelTarget target, const at::Tensor& labels) {
    return num_labels_right(target, x, labels).item<double>();
  };
  EXPECT_EQ(right(LabelTarget::kOne, at::tensor({1, 0}, at::kLong)), 2);
  EXPECT_EQ(right(LabelTarget::kOne, at::tensor({0, 0}, at::kLong)), 1);
  const at::Tensor labels = at::tensor({1, 1, 0, 1, 0, 1}, at::kFloat).view({2, 3});
  EXPECT_EQ(right(LabelTarget::kSeveral, labels), 1);
  EXPECT_EQ(right(LabelTarget::kValue, at::zeros({2})), 0);
}

TEST(LabelsInTop, AreAmongTheMostProbableOnes) {
  const at::Tensor x = at::tensor({1.0, 4.0, 2.0, 3.0}, at::kDouble).repeat({4, 1});
  const at::Tensor labels = at::arange(4, at::kLong);
  for (int64_t k = 0; k <= 4; ++k) {
    const std::vector<int64_t> order{4, 1, 3, 2};  // the place of each label
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(is_in_top(x, labels, k)[i].item<bool>(), order[static_cast<size_t>(i)] <= k)
          << i << " of " << k;
    }
  }
  EXPECT_TRUE(is_in_top(x, labels, 99).all().item<bool>());
}

TEST(LabelsInTop, WithOneAreThosePredictedAlsoWhereSomeAreAlike) {
  const at::Tensor x =
      at::tensor({1.0, 1.0, 0.0, 2.0, 3.0, 3.0, 0.0, 0.0, 0.0}, at::kDouble).view({3, 3});
  for (const std::vector<int64_t>& labels :
       {std::vector<int64_t>{0, 1, 0}, std::vector<int64_t>{1, 2, 2}}) {
    const at::Tensor wanted = at::tensor(labels, at::kLong);
    EXPECT_EQ(is_in_top(x, wanted, 1).sum().item<int64_t>(),
              num_labels_right(LabelTarget::kOne, x, wanted).item<double>());
  }
  EXPECT_TRUE(is_in_top(x, at::tensor({1, 2, 1}, at::kLong), 2).all().item<bool>());
}

TEST(LabelsInTop, AreNoneOfASampleWithNan) {
  const at::Tensor x = at::tensor({1.0, std::nan(""), 0.0, 1.0}, at::kDouble).view({2, 2});
  const at::Tensor in_top = is_in_top(x, at::tensor({0, 1}, at::kLong), 2);
  EXPECT_FALSE(in_top[0].item<bool>());
  EXPECT_TRUE(in_top[1].item<bool>());
}

TEST(LabelLosses, GradientsAreThoseOfFiniteDifferences) {
  const at::Tensor labels = at::tensor({2, 0, 1, 2}, at::kLong);
  const at::Tensor several =
      at::tensor({1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0}, at::kLong).view({4, 3});
  const at::Tensor weights = at::tensor({0.5, 2.0, 3.0}, at::kDouble);
  stretto::testing::expect_gradients(
      [&](const auto& in) {
        return label_cross_entropy(in[0], labels, {.of_classes = weights, .smoothing = 0.2}).each;
      },
      {logits()});
  stretto::testing::expect_gradients(
      [&](const auto& in) { return models::binary_cross_entropy(in[0], several, weights).each; },
      {logits()});
  stretto::testing::expect_gradients(
      [&](const auto& in) { return squared_error(in[0], at::ones({4})).each; },
      {logits().slice(1, 0, 1)});
}

}  // namespace
}  // namespace stretto::models
