#include "models/encoders/bert.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/load.h"
#include "models/option_conflicts.h"
#include "models/registry.h"
#include "models/text_model.h"
#include "nn/watch.h"
#include "tests/models/part_cases.h"

namespace stretto::models {
namespace {

using testing::kRows;
using testing::kWidth;
using testing::relative_distance;

static_assert(config::lists_every_member<BertOptions>);

BertOptions small_bert() {
  BertOptions options;
  options.preset = "none";
  options.num_layers = 2;
  options.d_model = kWidth;
  options.num_heads = 2;
  options.ffn_dim = 20;
  options.max_positions = 9;
  options.dropout = options.attention_dropout = 0;
  options.init_std = 0.3;
  return options;
}

PartSetup setup() {
  return {.init = nn::Init(3, at::kCPU).child("encoder"),
          .rows = kRows,
          .pad = 0,
          .first_site = kTextEncoderSites};
}

std::shared_ptr<BertEncoder> encoder_of(const BertOptions& options,
                                        at::ScalarType dtype = at::kDouble) {
  auto encoder = std::make_shared<BertEncoder>(options, setup());
  encoder->to(dtype);
  return encoder;
}

struct Texts {
  data::PackedTokens tokens, segments;
  std::vector<int64_t> samples;

  nn::PackedRows rows() const { return pack_text(tokens, &segments, &samples, at::kCPU); }
};

/// Sequences of one token, and of several with two segments.
Texts texts(const std::vector<size_t>& order = {0, 1, 2}) {
  const std::vector<std::vector<int64_t>> tokens{{2, 9, 14, 3, 10, 12, 3}, {3}, {2, 20, 11, 3}},
      segments{{0, 0, 0, 0, 1, 1, 1}, {1}, {0, 0, 1, 1}};
  const std::vector<int64_t> samples{17, 4, 99};
  Texts all;
  for (const size_t i : order) {
    all.tokens.append(tokens[i]);
    all.segments.append(segments[i]);
    all.samples.push_back(samples[i]);
  }
  return all;
}

// The same network by padded rectangles [B, T, D] and libtorch's operators alone.

class PaddedBert {
 public:
  PaddedBert(const BertEncoder& encoder, const BertOptions& options) : options_(options) {
    for (const auto& item : encoder.named_parameters()) weights_[item.key()] = item.value();
  }

  /// Rows of all sequences, one behind the other, [N, D].
  at::Tensor rows(const Texts& batch) const {
    const int64_t sequences = batch.tokens.num_sequences();
    int64_t longest = 0;
    for (int64_t b = 0; b < sequences; ++b) longest = std::max(longest, batch.tokens.length(b));
    at::Tensor ids = at::zeros({sequences, longest}, at::kLong), segments = at::zeros_like(ids),
               real = at::zeros({sequences, longest}, at::kBool);
    for (int64_t b = 0; b < sequences; ++b) {
      for (int64_t t = 0; t < batch.tokens.length(b); ++t) {
        ids[b][t] = batch.tokens.sequence(b)[static_cast<size_t>(t)];
        segments[b][t] = batch.segments.sequence(b)[static_cast<size_t>(t)];
        real[b][t] = true;
      }
    }
    at::Tensor x = at::embedding(weights_.at("embedding.weight"), ids);
    if (options_.positions == "learned")
      x = x + weights_.at("positions.weight").slice(0, 0, longest);
    if (options_.num_segments > 0) x = x + at::embedding(weights_.at("segments.weight"), segments);
    x = normed(x, "embedding_norm");
    for (int64_t i = 0; i < options_.num_layers; ++i)
      x = layer(x, real, "layers." + std::to_string(i) + ".");
    if (options_.norm == "pre") x = normed(x, "final_norm");
    return x.index({real});
  }

 private:
  at::Tensor normed(const at::Tensor& x, const std::string& name) const {
    const at::Tensor& gain = weights_.at(name + ".weight");
    if (options_.norm_layer == "rms_norm")
      return x * (x.square().mean(-1, true) + options_.norm_epsilon).rsqrt() * gain;
    const at::Tensor away = x - x.mean(-1, true);
    const at::Tensor variance = away.square().mean(-1, true);
    return away / (variance + options_.norm_epsilon).sqrt() * gain + weights_.at(name + ".bias");
  }

  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    const at::Tensor y = at::matmul(x, weights_.at(name + ".weight").t());
    const auto bias = weights_.find(name + ".bias");
    return bias == weights_.end() ? y : y + bias->second;
  }

