#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/pairs/pair_columns.h"
#include "decoding/search.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "tests/models/padded_transformer.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

constexpr int64_t kRowsOfTable = 24, kTargets = 21;

Seq2SeqOptions tiny() {
  Seq2SeqOptions options;
  options.d_model = 16;
  options.encoder = StackOptions{.num_layers = 2, .num_heads = 4, .ffn_dim = 28};
  options.decoder = StackOptions{.num_layers = 2, .num_heads = 2, .ffn_dim = 20};
  options.max_positions = 40;
  return options;
}

struct Variant {
  std::string norm, activation, positions, tie_embeddings, norm_layer = "layer_norm";
  int64_t num_kv_heads = 0;
  bool parallel_residual = false;

  std::string text() const {
    return norm + " " + norm_layer + " " + activation + " " + positions + " " +
           std::to_string(num_kv_heads) + (parallel_residual ? " parallel" : "");
  }
};

/// Each value of each option at least twice.
const std::vector<Variant> kVariants{
    {"post", "relu", "sinusoidal", "all"},
    {"pre", "relu", "sinusoidal", "decoder"},
    {"post", "gelu", "learned", "none"},
    {"pre", "swiglu", "learned", "all"},
    {"post", "swiglu", "rotary", "decoder"},
    {"pre", "gelu", "rotary", "none"},
    {"res_post", "relu", "rotary", "all"},
    {"res_post", "gelu", "learned", "none", "batch_norm"},
    {"post", "relu", "sinusoidal", "all", "batch_norm"},
    {"pre", "swiglu", "rotary", "decoder", "batch_norm"},
    {"pre", "swiglu", "rotary", "all", "rms_norm"},
    {"post", "relu", "learned", "none", "rms_norm"},
    {"res_post", "gelu", "sinusoidal", "decoder", "rms_norm"},
    {"pre", "swiglu", "rotary", "all", "rms_norm", 0, true},
    {"pre", "relu", "sinusoidal", "none", "layer_norm", 0, true},
    {"pre", "gelu", "learned", "decoder", "batch_norm", 0, true},
    {"post", "relu", "sinusoidal", "all", "layer_norm", 1},
    {"pre", "relu", "rotary", "all", "layer_norm", 2},
    {"pre", "relu", "alibi", "all"},
    {"post", "gelu", "alibi", "none", "layer_norm", 1},
    {"post", "swiglu", "t5", "decoder"},
    {"pre", "gelu", "t5", "all", "layer_norm", 1},
    {"pre", "swiglu", "t5", "all", "rms_norm", 2, true},
    {"post", "relu", "shaw", "all"},
    {"pre", "swiglu", "shaw", "none", "rms_norm", 1},
};

Seq2SeqOptions tiny(const Variant& variant) {
  Seq2SeqOptions options = tiny();
  options.norm = variant.norm;
  options.norm_layer = variant.norm_layer;
  options.parallel_residual = variant.parallel_residual;
  options.activation = variant.activation;
  options.positions = variant.positions;
  options.max_distance = 2;  // sentences are longer
  options.tie_embeddings = variant.tie_embeddings;
  options.encoder.as<StackOptions>().num_kv_heads = variant.num_kv_heads;
  options.decoder.as<StackOptions>().num_kv_heads = variant.num_kv_heads;
  return options;
}

std::shared_ptr<Seq2SeqModel> make(const Seq2SeqOptions& options,
                                   at::ScalarType dtype = at::kDouble) {
  auto model = make_model(options,
                          {.src_rows = kRowsOfTable,
                           .tgt_rows = kRowsOfTable,
                           .num_tgt_classes = kTargets,
                           .src_specials = stretto::testing::kSpecials,
                           .tgt_specials = stretto::testing::kSpecials,
                           .seed = 3},
                          losses::make_loss({}));
  model->to(dtype);
  return model;
}

void append(data::PackedTokens& tokens, const std::vector<int64_t>& ids) {
  tokens.append(ids);
}

