// What each kind of part multiplies its token vectors by, and how the tables start that it reads.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "models/decoder.h"
#include "models/embedding_options.h"
#include "models/registry.h"
#include "nn/watch.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::first_batch, testing::kWidth;

constexpr int64_t kVocabulary = 404;

StackOptions one_stack() {
  return {.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
}

template <class Light>
Light one_light() {
  Light light{.num_layers = 1, .num_heads = 2, .kernels = {3}, .ffn_dim = 24};
  light.activation = "gelu";  // no corner, for differences
  light.positions = "none";
  return light;
}

/// Both sides of each kind; no part adds positions but ConvS2S's, whose encoder learns them.
std::vector<Seq2SeqOptions> kinds(int64_t d_model) {
  const auto of = [&](const EncoderChoice& encoder, const DecoderChoice& decoder) {
    Seq2SeqOptions options;
    options.d_model = d_model;
    options.positions = "rotary";
    options.activation = "gelu";
    options.encoder = encoder;
    options.decoder = decoder;
    return options;
  };
  ConvDecoderOptions conv{.num_layers = 1};
  conv.positions = "none";
  return {of(one_stack(), one_stack()),
          of(one_light<LightEncoderOptions>(), one_light<LightDecoderOptions>()),
          of(one_light<DynamicEncoderOptions>(), one_light<DynamicDecoderOptions>()),
          of(LstmEncoderOptions{.num_layers = 1}, LstmDecoderOptions{.num_layers = 1}),
          of(ConvEncoderOptions{.num_layers = 1}, conv)};
}

std::string name_of(const Seq2SeqOptions& options) {
  return options.encoder.name() + " to " + options.decoder.name() + ", " + options.embedding_scale;
}

/// The sum of all logits' softmax losses, which needs no room of losses.
nn::OutputLoss plain_loss() {
  return [](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& targets,
            int64_t classes, const at::Tensor& /*bias*/, double /*softcap*/) {
    const at::Tensor log_p = at::log_softmax(x.mm(weight.slice(0, 0, classes).t()), 1);
    const at::Tensor sum = -log_p.gather(1, targets.unsqueeze(1)).sum();
    return kernels::CrossEntropy{.loss_sum = sum, .nll_sum = sum.detach()};
  };
}

std::shared_ptr<Seq2SeqModel> model_of(const Seq2SeqOptions& options) {
  return make_model(options,
                    {.src_rows = kVocabulary,
                     .tgt_rows = kVocabulary,
                     .num_tgt_classes = kVocabulary,
                     .src_specials = stretto::testing::kSpecials,
                     .tgt_specials = stretto::testing::kSpecials},
                    plain_loss());
}

/// Every token of the vocabulary once on either side, in sentences of 50.
data::Batch all_tokens() {
  data::Batch batch = data::pair_batch();
  for (int64_t first = 4; first < kVocabulary; first += 50) {
    std::vector<int64_t> ids;
    for (int64_t id = first; id < first + 50; ++id) ids.push_back(id);
    batch.sample_ids.push_back(first);
    data::source(batch).append(ids);
    data::target(batch).append(ids);
  }
  return batch;
}

/// What the encoder embeds, then what the decoder does.
std::vector<at::Tensor> embedded(Seq2SeqModel& model, const data::Batch& batch) {
  std::vector<at::Tensor> rows;
  const torch::NoGradGuard no_grad;
  const nn::WatchScope scope(model, [&](const nn::Watched& watched) {
    if (watched.module.ends_with("embedding")) rows.push_back(watched.values.clone());
  });
  model.loss(batch, {});
  return rows;
}

at::Tensor parameter(const torch::nn::Module& model, const std::string& name) {
  const auto named = model.named_parameters();
  const at::Tensor* found = named.find(name);
  return found == nullptr ? at::Tensor() : found->detach();
}

double deviation(const at::Tensor& rows) {
  return rows.to(at::kDouble).std(/*unbiased=*/false).item<double>();
}

// Kinds of parts.

TEST(EmbeddingKind, ALaterKindDecidesHowASharedTableStarts) {
  const EmbeddingKind transformer{}, conv = convolutional_embedding(),
                                     lstm = recurrent_embedding(0.1),
                                     xavier = recurrent_embedding(0);
  using nn::Distribution;
  const auto expect = [](const std::vector<EmbeddingKind>& parts, const char* scale,
                         Distribution distribution, double number) {
    const nn::InitRule rule = shared_rows(parts, scale, 64);
    EXPECT_EQ(rule.distribution, distribution);
    EXPECT_DOUBLE_EQ(rule.number, number);
  };
  expect({transformer}, "auto", Distribution::kNormal, 0.125);
  expect({lstm, transformer}, "auto", Distribution::kNormal, 0.125);
  expect({transformer, conv}, "none", Distribution::kNormal, 0.125);
  expect({lstm, conv}, "auto", Distribution::kNormal, 0.1);
  expect({conv, lstm}, "none", Distribution::kNormal, 0.1);
  expect({lstm, xavier}, "auto", Distribution::kUniform, 0.1);
  expect({xavier, lstm}, "auto", Distribution::kXavierUniform, 1);
  expect({lstm, conv}, "sqrt", Distribution::kNormal, 0.125);
}

TEST(EmbeddingKind, IsATransformersUnlessOptionsSayOtherwise) {
  EXPECT_EQ(embedding_kind(StackOptions{}).part, EmbeddingKind::Part::kTransformer);
  EXPECT_EQ(embedding_kind(LightEncoderOptions{}).part, EmbeddingKind::Part::kTransformer);
  EXPECT_EQ(embedding_kind(DynamicDecoderOptions{}).part, EmbeddingKind::Part::kTransformer);
  EXPECT_EQ(embedding_kind(ConvEncoderOptions{}).part, EmbeddingKind::Part::kConvolutional);
  EXPECT_EQ(embedding_kind(LstmDecoderOptions{.init_bound = 0.04}).init_bound, 0.04);
}

// Rows as layers see them first.

TEST(EmbeddingScale, RowsOfEachKindHaveTheirDeviationAtEveryWidth) {
  const double lstm = 0.1 / std::sqrt(3.0), sum = 0.1 * std::sqrt(2.0);  // of token and position
  const data::Batch batch = all_tokens();
  for (const int64_t d : {128, 256}) {
    const double narrow = 1 / std::sqrt(static_cast<double>(d));
    // In the order of kinds(): of the encoder and of the decoder.
    const std::vector<std::pair<double, double>> one{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    const std::map<std::string, std::vector<std::pair<double, double>>> expected{
        {"auto", {{1, 1}, {1, 1}, {1, 1}, {lstm, lstm}, {sum, 0.1}}},
        {"none", {{narrow, narrow}, {narrow, narrow}, {narrow, narrow}, {lstm, lstm}, {sum, 0.1}}},
        {"sqrt", one}};
    for (const auto& [scale, rows] : expected) {
      const auto all = kinds(d);
      for (size_t i = 0; i < all.size(); ++i) {
        Seq2SeqOptions options = all[i];
        options.embedding_scale = scale;
        SCOPED_TRACE(name_of(options) + ", " + std::to_string(d));
        const auto seen = embedded(*model_of(options), batch);
        ASSERT_EQ(seen.size(), 2u);
        EXPECT_NEAR(deviation(seen[0]) / rows[i].first, 1, 0.03);
        EXPECT_NEAR(deviation(seen[1]) / rows[i].second, 1, 0.03);
      }
    }
  }
}

TEST(EmbeddingScale, LearnedPositionsAreAsLargeAsTheRowsBesideThem) {
  for (const int64_t d : {128, 256}) {
    Seq2SeqOptions options = kinds(d).back();
    const auto deviations = [&] {
      const auto model = model_of(options);
      return std::pair(deviation(parameter(*model, "embedding.weight")),
                       deviation(parameter(*model, "encoder.positions.weight")));
    };
    const auto [token, position] = deviations();
    EXPECT_NEAR(token, 0.1, 0.002);
    EXPECT_NEAR(position, 0.1, 0.002);
    // Beside a table that a Transformer reads as well, they start as this does.
    options.decoder = one_stack();
    const auto [shared, beside] = deviations();
    const double narrow = 1 / std::sqrt(static_cast<double>(d));
    EXPECT_NEAR(shared / narrow, 1, 0.02);
    EXPECT_NEAR(beside / narrow, 1, 0.02);
  }
}

TEST(EmbeddingScale, OfATransformerIsWhatItAlwaysWas) {
  Seq2SeqOptions options = kinds(64).front();
  options.positions = "learned";
  const auto model = model_of(options);
  const nn::Init init(1, at::kCPU);
  at::Tensor table = init.child("embedding").normal("weight", kVocabulary, 64, 0.125);
  table[0].zero_();
  EXPECT_TRUE(at::equal(parameter(*model, "embedding.weight"), table));
  for (const char* side : {"encoder", "decoder"}) {
    const at::Tensor positions =
        init.child(side).child("positions").normal("weight", 1024, 64, 0.125);
    EXPECT_TRUE(at::equal(parameter(*model, std::string(side) + ".positions.weight"), positions));
  }
  const data::Batch batch = first_batch();
  const auto rows = embedded(*model, batch);
  const nn::PackedRows src = testing::sources(batch);
  const at::Tensor places =
      parameter(*model, "encoder.positions.weight").index_select(0, src.positions);
  EXPECT_TRUE(at::allclose(rows.at(0), table.index_select(0, src.ids) * 8 + places, 1e-6, 1e-6));
  // "sqrt" says the same.
  options.embedding_scale = "sqrt";
  const auto same = model_of(options);
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(at::equal(item.value(), parameter(*same, item.key()))) << item.key();
  }
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(model->loss(batch, {}).loss_sum.item<double>(),
            same->loss(batch, {}).loss_sum.item<double>());
}

TEST(EmbeddingScale, EachSideOfATiedTableHasItsOwnFactor) {
  const auto all = kinds(kWidth);
  const data::Batch batch = first_batch();
  const double root = std::sqrt(static_cast<double>(kWidth));
  for (const bool reads : {true, false}) {  // the Transformer: reads, or writes
    for (const size_t other : {size_t{3}, size_t{4}}) {
      Seq2SeqOptions options = all[other];
      if (reads) {
        options.encoder = one_stack();
      } else {
        options.decoder = one_stack();
      }
      if (!reads && other == 4) {
        ConvEncoderOptions conv{.num_layers = 1};
        conv.positions = "none";
        options.encoder = conv;
      }
      SCOPED_TRACE(name_of(options));
      const auto model = model_of(options);
      const at::Tensor table = parameter(*model, "embedding.weight");
      EXPECT_NEAR(deviation(table) * root, 1, 0.05);
      const auto rows = embedded(*model, batch);
      const at::Tensor src = table.index_select(0, testing::sources(batch).ids),
                       tgt = table.index_select(0, testing::targets(batch).ids);
      EXPECT_TRUE(at::allclose(rows.at(0), src * (reads ? root : 1), 1e-6, 1e-7));
      EXPECT_TRUE(at::allclose(rows.at(1), tgt * (reads ? 1 : root), 1e-6, 1e-7));
    }
  }
}

// The same function of other numbers: what is multiplied, and what was multiplied before.

TEST(EmbeddingScale, UnscaledRowsThatAreLargerGiveTheSameLossAndAScaledGradient) {
  const double root = std::sqrt(static_cast<double>(kWidth));
  const data::Batch batch = first_batch();
  for (Seq2SeqOptions options : kinds(kWidth)) {
    options.tie_embeddings = "none";  // the output projection is apart
    SCOPED_TRACE(name_of(options));
    options.embedding_scale = "sqrt";
    const auto scaled = model_of(options);
    options.embedding_scale = "none";
    const auto plain = model_of(options);
    scaled->to(at::kDouble);
    plain->to(at::kDouble);
    const auto is_table = [](const std::string& name) {
      return name.ends_with("embedding.weight");
    };
    {
      const torch::NoGradGuard no_grad;
      for (auto& item : plain->named_parameters()) {
        const at::Tensor from = parameter(*scaled, item.key());
        item.value().copy_(is_table(item.key()) ? from * root : from);
      }
    }
    const at::Tensor a = scaled->loss(batch, {}).loss_sum, b = plain->loss(batch, {}).loss_sum;
    EXPECT_NEAR(a.item<double>(), b.item<double>(), 1e-9 * std::abs(a.item<double>()));
    a.backward();
    b.backward();
    const auto of_plain = plain->named_parameters();
    for (const auto& item : scaled->named_parameters()) {
      const at::Tensor expected = of_plain[item.key()].grad() * (is_table(item.key()) ? root : 1);
      EXPECT_LT((item.value().grad() - expected).norm().item<double>(),
                1e-9 * (1 + expected.norm().item<double>()))
          << item.key();
    }
  }
}

TEST(EmbeddingScale, TheGradientOfATableIsThatOfACentralDifference) {
  const data::Batch batch = first_batch();
  const int64_t id = data::source(batch).values.front();
  for (const auto& options : kinds(kWidth)) {
    for (const char* scale : {"sqrt", "none"}) {
      Seq2SeqOptions scaled = options;
      scaled.embedding_scale = scale;
      // What is scaled on purpose is no slope of the loss.
      if (scaled.encoder.is<ConvEncoderOptions>()) {
        scaled.encoder.as<ConvEncoderOptions>().scale_gradient = false;
      }
      SCOPED_TRACE(name_of(scaled));
      const auto model = model_of(scaled);
      model->to(at::kDouble);
      model->loss(batch, {}).loss_sum.backward();
      at::Tensor table = model->named_parameters()["embedding.weight"];
      const double slope = table.grad()[id][2].item<double>();
      const torch::NoGradGuard no_grad;
      const auto loss_at = [&](double step) {
        table[id][2] += step;
        const double loss = model->loss(batch, {}).loss_sum.item<double>();
        table[id][2] -= step;
        return loss;
      };
      constexpr double kStep = 1e-5;
      const double want = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
      EXPECT_NEAR(slope, want, 1e-5 * (1 + std::abs(want)));
    }
  }
}

// Decoding.

TEST(EmbeddingScale, StepsHaveTheRowsOfTeacherForcingWithEitherFactor) {
  const data::Batch batch = first_batch();
  for (const auto& options : kinds(kWidth)) {
    for (const char* scale : {"auto", "none", "sqrt"}) {
      Seq2SeqOptions scaled = options;
      scaled.embedding_scale = scale;
      SCOPED_TRACE(name_of(scaled));
      const auto model = model_of(scaled);
      const auto decoder = std::dynamic_pointer_cast<Decoder>(model->named_children()["decoder"]);
      ASSERT_TRUE(decoder);
      const Encoded memory =
          testing::any_memory(batch, at::kFloat, scaled.decoder.is<ConvDecoderOptions>());
      testing::expect_steps_of_teacher_forcing(*decoder, memory, batch, 1e-4);
    }
  }
}

// Who has which table.

TEST(EmbeddingScale, ARuleOfModelInitComesBeforeFirstRowsAndPaddingStaysZero) {
  for (Seq2SeqOptions options : kinds(kWidth)) {
    SCOPED_TRACE(name_of(options));
    EXPECT_EQ(parameter(*model_of(options), "embedding.weight")[0].abs().sum().item<double>(), 0);
    options.init = {"embedding.weight constant value=0.5"};
    const at::Tensor table = parameter(*model_of(options), "embedding.weight");
    EXPECT_EQ(table[0].abs().sum().item<double>(), 0);
    EXPECT_TRUE(at::equal(table.slice(0, 1), at::full({kVocabulary - 1, kWidth}, 0.5F)));
  }
}

TEST(EmbeddingScale, ATableOfItsOwnStartsAsItsPartAlone) {
  Seq2SeqOptions options = kinds(64).front();
  options.tie_embeddings = "decoder";
  options.decoder = LstmDecoderOptions{.num_layers = 1, .init_bound = 0.04};
  const auto model = model_of(options);
  EXPECT_NEAR(deviation(parameter(*model, "encoder.embedding.weight")), 0.125, 0.003);
  const at::Tensor table = parameter(*model, "decoder.embedding.weight");
  EXPECT_LE(table.abs().max().item<double>(), 0.04 + 1e-6);
  EXPECT_NEAR(deviation(table), 0.04 / std::sqrt(3.0), 0.001);
  options.decoder = LstmDecoderOptions{.num_layers = 1, .init_bound = 0};  // Xavier-uniform
  const double most =
      parameter(*model_of(options), "decoder.embedding.weight").abs().max().item<double>();
  const double bound = std::sqrt(6.0 / (kVocabulary + 64));
  EXPECT_LE(most, bound + 1e-6);
  EXPECT_GT(most, 0.95 * bound);
}

TEST(EmbeddingScale, TwoEncodersThatShareATableDecideItTogether) {
  Seq2SeqOptions options;
  options.d_model = 64;
  options.tie_embeddings = "decoder";
  options.encoders = {LstmEncoderOptions{.num_layers = 1}, ConvEncoderOptions{.num_layers = 1}};
  options.decoder = one_stack();
  const auto table = [&] {
    return deviation(parameter(*model_of(options), "encoders.0.embedding.weight"));
  };
  EXPECT_NEAR(table(), 0.1, 0.002);
  EXPECT_NEAR(deviation(parameter(*model_of(options), "encoders.1.positions.weight")), 0.1, 0.002);
  EXPECT_NEAR(deviation(parameter(*model_of(options), "decoder.embedding.weight")), 0.125, 0.003);
  options.tie_embeddings = "none";
  EXPECT_NEAR(table(), 0.1 / std::sqrt(3.0), 0.002);
  options.tie_embeddings = "decoder";
  options.encoders[1] = one_stack();
  EXPECT_NEAR(table(), 0.125, 0.003);
}

TEST(EmbeddingScale, HeadsShareATableWithTheEncoderOrHaveTheirOwn) {
  Seq2SeqOptions options;
  options.d_model = 64;
  options.encoder = LstmEncoderOptions{.num_layers = 1, .bidirectional = false};
  options.heads = {{.name = "de", .decoder = one_stack()},
                   {.name = "fr", .decoder = LstmDecoderOptions{.num_layers = 1}}};
  const double lstm = 0.1 / std::sqrt(3.0);
  EXPECT_NEAR(deviation(parameter(*model_of(options), "embedding.weight")), 0.125, 0.003);
  options.tie_embeddings = "decoder";
  const auto model = model_of(options);
  EXPECT_NEAR(deviation(parameter(*model, "encoder.embedding.weight")), lstm, 0.002);
  EXPECT_NEAR(deviation(parameter(*model, "decoders.de.embedding.weight")), 0.125, 0.003);
  EXPECT_NEAR(deviation(parameter(*model, "decoders.fr.embedding.weight")), lstm, 0.002);
}

TEST(EmbeddingScale, DrawsNothingOnTheMetaDevice) {
  for (const auto& options : kinds(kWidth)) {
    const auto model = make_model(options,
                                  {.src_rows = kVocabulary,
                                   .tgt_rows = kVocabulary,
                                   .num_tgt_classes = kVocabulary,
                                   .device = at::kMeta},
                                  nullptr);
    EXPECT_TRUE(parameter(*model, "embedding.weight").is_meta()) << name_of(options);
  }
}

}  // namespace
}  // namespace stretto::models