  /// x [B, H, T, W]: halves of each head turned by angles of its place (RoFormer).
  at::Tensor turned(const at::Tensor& x) const {
    const int64_t width = x.size(3);
    const at::Tensor frequency =
        at::pow(10000.0, at::arange(0, width, 2, at::kDouble) / double(width)).reciprocal();
    const at::Tensor angle =
        at::arange(x.size(2), at::kDouble).unsqueeze(1) * frequency.unsqueeze(0);
    const auto halves = x.chunk(2, 3);
    return at::cat({halves[0] * angle.cos() - halves[1] * angle.sin(),
                    halves[1] * angle.cos() + halves[0] * angle.sin()},
                   3);
  }

  at::Tensor attention(const at::Tensor& x, const at::Tensor& real, const std::string& name) const {
    const int64_t b = x.size(0), t = x.size(1), heads = options_.num_heads;
    const auto parts = linear(x, name + "self_attention.qkv").chunk(3, 2);
    const auto split = [&](const at::Tensor& part) {
      return part.view({b, t, heads, -1}).transpose(1, 2);
    };
    at::Tensor q = split(parts[0]), k = split(parts[1]);
    if (options_.positions == "rotary") {
      q = turned(q);
      k = turned(k);
    }
    const at::Tensor scores =
        at::matmul(q, k.transpose(2, 3)) / std::sqrt(double(options_.d_model) / double(heads));
    const at::Tensor seen = real.view({b, 1, 1, t});
    const at::Tensor weights = at::softmax(scores.masked_fill(seen.logical_not(), -1e30), 3);
    const at::Tensor sums = at::matmul(weights, split(parts[2])).transpose(1, 2).reshape(x.sizes());
    return linear(sums, name + "self_attention.out");
  }

  at::Tensor ffn(const at::Tensor& x, const std::string& name) const {
    const at::Tensor up = linear(x, name + "ffn.up");
    const auto& act = options_.activation;
    at::Tensor inner;
    if (act == "gelu") inner = up * 0.5 * (1 + at::erf(up / std::sqrt(2.0)));
    if (act == "gelu_tanh")
      inner = up * 0.5 * (1 + at::tanh(std::sqrt(2 / M_PI) * (up + 0.044715 * up.pow(3))));
    if (act == "relu") inner = up.clamp_min(0);
    const auto halves = up.chunk(2, 2);
    if (act == "geglu")
      inner = halves[0] * 0.5 * (1 + at::erf(halves[0] / std::sqrt(2.0))) * halves[1];
    if (act == "swiglu") inner = halves[0] / (1 + (-halves[0]).exp()) * halves[1];
    return linear(inner, name + "ffn.down");
  }

  at::Tensor layer(at::Tensor x, const at::Tensor& real, const std::string& name) const {
    const std::string self = name + "self_residual.norm", feed = name + "ffn_residual.norm";
    if (options_.norm == "pre") {
      x = x + attention(normed(x, self), real, name);
      return x + ffn(normed(x, feed), name);
    }
    x = normed(x + attention(x, real, name), self);
    return normed(x + ffn(x, name), feed);
  }