data::Batch batch_a() {
  auto batch = data::pair_batch({17, 4, 99});
  append(data::source(batch), {5, 9, 14, 7, 3});
  append(data::source(batch), {8, 3});
  append(data::source(batch), {20, 11, 6, 3});
  append(data::target(batch), {10, 4, 3});
  append(data::target(batch), {13, 12, 5, 18, 19, 3});
  append(data::target(batch), {3});
  return batch;
}

data::Batch batch_b() {
  auto batch = data::pair_batch({1000, 2});
  append(data::source(batch), {4, 4, 15, 3});
  append(data::source(batch), {16, 3});
  append(data::target(batch), {6, 7, 8, 9, 3});
  append(data::target(batch), {20, 3});
  return batch;
}

std::vector<at::Tensor> gradients(Seq2SeqModel& model) {
  std::vector<at::Tensor> all;
  for (at::Tensor& parameter : model.parameters()) {
    const at::Tensor& grad = parameter.grad();
    all.push_back(grad.defined() ? grad.flatten().clone() : torch::zeros_like(parameter).flatten());
    parameter.mutable_grad() = at::Tensor();
  }
  return all;
}

double relative_difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  const at::Tensor x = torch::cat(a), y = torch::cat(b);
  return (x - y).norm().item<double>() / y.norm().item<double>();
}

TEST(Transformer, PackedLossAndGradientsEqualPaddedOnes) {
  for (const Variant& variant : kVariants) {
    const Seq2SeqOptions options = tiny(variant);
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(variant.text());
      const auto model = make(options, dtype);
      const at::Tensor packed = model->loss(batch_a(), {}).loss_sum;
      packed.backward();
      const auto packed_gradients = gradients(*model);
      testing::PaddedTransformer reference(options, *model, kTargets);
      const at::Tensor padded = reference.loss(batch_a(), 0.1);
      padded.backward();
      EXPECT_NEAR(packed.item<double>() / padded.item<double>(), 1, 1e-5);
      EXPECT_LT(relative_difference(packed_gradients, gradients(*model)), 1e-5);
    }
  }
}

TEST(Transformer, EveryParameterGetsAGradient) {
  for (const Variant& variant : kVariants) {
    const auto model = make(tiny(variant));
    model->loss(batch_a(), {}).loss_sum.backward();
    // A constant that a batch norm takes away with the mean.
    const bool no_biases = variant.norm == "res_post" && variant.norm_layer == "batch_norm";
    for (const auto& item : model->named_parameters()) {
      if (no_biases && (item.key().ends_with("out.bias") || item.key().ends_with("down.bias"))) {
        continue;
      }
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
    }
  }
}

int64_t count_parameters(int64_t d, int64_t heads, int64_t ffn, const std::string& norm,
                         int64_t kv_heads = 0, const std::string& positions = "sinusoidal") {
  Seq2SeqOptions options;
  options.d_model = d;
  options.encoder = StackOptions{.num_layers = 6, .num_heads = heads, .ffn_dim = ffn};
  options.decoder = StackOptions{.num_layers = 6, .num_heads = heads, .ffn_dim = ffn};
  options.norm = norm;
  options.encoder.as<StackOptions>().num_kv_heads = kv_heads;
  options.decoder.as<StackOptions>().num_kv_heads = kv_heads;
  options.positions = positions;
  return num_parameters(*make_model(
      options,
      {.src_rows = 32768, .tgt_rows = 32768, .num_tgt_classes = 32768, .device = at::kMeta},
      nullptr));
}

TEST(Transformer, HasThePublishedNumbersOfParameters) {
  EXPECT_EQ(count_parameters(512, 8, 2048, "post"), 60'915'712);
  EXPECT_EQ(count_parameters(1024, 16, 4096, "post"), 209'911'808);
  EXPECT_EQ(count_parameters(512, 8, 2048, "pre"), 60'917'760);
  EXPECT_EQ(count_parameters(1024, 16, 4096, "pre"), 209'915'904);
}

