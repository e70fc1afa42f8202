// Adapters in whole models, which get them from the parts of their layers.
#include "nn/adapter.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <numbers>
#include <set>

#include "models/decoders/convolution.h"
#include "models/decoders/recurrent.h"
#include "models/encoders/recurrent.h"
#include "models/packed.h"
#include "models/text_model.h"
#include "nn/lora.h"
#include "optim/frozen_names.h"
#include "tests/models/part_cases.h"
#include "tests/train/bare_task.h"

namespace stretto::models {
namespace {

using testing::first_batch;
using testing::kRows;

struct Kind {
  std::string text;
  Seq2SeqOptions options;
};

/// The first layer in both directions, a residual connection around the third.
void make_gnmt(Seq2SeqOptions& options) {
  LstmEncoderOptions encoder;
  LstmDecoderOptions decoder;
  encoder.num_layers = decoder.num_layers = 3;
  // Small widths: weights large enough that a wrong wire shows.
  encoder.init_bound = decoder.init_bound = 0.5;
  options.encoder = encoder;
  options.decoder = decoder;
}

/// Residual connections around every layer, which are all bidirectional in the encoder.
void make_gru(Seq2SeqOptions& options) {
  LstmEncoderOptions encoder;
  LstmDecoderOptions decoder;
  encoder.cell = decoder.cell = "gru";
  encoder.init_bound = decoder.init_bound = 0.5;
  encoder.residual_from = decoder.residual_from = 0;
  encoder.bidirectional_layers = 2;
  decoder.attention = "luong";
  decoder.context_to = "gnmt";
  decoder.output = "attended";
  decoder.initial_state = "last";
  options.encoder = encoder;
  options.decoder = decoder;
}

/// Layers of two widths.
void make_conv(Seq2SeqOptions& options) {
  ConvEncoderOptions encoder;
  ConvDecoderOptions decoder;
  encoder.num_layers = decoder.num_layers = 2;
  encoder.channels = decoder.channels = {16, 12};
  options.encoder = encoder;
  options.decoder = decoder;
}

/// Models with parts of every kind that an adapter can stand behind.
std::vector<Kind> kinds_with_parts() {
  std::vector<Kind> kinds;
  const auto add = [&](const std::string& text) -> Seq2SeqOptions& {
    kinds.push_back({text, stretto::test::small_options(/*layers=*/2)});
    kinds.back().options.dropout = 0;
    return kinds.back().options;
  };
  for (const char* norm : {"post", "pre", "res_post"}) add(norm).norm = norm;
  add("parallel").parallel_residual = true;
  LightEncoderOptions light;
  light.num_layers = 2;
  light.num_heads = 2;
  light.ffn_dim = 24;
  add("light_conv").encoder = light;
  make_gnmt(add("gnmt"));
  make_gru(add("gru"));
  make_conv(add("conv"));
  return kinds;
}

/// Adapters get numbers everywhere, small enough for the model to stay itself.
int train_adapters(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  int tensors = 0;
  for (auto& item : model.named_parameters()) {
    if (!nn::is_adapter(item.key())) continue;
    const auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(++tensors));
    item.value().copy_(at::randn(item.value().sizes(), generator, at::kFloat) * 0.3);
  }
  return tensors;
}

std::set<std::string> adapted_parts(const torch::nn::Module& model) {
  constexpr std::string_view kDown = ".adapter.down.weight";
  std::set<std::string> names;
  for (const auto& item : model.named_parameters()) {
    if (!item.key().ends_with(kDown)) continue;
    names.insert(item.key().substr(0, item.key().size() - kDown.size()));
  }
  return names;
}

at::Tensor losses_of(Seq2SeqModel& model) {
  const torch::NoGradGuard no_grad;
  return model.loss(first_batch(), {}).token_nll;
}

/// What an adapter of the module makes of the rows h.
at::Tensor through(const torch::nn::Module& module, const std::string& adapter,
                   const at::Tensor& h) {
  return module.named_modules("", /*include_self=*/false)[adapter]->as<nn::AdapterImpl>()->forward(
      h);
}

TEST(AdapterModels, BeginAsTheModelWithoutThem) {
  for (auto& [text, options] : kinds_with_parts()) {
    SCOPED_TRACE(text);
    const auto plain = stretto::test::small_transformer(options, kRows);
    options.adapter.dim = 5;
    const auto model = stretto::test::small_transformer(options, kRows);
    const auto named = model->named_parameters();
    for (const auto& item : plain->named_parameters()) {
      EXPECT_TRUE(at::equal(item.value(), named[item.key()])) << item.key();
    }
    const at::Tensor before = losses_of(*plain);
    EXPECT_TRUE(at::equal(losses_of(*model), before)) << "the same bits";
    ASSERT_GT(train_adapters(*model), 0);
    EXPECT_GT((losses_of(*model) - before).abs().max().item<double>(), 1e-2)
        << "they change something";
  }
}

TEST(AdapterModels, HaveOneBehindEachPartOfALayer) {
  auto options = stretto::test::small_options(/*layers=*/1);
  options.adapter.dim = 2;
  EXPECT_EQ(
      adapted_parts(*stretto::test::small_transformer(options, kRows)),
      (std::set<std::string>{"encoder.layers.0.self_residual", "encoder.layers.0.ffn_residual",
                             "decoder.layers.0.self_residual", "decoder.layers.0.cross_residual",
                             "decoder.layers.0.ffn_residual"}));
  options.adapter.parts = {"*ffn*"};
  EXPECT_EQ(
      adapted_parts(*stretto::test::small_transformer(options, kRows)),
      (std::set<std::string>{"encoder.layers.0.ffn_residual", "decoder.layers.0.ffn_residual"}));
  options.parallel_residual = true;
  EXPECT_EQ(
      adapted_parts(*stretto::test::small_transformer(options, kRows)),
      (std::set<std::string>{"encoder.layers.0.residual.ffn", "decoder.layers.0.residual.ffn"}));
}

TEST(AdapterModels, HaveOneBehindEachRecurrentLayer) {
  auto options = stretto::test::small_options(/*layers=*/2);
  options.encoder = LstmEncoderOptions{.num_layers = 2};
  options.decoder = LstmDecoderOptions{.num_layers = 2};
  options.adapter.dim = 3;
  const auto model = stretto::test::small_transformer(options, kRows);
  EXPECT_EQ(adapted_parts(*model), (std::set<std::string>{"encoder.layers.0", "encoder.layers.1",
                                                          "decoder.layers.0", "decoder.layers.1"}));
  const auto named = model->named_parameters();
  EXPECT_EQ(named["encoder.layers.0.adapter.down.weight"].size(1), 2 * 16) << "both directions";
  EXPECT_EQ(named["encoder.layers.1.adapter.down.weight"].size(1), 16);
  options.adapter.parts = {"encoder.layers.0"};
  EXPECT_EQ(adapted_parts(*stretto::test::small_transformer(options, kRows)),
            (std::set<std::string>{"encoder.layers.0"}));
}

TEST(AdapterModels, HaveOneBehindEachBlockAndAttentionOfConvolutions) {
  auto options = stretto::test::small_options(/*layers=*/2);
  make_conv(options);
  options.adapter.dim = 3;
  const auto model = stretto::test::small_transformer(options, kRows);
  EXPECT_EQ(adapted_parts(*model),
            (std::set<std::string>{"encoder.layers.0.block", "encoder.layers.1.block",
                                   "decoder.layers.0.block", "decoder.layers.0.attention",
                                   "decoder.layers.1.block", "decoder.layers.1.attention"}));
  const auto named = model->named_parameters();
  EXPECT_EQ(named["decoder.layers.0.attention.adapter.up.weight"].size(0), 16);
  EXPECT_EQ(named["decoder.layers.1.attention.adapter.up.weight"].size(0), 12);
  EXPECT_EQ(named["encoder.layers.1.block.adapter.up.weight"].size(0), 12);
  options.adapter.parts = {"encoder.layers.0.*", "*.attention"};
  EXPECT_EQ(adapted_parts(*stretto::test::small_transformer(options, kRows)),
            (std::set<std::string>{"encoder.layers.0.block", "decoder.layers.0.attention",
                                   "decoder.layers.1.attention"}));
}

/// @param make  (residual_from, adapted) -> a recurrent part of one layer; with h the rows of one
///     that adds nothing to its output, the adapter reads h alone, and what is added comes behind
///     it
template <class Make, class Rows>
void expect_an_adapter_before_the_sum(const Make& make, const Rows& rows_of) {
  const auto plain = make(1, false), adapted = make(1, true);
  const at::Tensor h = rows_of(*plain), want = through(*adapted, "layers.0.adapter", h);
  ASSERT_GT((want - h).abs().max().item<double>(), 0.1);
  EXPECT_TRUE(at::allclose(rows_of(*adapted), want, 1e-5, 1e-6));
  const auto plain_sum = make(0, false), adapted_sum = make(0, true);
  EXPECT_TRUE(at::allclose(rows_of(*adapted_sum) - rows_of(*plain_sum), want - h, 1e-4, 1e-5));
}

/// A part with the options, and where it is wanted with adapters that are no identity.
template <class MakePart, class Options>
auto recurrent_part(MakePart make, Options options, const char* side, bool adapted) {
  PartSetup setup = testing::setup_of(side);
  if (adapted) setup.init = setup.init.with_adapter({.dim = 5});
  options.num_layers = 1;
  options.init_bound = 0.5;
  auto part = make(options, setup);
  train_adapters(*part);
  return part;
}

TEST(AdapterModels, OfARecurrentEncoderLeaveItsStateAlone) {
  const torch::NoGradGuard no_grad;
  const data::Batch batch = first_batch();
  const nn::PackedRows src = testing::sources(batch);
  for (const bool bidirectional : {false, true}) {
    SCOPED_TRACE(bidirectional);
    const auto make = [&](int64_t residual_from, bool adapted) {
      LstmEncoderOptions options;
      options.bidirectional = bidirectional;
      options.residual_from = residual_from;
      return recurrent_part(make_lstm_encoder, options, "encoder", adapted);
    };
    expect_an_adapter_before_the_sum(
        make, [&](Encoder& encoder) { return encoder.forward(src, {}).keys; });
    const auto plain = make(1, false)->forward(src, {}).state;
    const auto state = make(1, true)->forward(src, {}).state;
    ASSERT_EQ(state.size(), 2u);
    EXPECT_TRUE(at::equal(state[0], plain[0]) && at::equal(state[1], plain[1]));
  }
}

TEST(AdapterModels, OfARecurrentDecoderAreNotFedBack) {
  const torch::NoGradGuard no_grad;
  const data::Batch batch = first_batch();
  const nn::PackedRows input = testing::targets(batch);
  const Encoded memory = testing::any_memory(batch, at::kFloat, /*has_values=*/false);
  const auto make = [&](int64_t residual_from, bool adapted) {
    LstmDecoderOptions options;
    options.residual_from = residual_from;
    return recurrent_part(make_lstm_decoder, options, "decoder", adapted);
  };
  expect_an_adapter_before_the_sum(
      make, [&](Decoder& decoder) { return decoder.forward(input, memory, {}); });
  const auto plain = make(1, false)->attention(input, memory, 0);
  const auto weights = make(1, true)->attention(input, memory, 0);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(at::equal(weights[i], plain[i])) << i;
}

TEST(AdapterModels, OfConvolutionsStandBeforeTheirSums) {
  const torch::NoGradGuard no_grad;
  const ConvLayerSizes sizes{.in = 16, .channels = 12, .kernel = 3};
  const nn::Init init = nn::Init(3, at::kCPU).child("layer");
  ConvDecoderLayer plain(init, sizes, ConvStackOptions{}, testing::kWidth);
  ConvDecoderLayer adapted(init.with_adapter({.dim = 5}), sizes, ConvStackOptions{},
                           testing::kWidth);
  ASSERT_EQ(train_adapters(*adapted), 2 * 4);
  const auto noise = [](int64_t width, uint64_t seed) {
    return at::randn({7, width}, at::detail::createCPUGenerator(seed), at::kFloat);
  };
  const at::Tensor convolved = noise(2 * sizes.channels, 1), h = noise(sizes.channels, 2);
  EXPECT_TRUE(at::allclose(adapted->block->gate(convolved),
                           through(*adapted, "block.adapter", plain->block->gate(convolved)), 1e-5,
                           1e-6));
  const ConvDecoderPass pass{.gated = {}, .attend = [](const at::Tensor& q) { return q; }};
  const auto sum_of = [&](ConvDecoderLayer& layer) {
    return layer->attention->forward(h, noise(testing::kWidth, 3), layer->effective(), pass);
  };
  const at::Tensor out = sum_of(plain) * std::numbers::sqrt2 - h;
  EXPECT_TRUE(at::allclose(sum_of(adapted),
                           half_sum(through(*adapted, "attention.adapter", out), h), 1e-4, 1e-5));
}

/// What the loss says to the adapters; `alone`: all other tensors are frozen.
std::map<std::string, at::Tensor> adapter_gradients(Seq2SeqModel& model, bool alone) {
  for (auto& item : model.named_parameters()) {
    item.value().set_requires_grad(!alone || nn::is_adapter(item.key()));
    item.value().mutable_grad() = at::Tensor();
  }
  model.loss(first_batch(), {}).loss_sum.backward();
  std::map<std::string, at::Tensor> gradients;
  for (const auto& item : model.named_parameters()) {
    if (item.value().grad().defined()) gradients[item.key()] = item.value().grad().clone();
  }
  if (!alone)
    std::erase_if(gradients, [](const auto& item) { return !nn::is_adapter(item.first); });
  return gradients;
}

TEST(AdapterModels, LearnAloneWhatTheyLearnBesideAllOthers) {
  for (auto& [text, options] : kinds_with_parts()) {
    SCOPED_TRACE(text);
    options.adapter.dim = 5;
    const auto model = stretto::test::small_transformer(options, kRows);
    const auto tensors = static_cast<size_t>(train_adapters(*model));
    const auto among_all = adapter_gradients(*model, /*alone=*/false);
    const auto alone = adapter_gradients(*model, /*alone=*/true);
    ASSERT_EQ(among_all.size(), tensors);
    ASSERT_EQ(alone.size(), tensors) << "what is frozen has no gradient";
    for (const auto& [name, gradient] : alone) {
      EXPECT_GT(gradient.abs().sum().item<double>(), 0) << name;
      EXPECT_TRUE(at::allclose(gradient, among_all.at(name), 1e-3, 1e-5)) << name;
    }
  }
}

TEST(AdapterModels, DecodeStepByStepAsTeacherForcingDoes) {
  for (auto& [text, options] : kinds_with_parts()) {
    SCOPED_TRACE(text);
    options.adapter.dim = 5;
    const auto model = stretto::test::small_transformer(options, kRows);
    ASSERT_GT(train_adapters(*model), 0);
    const torch::NoGradGuard no_grad;
    const data::Batch batch = first_batch();
    const at::Tensor token_nll = model->loss(batch, {}).token_nll;
    const auto steps = model->start(data::source(batch), 1);
    // The first sequence: the same token for every lane.
    const auto& target = data::target(batch);
    int64_t before = stretto::testing::kSpecials.bos;
    for (int64_t t = 0; t < target.length(0); ++t) {
      const int64_t next = target.values[static_cast<size_t>(t)];
      const at::Tensor log_probs =
          steps->step(at::full({batch.num_sequences()}, before, at::kLong));
      EXPECT_NEAR(-log_probs[0][next].item<double>(), token_nll[t].item<double>(), 1e-4) << t;
      before = next;
    }
  }
}

TEST(AdapterModels, TrainBesideLora) {
  auto options = stretto::test::small_options(/*layers=*/1);
  options.adapter.dim = 2;
  options.lora = {.rank = 2, .maps = {"*"}};
  const auto model = stretto::test::small_transformer(options, kRows);
  optim::TrainingPlan plan;
  plan.adding.push_back({"model.lora", options.lora.train_patterns(), &nn::is_lora});
  plan.adding.push_back({"model.adapter", options.adapter.train_patterns(), &nn::is_adapter});
  int learned = 0;
  for (const auto& item : model->named_parameters()) {
    const std::string& name = item.key();
    EXPECT_EQ(plan.freezes({name}), !nn::is_adapter(name) && !nn::is_lora(name)) << name;
    EXPECT_FALSE(nn::is_adapter(name) && nn::is_lora(name)) << name;
    learned += plan.freezes({name}) ? 0 : 1;
  }
  EXPECT_GT(learned, 5 * 4);
}

TextModelSetup small_text_setup(const nn::AdapterOptions& adapter) {
  TextModelSetup setup;
  setup.model.preset = "none";
  setup.model.num_layers = 2;
  setup.model.d_model = 16;
  setup.model.num_heads = 2;
  setup.model.max_positions = 16;
  setup.model.adapter = adapter;
  setup.rows = 24;
  setup.num_ids = 21;
  setup.head = TextHeadKind::kLabels;
  setup.num_labels = 3;
  return setup;
}

nn::PackedRows small_texts() {
  data::PackedTokens tokens;
  for (const auto& ids : std::vector<std::vector<int64_t>>{{5, 6, 7, 8}, {9}, {10, 11}}) {
    tokens.append(ids);
  }
  const std::vector<int64_t> samples{17, 4, 99};
  return pack_text(tokens, nullptr, &samples, at::kCPU);
}

TEST(AdapterModels, OfTextBeginAsTheModelWithoutThem) {
  for (const char* norm : {"post", "pre"}) {
    SCOPED_TRACE(norm);
    auto setup = small_text_setup({});
    setup.model.norm = norm;
    const auto plain = make_text_model(setup);
    setup.model.adapter.dim = 5;
    const auto model = make_text_model(setup);
    const torch::NoGradGuard no_grad;
    const at::Tensor before = plain->encode(small_texts(), {});
    EXPECT_TRUE(at::equal(model->encode(small_texts(), {}), before)) << "the same bits";
    EXPECT_EQ(train_adapters(*model), 2 * 2 * 4);
    EXPECT_GT((model->encode(small_texts(), {}) - before).abs().max().item<double>(), 0.1);
  }
}

TEST(AdapterModels, OfTextTrainTheirHeadToo) {
  const nn::AdapterOptions adapter{.dim = 2, .parts = {"*ffn*"}};
  optim::TrainingPlan plan;
  plan.adding.push_back({"model.adapter", adapter.train_patterns(), &nn::is_adapter});
  int learned = 0;
  for (const auto& item : make_text_model(small_text_setup(adapter))->named_parameters()) {
    const bool trains = item.key().starts_with("head.") || nn::is_adapter(item.key());
    EXPECT_EQ(plan.freezes({item.key()}), !trains) << item.key();
    learned += nn::is_adapter(item.key()) ? 1 : 0;
  }
  EXPECT_EQ(learned, 2 * 4) << "one in each of two layers";
}

TEST(AdapterModels, CountTheirOperations) {
  constexpr int64_t kInner = 5;
  const auto plain = make_text_model(small_text_setup({}));
  const auto model = make_text_model(small_text_setup({.dim = kInner}));
  // A row of a layer: parts, matrices, multiplication and addition. The last layer has one row.
  const double of_layer = 2 * 2 * 2 * 16 * kInner;
  EXPECT_DOUBLE_EQ(model->operations(4, 1) - plain->operations(4, 1), (4 + 1) * of_layer);
}

}  // namespace
}  // namespace stretto::models