  BertOptions options_;
  std::map<std::string, at::Tensor> weights_;
};

void expect_padded_rows(const BertOptions& options) {
  const auto encoder = encoder_of(options);
  const Texts batch = texts();
  testing::expect_same(
      *encoder, [&] { return encoder->forward(batch.rows(), {}).keys; },
      [&] { return PaddedBert(*encoder, options).rows(batch); }, 1e-9);
}

TEST(Bert, RowsAndGradientsAreThoseOfPaddedBatches) {
  expect_padded_rows(small_bert());
  for (const char* activation : {"gelu_tanh", "relu", "geglu", "swiglu"}) {
    SCOPED_TRACE(activation);
    BertOptions options = small_bert();
    options.activation = activation;
    expect_padded_rows(options);
  }
}

TEST(Bert, ModernFormsAreThoseOfPaddedBatches) {
  BertOptions options = small_bert();
  options.norm = "pre";
  expect_padded_rows(options);
  options.norm_layer = "rms_norm";
  options.norm_epsilon = 1e-5;
  expect_padded_rows(options);
  options.positions = "rotary";
  options.activation = "geglu";
  options.num_segments = 0;
  expect_padded_rows(options);
}

TEST(Bert, EpsilonOfNormsIsThatOfTheOptions) {
  BertOptions options = small_bert();
  options.norm_epsilon = 0.1;
  expect_padded_rows(options);
}

TEST(Bert, SinglePrecisionFollowsDouble) {
  for (const char* activation : {"gelu", "gelu_tanh", "geglu"}) {
    BertOptions options = small_bert();
    options.activation = activation;
    const torch::NoGradGuard no_grad;
    const at::Tensor wide = encoder_of(options)->forward(texts().rows(), {}).keys;
    const at::Tensor narrow = encoder_of(options, at::kFloat)->forward(texts().rows(), {}).keys;
    EXPECT_LT(relative_distance(narrow.to(at::kDouble), wide), 1e-5) << activation;
  }
}

TEST(Bert, TokensWithoutSegmentsAreOfTheFirst) {
  const auto encoder = encoder_of(small_bert());
  const torch::NoGradGuard no_grad;
  Texts batch = texts();
  for (int64_t& segment : batch.segments.values) segment = 0;
  nn::PackedRows without = batch.rows();
  without.segments = at::Tensor();
  EXPECT_TRUE(
      at::equal(encoder->forward(without, {}).keys, encoder->forward(batch.rows(), {}).keys));
}

TEST(Bert, SegmentsChangeRows) {
  const auto encoder = encoder_of(small_bert());
  const torch::NoGradGuard no_grad;
  nn::PackedRows without = texts().rows();
  without.segments = at::Tensor();
  EXPECT_GT(relative_distance(encoder->forward(without, {}).keys,
                              encoder->forward(texts().rows(), {}).keys),
            1e-3);
}

TEST(Bert, EveryParameterGetsAGradient) {
  for (const char* norm : {"post", "pre"}) {
    BertOptions options = small_bert();
    options.norm = norm;
    options.max_positions = 7;  // as the longest text
    const auto encoder = encoder_of(options);
    testing::expect_a_gradient_for_every_parameter(*encoder,
                                                   encoder->forward(texts().rows(), {}).keys);
  }
}

// What does not depend on the batch.

BertOptions dropping() {
  BertOptions options = small_bert();
  options.dropout = 0.2;
  options.attention_dropout = 0.3;
  options.activation_dropout = 0.1;
  return options;
}

const ForwardContext kTraining{.training = true, .dropout_key = 77};

TEST(Bert, RowsOfASequenceDependOnNoOther) {
  const auto encoder = encoder_of(dropping());
  const torch::NoGradGuard no_grad;
  const at::Tensor all = encoder->forward(texts().rows(), kTraining).keys;
  const at::Tensor turned = encoder->forward(texts({2, 0, 1}).rows(), kTraining).keys;
  EXPECT_LT(relative_distance(at::cat({turned.slice(0, 4), turned.slice(0, 0, 4)}), all), 1e-12);
  const at::Tensor last = encoder->forward(texts({2}).rows(), kTraining).keys;
  EXPECT_LT(relative_distance(last, all.slice(0, 8)), 1e-12);
}

TEST(Bert, DropoutChangesWithTheUpdate) {
  const auto encoder = encoder_of(dropping());
  const torch::NoGradGuard no_grad;
  const ForwardContext next{.training = true, .dropout_key = 78};
  EXPECT_GT(relative_distance(encoder->forward(texts().rows(), next).keys,
                              encoder->forward(texts().rows(), kTraining).keys),
            0.01);
}

// Of the last layer, the rows that a head reads.

TEST(Bert, WantedRowsAreThoseOfAllWithTheirMasksAndGradients) {
  const at::Tensor wanted = at::tensor({0, 7, 8, 3}, at::kLong);
  for (const char* norm : {"post", "pre"}) {
    SCOPED_TRACE(norm);
    BertOptions options = dropping();
    options.norm = norm;
    PartSetup with_lora = setup();
    with_lora.init = with_lora.init.with_lora({.rank = 2, .dropout = 0.4, .maps = {"*"}})
                         .with_adapter({.dim = 3});
    const auto encoder = std::make_shared<BertEncoder>(options, with_lora);
    encoder->to(at::kDouble);
    {
      // Else what LoRA and adapters add is zero.
      const torch::NoGradGuard no_grad;
      for (const auto& item : encoder->named_parameters()) item.value().add_(0.1);
    }
    const nn::PackedRows input = texts().rows();
    testing::expect_same(
        *encoder, [&] { return encoder->forward_of(wanted, input, kTraining); },
        [&] { return encoder->forward(input, kTraining).keys.index_select(0, wanted); }, 1e-12);
  }
}

TEST(Bert, NoWantedRowsGiveEveryParameterAGradient) {
  const auto encoder = encoder_of(dropping());
  const at::Tensor none = encoder->forward_of(at::empty({0}, at::kLong), texts().rows(), kTraining);
  EXPECT_EQ(none.sizes(), at::IntArrayRef({0, kWidth}));
  none.sum().backward();
  for (const auto& item : encoder->named_parameters())
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
}

TEST(Bert, PlacesOfDropoutHaveSitesOfTheirOwn) {
  // Each kind of dropout alone changes the rows, and in another way than the others do.
  std::vector<at::Tensor> all;
  const torch::NoGradGuard no_grad;
  for (const int kind : {0, 1, 2, 3}) {
    BertOptions options = small_bert();
    if (kind == 1) options.dropout = 0.2;
    if (kind == 2) options.attention_dropout = 0.2;
    if (kind == 3) options.activation_dropout = 0.2;
    all.push_back(encoder_of(options)->forward(texts().rows(), kTraining).keys);
    for (size_t before = 0; before + 1 < all.size(); ++before)
      EXPECT_GT(relative_distance(all.back(), all[before]), 1e-3) << kind << " " << before;
  }
}

TEST(Bert, ASequenceLongerThanItsPositionsIsRefused) {
  Texts batch;
  const std::vector<int64_t> ids(10, 5), segments(10, 0);
  batch.tokens.append(ids);
  batch.segments.append(segments);
  batch.samples = {1};
  EXPECT_THROW(encoder_of(small_bert())->forward(batch.rows(), {}), Error);
  BertOptions rotary = small_bert();
  rotary.positions = "rotary";
  EXPECT_NO_THROW(encoder_of(rotary)->forward(batch.rows(), {}));
}

TEST(Bert, ASegmentWithoutAVectorIsRefused) {
  Texts batch = texts();
  batch.segments.values[0] = 2;
  EXPECT_THROW(encoder_of(small_bert())->forward(batch.rows(), {}), c10::Error);
}

TEST(Bert, SegmentsOfOtherLengthsAreRefused) {
  Texts batch = texts();
  batch.segments.append(std::vector<int64_t>{1});
  EXPECT_THROW(batch.rows(), c10::Error);
}

// First weights.

TEST(Bert, MatricesStartAsATruncatedNormal) {
  BertOptions options = small_bert();
  options.init_std = 0.02;
  for (const auto& item : encoder_of(options, at::kFloat)->named_parameters()) {
    const at::Tensor& x = item.value();
    if (x.dim() == 1) {
      const double first = item.key().ends_with("norm.weight") ? 1 : 0;
      EXPECT_TRUE(x.eq(first).all().item<bool>()) << item.key();
      continue;
    }
    EXPECT_LE(x.abs().max().item<double>(), 0.0400001) << item.key();
    EXPECT_GT(x.std().item<double>(), 0.012) << item.key();
  }
}

TEST(Bert, ThePaddingRowStartsAtZero) {
  const auto encoder = encoder_of(small_bert());
  EXPECT_EQ(encoder->embedding()->weight[0].abs().max().item<double>(), 0);
  EXPECT_GT(encoder->embedding()->weight[1].abs().max().item<double>(), 0);
}

// What it costs, and who is told of its tensors.

TEST(Bert, OperationsAreThoseOfItsProducts) {
  // Queries, keys, values and output; two maps of the feed-forward part; scores and sums.
  const double layer = 2 * (4.0 * kWidth * kWidth + 2 * kWidth * 20) + 4.0 * kWidth * 50;
  EXPECT_DOUBLE_EQ(encoder_of(small_bert())->operations(50), 2 * layer);
}

TEST(Bert, EveryModuleIsWatched) {
  const auto encoder = encoder_of(small_bert());
  std::set<std::string> told;
  {
    const nn::WatchScope watching(*encoder,
                                  [&](const nn::Watched& seen) { told.insert(seen.module); });
    encoder->forward(texts().rows(), {}).keys.sum().backward();
  }
  for (const char* name :
       {"embedding", "positions", "segments", "embedding_norm", "layers.0.self_attention.qkv",
        "layers.0.self_attention", "layers.0.self_attention.out", "layers.0.self_residual.norm",
        "layers.1.ffn.up", "layers.1.ffn", "layers.1.ffn.down", "layers.1.ffn_residual.norm"}) {
    EXPECT_TRUE(told.contains(name)) << name;
  }
}

// Sizes.

int64_t parameters_of(const std::string& preset, int64_t rows) {
  TextModelSetup setup;
  setup.model.preset = preset;
  setup.rows = rows;
  setup.device = at::kMeta;
  return num_parameters(*make_text_model(setup));
}

TEST(Bert, PresetsHaveThePublishedNumbersOfParameters) {
  // With the pooler, of the vocabulary of 30,522 pieces.
  const std::map<std::string, int64_t> published{{"tiny", 4385920},   {"mini", 11170560},
                                                 {"small", 28763648}, {"medium", 41373184},
                                                 {"base", 109482240}, {"large", 335141888}};
  for (const auto& [preset, count] : published) {
    EXPECT_EQ(parameters_of(preset, 30522), count) << preset;
  }
}

TEST(BertOptions, GivenSizesReplaceThoseOfThePreset) {
  BertOptions options;
  options.preset = "small";
  options.d_model = 64;
  const BertSizes sizes = sizes_of(options);
  EXPECT_EQ(sizes.num_layers, 4);
  EXPECT_EQ(sizes.d_model, 64);
  EXPECT_EQ(sizes.num_heads, 8);
  EXPECT_EQ(sizes.ffn_dim, 256);
}

TEST(BertOptions, DefaultsAndEveryPresetFit) {
  EXPECT_TRUE(option_conflicts(BertOptions{}).empty());
  for (const BertPreset& preset : kBertPresets) {
    BertOptions options;
    options.preset = preset.name;
    EXPECT_TRUE(option_conflicts(options).empty()) << preset.name;
  }
}

TEST(BertOptions, WithoutAPresetSizesAreNeeded) {
  BertOptions options;
  options.preset = "none";
  options.d_model = 64;
  const auto found = option_conflicts(options);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].keys.front(), "model.num_layers");
  EXPECT_EQ(found[1].keys.front(), "model.num_heads");
  EXPECT_EQ(found[1].what, "model.preset = \"none\" gives no num_heads");
  EXPECT_EQ(found[1].hint, "set model.num_heads, or choose a preset");
}

TEST(BertOptions, HeadsThatDoNotDivideTheWidthAreRefused) {
  BertOptions options;
  options.num_heads = 7;
  auto found = option_conflicts(options);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].keys.front(), "model.num_heads");
  EXPECT_EQ(found[0].what, "7 heads do not divide a width of 768");
  options.num_heads = 0;
  options.d_model = 100;
  found = option_conflicts(options);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].keys.front(), "model.d_model");
}

TEST(BertOptions, RotaryAndSinusoidalPositionsNeedEvenWidths) {
  BertOptions options;
  options.preset = "none";
  options.num_layers = 1;
  options.d_model = 9;
  options.num_heads = 3;
  EXPECT_TRUE(option_conflicts(options).empty());
  for (const char* positions : {"rotary", "sinusoidal"}) {
    options.positions = positions;
    EXPECT_EQ(option_conflicts(options).size(), 1u) << positions;
  }
}

}  // namespace
}  // namespace stretto::models