TEST(Transformer, FewerHeadsOfKeysMakeProjectionsSmaller) {
  // Keys and values of each of 18 attentions have 64 g columns instead of 512, and as many biases.
  const auto left_out = [](int64_t g) { return 18 * 2 * (512 - 64 * g) * (512 + 1); };
  EXPECT_EQ(count_parameters(512, 8, 2048, "post", 1), 60'915'712 - left_out(1));
  EXPECT_EQ(count_parameters(512, 8, 2048, "post", 2), 60'915'712 - left_out(2));
  EXPECT_EQ(count_parameters(512, 8, 2048, "post", 8), 60'915'712);
}

TEST(Transformer, ABiasOfDistancesCostsOneTableAStackOrNothing) {
  EXPECT_EQ(count_parameters(512, 8, 2048, "post", 0, "alibi"), 60'915'712);
  EXPECT_EQ(count_parameters(512, 8, 2048, "post", 0, "t5"), 60'915'712 + 2 * 32 * 8);
}

TEST(Transformer, VectorsOfDistancesCostOneTableALayer) {
  // Up to 16 tokens to both sides in an encoder, before the query alone in a decoder.
  EXPECT_EQ(count_parameters(512, 8, 2048, "post", 0, "shaw"),
            60'915'712 + 6 * (33 + 17) * (512 / 8));
}

TEST(Transformer, AsManyHeadsOfKeysAsOfQueriesAreTheSameModel) {
  Seq2SeqOptions told = tiny();
  told.encoder.as<StackOptions>().num_kv_heads = 4;
  told.decoder.as<StackOptions>().num_kv_heads = 2;
  const auto a = make(tiny(), at::kFloat), b = make(told, at::kFloat);
  const auto names = b->named_parameters();
  for (const auto& item : a->named_parameters())
    EXPECT_TRUE(at::equal(item.value(), names[item.key()])) << item.key();
  EXPECT_EQ(a->loss(batch_a(), {}).loss_sum.item<float>(),
            b->loss(batch_a(), {}).loss_sum.item<float>());
}

TEST(Transformer, PartsWithZeroGammaAddNothingAtFirstAndLearn) {
  for (const std::string norm_layer : {"layer_norm", "rms_norm", "batch_norm"}) {
    Seq2SeqOptions options = tiny();
    options.norm = "res_post";
    options.norm_layer = norm_layer;
    options.zero_gamma = true;
    const auto model = make(options);
    // Without its parts a Transformer is its embeddings and last norms.
    const double first = model->loss(batch_a(), {}).loss_sum.item<double>();
    options.encoder.as<StackOptions>().num_layers = options.decoder.as<StackOptions>().num_layers =
        1;
    EXPECT_NEAR(make(options)->loss(batch_a(), {}).loss_sum.item<double>(), first, 1e-10);
    // Gains of the decoder learn first, then its parts and with them the encoder's gains.
    constexpr int kUpdates = 4;
    for (int update = 0; update < kUpdates; ++update) {
      model->zero_grad();
      model->loss(batch_a(), {}).loss_sum.backward();
      for (const auto& item : model->named_parameters()) {
        const bool is_part = item.key().find("layers.") != std::string::npos &&
                             item.key().find("residual") == std::string::npos;
        const double gradient = item.value().grad().abs().max().item<double>();
        if (update == 0 && is_part) {
          EXPECT_EQ(gradient, 0) << item.key();
        }
        if (update == kUpdates - 1 && item.key().ends_with("weight")) {
          EXPECT_GT(gradient, 1e-9) << item.key();
        }
        const torch::NoGradGuard no_grad;
        item.value().sub_(item.value().grad(), 0.01);
      }
    }
  }
}

TEST(Transformer, TiedTablesHaveOneName) {
  const auto names = [](const char* tie) {
    Seq2SeqOptions options = tiny();
    options.tie_embeddings = tie;
    std::string found;
    for (const auto& item : make(options)->named_parameters()) {
      if (item.value().size(0) == kRowsOfTable) found += item.key() + " ";
    }
    return found;
  };
  EXPECT_EQ(names("all"), "embedding.weight ");
  EXPECT_EQ(names("decoder"), "encoder.embedding.weight decoder.embedding.weight ");
  EXPECT_EQ(names("none"), "encoder.embedding.weight decoder.embedding.weight output.weight ");
  const auto tables = [](const char* tie) {
    Seq2SeqOptions options = tiny();
    options.tie_embeddings = tie;
    std::string found;
    for (const auto& table : make(options)->vocabulary_tables()) {
      found += table.parameter + (table.of_source ? " of the source " : " ");
    }
    return found;
  };
  EXPECT_EQ(tables("all"), "embedding.weight ");
  EXPECT_EQ(tables("decoder"), "encoder.embedding.weight of the source decoder.embedding.weight ");
  EXPECT_EQ(tables("none"),
            "encoder.embedding.weight of the source decoder.embedding.weight output.weight ");
}

TEST(Transformer, AnOutputBiasIsATableOfTheTargetsVocabulary) {
  Seq2SeqOptions options = tiny();
  options.output_bias = true;
  const auto model = make(options);
  const auto parameters = model->named_parameters();
  const at::Tensor* bias = parameters.find("output.bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_EQ(bias->sizes(), (std::vector<int64_t>{kRowsOfTable}));
  const auto tables = model->vocabulary_tables();
  EXPECT_TRUE(std::any_of(tables.begin(), tables.end(), [](const VocabularyTable& table) {
    return table.parameter == "output.bias" && !table.of_source;
  }));
  EXPECT_EQ(make(tiny())->named_parameters().find("output.bias"), nullptr);
}

TEST(Transformer, FirstWeightsDependOnSeedAndNameAlone) {
  Seq2SeqOptions deep = tiny();
  deep.decoder.as<StackOptions>().num_layers = 3;
  const auto a = make(tiny())->named_parameters(), b = make(deep)->named_parameters();
  const std::string name = "decoder.layers.1.cross_attention.kv.weight";
  EXPECT_TRUE(at::equal(a[name], b[name]));
  EXPECT_FALSE(at::equal(a[name], b["decoder.layers.0.cross_attention.kv.weight"]));
  EXPECT_EQ(a["embedding.weight"][0].abs().sum().item<double>(), 0);
  // The name that keys the random numbers is the parameter's own.
  const at::Tensor drawn = nn::Init(3, at::kCPU)
                               .child("decoder.layers.1.cross_attention.kv")
                               .xavier_uniform("weight", 32, 16, 2, std::sqrt(0.5));
  EXPECT_TRUE(at::equal(a[name], drawn.to(at::kDouble)));
}

Seq2SeqOptions dropping() {
  Seq2SeqOptions options = tiny();
  options.dropout = 0.3;
  options.attention_dropout = 0.2;
  options.activation_dropout = 0.1;
  return options;
}

/// Positions of each kind that attention itself knows of, with keys that heads share.
std::vector<Seq2SeqOptions> kinds_of_attention() {
  std::vector<Seq2SeqOptions> all;
  for (const char* positions : {"sinusoidal", "alibi", "t5", "shaw"}) {
    Seq2SeqOptions options = dropping();
    options.positions = positions;
    options.max_distance = 2;
    all.push_back(options);
  }
  for (Seq2SeqOptions& options : all) {
    if (options.positions == "sinusoidal") continue;
    options.encoder.as<StackOptions>().num_kv_heads = 2;
    options.decoder.as<StackOptions>().num_kv_heads = 1;
  }
  return all;
}

void expect_dropout_of_any_cut(const Seq2SeqOptions& options) {
  for (const auto dtype : {at::kDouble, at::kFloat}) {
    const auto model = make(options, dtype);
    const ForwardContext context{.training = true, .dropout_key = 12345};
    const LossOutput whole = model->loss(data::concatenate({batch_a(), batch_b()}), context);
    whole.loss_sum.backward();
    const auto whole_gradients = gradients(*model);
    double parts = 0;
    for (const data::Batch& batch : {batch_a(), batch_b()}) {
      const LossOutput part = model->loss(batch, context);
      part.loss_sum.backward();  // accumulates
      parts += part.loss_sum.item<double>();
    }
    EXPECT_NEAR(parts / whole.loss_sum.item<double>(), 1, 1e-6);
    EXPECT_LT(relative_difference(gradients(*model), whole_gradients), 1e-6);
    EXPECT_EQ(whole.target_tokens, 17);
  }
}

TEST(Transformer, DropoutDoesNotDependOnTheCutIntoMicroBatches) {
  for (const Seq2SeqOptions& options : kinds_of_attention()) {
    SCOPED_TRACE(options.positions);
    expect_dropout_of_any_cut(options);
  }
}

TEST(Transformer, DropoutChangesWithItsKeyAndIsOffOutsideTraining) {
  const auto model = make(dropping());
  const auto loss = [&](const ForwardContext& context) {
    return model->loss(batch_a(), context).loss_sum.item<double>();
  };
  const double plain = loss({.training = false, .dropout_key = 1});
  EXPECT_EQ(plain, loss({.training = false, .dropout_key = 2}));
  EXPECT_EQ(loss({.training = true, .dropout_key = 1}), loss({.training = true, .dropout_key = 1}));
  EXPECT_NE(loss({.training = true, .dropout_key = 1}), loss({.training = true, .dropout_key = 2}));
  EXPECT_NE(plain, loss({.training = true, .dropout_key = 1}));
}

TEST(Transformer, StepsHaveTheLogProbsOfTeacherForcing) {
  for (const Variant& variant : kVariants) {
    SCOPED_TRACE(variant.text());
    const auto model = make(tiny(variant), at::kDouble);
    const data::Batch batch = batch_a();
    model->loss(batch_b(), {});  // moves running statistics away from 0 and 1
    model->eval();
    const at::Tensor expected =
        testing::PaddedTransformer(tiny(variant), *model, kTargets).log_probs(batch);
    // Two lanes a source; the second of each is fed the first token, then follows the first lane.
    const auto steps = model->start(data::source(batch), 2);
    std::vector<int64_t> alive{0, 1, 2};
    for (int64_t t = 0; !alive.empty(); ++t) {
      std::vector<int64_t> tokens, parents, next;
      for (const int64_t i : alive) {
        const int64_t token =
            t == 0 ? 2 : data::target(batch).values[data::target(batch).offsets[i] + t - 1];
        tokens.insert(tokens.end(), {token, t == 0 ? 2 : (token + 1) % kTargets});
      }
      const at::Tensor rows = steps->step(at::tensor(tokens));
      for (size_t k = 0; k < alive.size(); ++k) {
        EXPECT_LT((rows[2 * k] - expected[alive[k]][t]).abs().max().item<double>(), 1e-5)
            << "source " << alive[k] << ", step " << t;
        if (t + 1 == data::target(batch).length(alive[k])) continue;
        next.push_back(alive[k]);
        const auto first = static_cast<int64_t>(2 * k);
        parents.insert(parents.end(), {first, first});
      }
      alive = next;
      if (!alive.empty()) steps->reorder(parents);
    }
  }
}

TEST(Transformer, LanesThatSwapPlacesKeepTheirHistories) {
  const auto model = make(tiny(), at::kFloat);
  data::PackedTokens src;
  append(src, {5, 6, 3});
  const auto swapped = model->start(src, 2), straight = model->start(src, 2);
  for (int64_t t = 0; t < 70; ++t) {  // over two chunks of the cache
    const at::Tensor tokens = at::tensor({4 + t % 7, 5 + t % 11});
    const bool odd = t % 2 == 1;
    const at::Tensor a = straight->step(tokens), b = swapped->step(odd ? tokens.flip(0) : tokens);
    EXPECT_LT((a - (odd ? b.flip(0) : b)).abs().max().item<double>(), 1e-5) << "step " << t;
    swapped->reorder({1, 0});
  }
}

TEST(Transformer, StepsOverSeveralChunksHaveTheBiasOfTheirDistance) {
  auto batch = data::pair_batch({5});
  append(data::source(batch), {5, 6, 9, 3});
  std::vector<int64_t> target;
  for (int64_t t = 0; t < 70; ++t) target.push_back(4 + t * 7 % 15);
  append(data::target(batch), target);
  for (const Seq2SeqOptions& options : kinds_of_attention()) {
    const torch::NoGradGuard no_grad;
    const auto model = make(options, at::kFloat);
    const at::Tensor expected =
        testing::PaddedTransformer(options, *model, kTargets).log_probs(batch)[0];
    const auto steps = model->start(data::source(batch), 1);
    for (int64_t t = 0; t < 70; ++t) {
      const int64_t token = t == 0 ? 2 : target[static_cast<size_t>(t - 1)];
      const at::Tensor row = steps->step(at::tensor({token}))[0];
      EXPECT_LT((row - expected[t]).abs().max().item<double>(), 2e-5)
          << options.positions << ", step " << t;
    }
  }
}

TEST(Transformer, BatchedBeamSearchEqualsOneByOne) {
  const auto model = make(tiny(), at::kFloat);
  const data::PackedTokens all = data::source(batch_a());
  decoding::DecodeOptions options;
  options.beam_size = options.nbest = 3;
  const text::SpecialIds specials = model->target_specials();
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < all.num_sequences(); ++i) lengths.push_back(all.length(i));
  const auto steps = model->start(all, 3);
  const auto together = decoding::search(
      *steps,
      {.src_lengths = lengths, .pad = specials.pad, .bos = specials.bos, .eos = specials.eos},
      options);
  for (int64_t i = 0; i < all.num_sequences(); ++i) {
    data::PackedTokens one;
    append(one, {all.values.begin() + all.offsets[i], all.values.begin() + all.offsets[i + 1]});
    const auto single = model->start(one, 3);
    const auto alone = decoding::search(*single,
                                        {.src_lengths = {lengths[i]},
                                         .pad = specials.pad,
                                         .bos = specials.bos,
                                         .eos = specials.eos},
                                        options)[0];
    ASSERT_EQ(alone.size(), together[i].size());
    for (size_t k = 0; k < alone.size(); ++k) {
      EXPECT_EQ(alone[k].ids, together[i][k].ids);
      EXPECT_NEAR(alone[k].score, together[i][k].score, 1e-5);
    }
  }
}

TEST(Transformer, AlignmentsAreDistributionsOverTheSource) {
  const auto model = make(tiny());
  const auto last = model->alignments(batch_a(), -1);
  ASSERT_EQ(last.size(), 3u);
  EXPECT_EQ(last[1].sizes(), (std::vector<int64_t>{6, 2}));
  for (const at::Tensor& block : last) {
    EXPECT_TRUE(at::allclose(block.sum(1), torch::ones({block.size(0)}, block.options())));
  }
  EXPECT_TRUE(at::equal(last[0], model->alignments(batch_a(), 1)[0]));
  EXPECT_FALSE(at::equal(last[0], model->alignments(batch_a(), 0)[0]));
  EXPECT_THROW(model->alignments(batch_a(), 2), c10::Error);
}

TEST(ModelRegistry, RefusesContradictionsWithTheirNames) {
  const auto message = [](const Seq2SeqOptions& options, int64_t src_rows) -> std::string {
    try {
      make_model(options, {.src_rows = src_rows, .tgt_rows = 8, .num_tgt_classes = 8}, nullptr);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  Seq2SeqOptions options = tiny();
  EXPECT_NE(message(options, 16).find("tie_embeddings"), std::string::npos);
  options.parallel_residual = true;  // post-norm
  EXPECT_NE(message(options, 8).find("model.parallel_residual"), std::string::npos);
  options.decoder.as<StackOptions>().num_heads = 3;
  EXPECT_NE(message(options, 8).find("model.decoder.num_heads"), std::string::npos);
}

TEST(LearnedPositions, RefuseLongerSequences) {
  Seq2SeqOptions options = tiny();
  options.positions = "learned";
  options.max_positions = 4;
  EXPECT_THROW(make(options)->loss(batch_a(), {}), Error);
}

}  // namespace
}  // namespace stretto::models
