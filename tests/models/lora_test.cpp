// LoRA in whole models, of which none has a line for it.
#include "nn/lora.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <set>

#include "models/decoders/convolution.h"
#include "models/encoders/convolution.h"
#include "models/text_model.h"
#include "nn/linear.h"
#include "nn/time_convolution.h"
#include "optim/frozen_names.h"
#include "tests/models/padded_convolution.h"
#include "tests/models/part_cases.h"
#include "tests/train/bare_task.h"

namespace stretto::models {
namespace {

using testing::first_batch;
using testing::kRows;

Seq2SeqOptions options_of(const std::string& encoder, const std::string& decoder) {
  auto options = stretto::test::small_options(/*layers=*/2);
  if (encoder == "lstm") options.encoder = LstmEncoderOptions{.num_layers = 2};
  if (encoder == "conv") options.encoder = ConvEncoderOptions{.num_layers = 2};
  if (encoder == "light_conv") {
    LightEncoderOptions light;
    light.num_layers = 2;
    light.num_heads = 2;
    light.ffn_dim = 24;
    options.encoder = light;
  }
  if (decoder == "lstm") options.decoder = LstmDecoderOptions{.num_layers = 2};
  if (decoder == "conv") options.decoder = ConvDecoderOptions{.num_layers = 2};
  options.norm = "post";
  options.dropout = 0;
  options.lora = {.rank = 3, .alpha = 6, .maps = {"*"}};
  return options;
}

/// B of every map gets numbers, small enough for the model to stay itself.
int train_b(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  int maps = 0;
  for (auto& item : model.named_parameters()) {
    if (!item.key().ends_with(".lora_b")) continue;
    const auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(++maps));
    item.value().copy_(at::randn(item.value().sizes(), generator, at::kFloat) * 0.5);
  }
  return maps;
}

/// The model without LoRA that computes the same.
std::shared_ptr<Seq2SeqModel> merged(Seq2SeqOptions options, Seq2SeqModel& model) {
  options.lora = {};
  auto plain = stretto::test::small_transformer(options, kRows);
  const torch::NoGradGuard no_grad;
  for (auto& item : plain->named_parameters()) {
    item.value().copy_(model.named_parameters()[item.key()]);
  }
  const auto modules = model.named_modules("", /*include_self=*/false);
  for (const auto& item : modules) {
    const auto* linear = item.value()->as<nn::LinearImpl>();
    const auto* convolution = item.value()->as<nn::TimeConvolutionImpl>();
    const bool convolves = convolution != nullptr && convolution->lora;
    if (!convolves && (linear == nullptr || !linear->lora)) continue;
    plain->named_parameters()[item.key() + ".weight"].copy_(
        convolves ? convolution->lora->merged(convolution->weight) : linear->matrix());
  }
  return plain;
}

TEST(LoraModels, ComputeWhatTheirMergedModelDoes) {
  for (const auto& [encoder, decoder] :
       std::vector<std::pair<std::string, std::string>>{{"transformer", "transformer"},
                                                        {"lstm", "lstm"},
                                                        {"conv", "transformer"},
                                                        {"conv", "conv"},
                                                        {"light_conv", "transformer"}}) {
    SCOPED_TRACE(encoder + ", " + decoder);
    const auto options = options_of(encoder, decoder);
    const auto model = stretto::test::small_transformer(options, kRows);
    const auto untouched = merged(options, *model);
    ASSERT_GT(train_b(*model), 3);
    const auto plain = merged(options, *model);
    const data::Batch batch = first_batch();
    const auto loss = [&](Seq2SeqModel& one) {
      return one.loss(batch, {}).loss_sum.item<double>();
    };
    const double with_gradients = loss(*model);  // W x and B A x apart
    const torch::NoGradGuard no_grad;
    EXPECT_DOUBLE_EQ(loss(*model), loss(*plain));
    EXPECT_NEAR(with_gradients, loss(*plain), 2e-4);
    EXPECT_GT(std::abs(loss(*untouched) - loss(*plain)), 2e-3) << "it changes something";

    const auto steps = model->start(data::source(batch), 1),
               of_plain = plain->start(data::source(batch), 1);
    const at::Tensor tokens = at::full({3}, stretto::testing::kSpecials.bos, at::kLong);
    EXPECT_TRUE(at::allclose(steps->step(tokens), of_plain->step(tokens), 1e-5, 1e-5));
  }
}

TEST(LoraModels, NameTheMapsOfAttentionByDefault) {
  auto options = stretto::test::small_options(/*layers=*/1);
  options.lora.rank = 2;
  const auto model = stretto::test::small_transformer(options, kRows);
  std::set<std::string> names;
  for (const auto& item : model->named_parameters()) {
    if (item.key().ends_with(".lora_a")) names.insert(item.key());
  }
  EXPECT_EQ(names, (std::set<std::string>{"encoder.layers.0.self_attention.qkv.lora_a",
                                          "encoder.layers.0.self_attention.out.lora_a",
                                          "decoder.layers.0.self_attention.qkv.lora_a",
                                          "decoder.layers.0.self_attention.out.lora_a",
                                          "decoder.layers.0.cross_attention.q.lora_a",
                                          "decoder.layers.0.cross_attention.kv.lora_a",
                                          "decoder.layers.0.cross_attention.out.lora_a"}));
}

TEST(LoraModels, BeginWithTheWeightsOfTheModelWithoutIt) {
  auto options = stretto::test::small_options(/*layers=*/1);
  const auto plain = stretto::test::small_transformer(options, kRows);
  options.lora.rank = 2;
  const auto model = stretto::test::small_transformer(options, kRows);
  const auto named = model->named_parameters();
  for (const auto& item : plain->named_parameters()) {
    EXPECT_TRUE(at::equal(item.value(), named[item.key()])) << item.key();
  }
}

/// Layers of two widths, so that there is a projection too.
template <class Options>
Options uneven_layers(bool weight_norm) {
  Options options;
  options.num_layers = 2;
  options.channels = {12, 20};
  options.kernels = {3, 4};
  options.weight_norm = weight_norm;
  options.dropout = 0;
  options.max_positions = 40;
  return options;
}

PartSetup setup_with_lora(const char* side) {
  PartSetup setup = testing::setup_of(side);
  setup.init = setup.init.with_lora({.rank = 3, .alpha = 6, .maps = {"*"}});
  return setup;
}

TEST(LoraModels, OfConvolutionsComputeAndLearnAsPaddedOnesWithTheSum) {
  const data::Batch batch = first_batch();
  for (const bool weight_norm : {true, false}) {
    SCOPED_TRACE(weight_norm);
    const auto encoder = make_conv_encoder(uneven_layers<ConvEncoderOptions>(weight_norm),
                                           setup_with_lora("encoder"));
    ASSERT_EQ(train_b(*encoder), 5) << "in, two convolutions, a projection, out";
    encoder->to(at::kDouble);
    testing::PaddedConv padded(*encoder, 2);
    testing::expect_same(
        *encoder, [&] { return encoder->forward(testing::sources(batch), {}).keys; },
        [&] { return padded.encode(data::source(batch)).first; }, 1e-10);

    const auto decoder = make_conv_decoder(uneven_layers<ConvDecoderOptions>(weight_norm),
                                           setup_with_lora("decoder"));
    ASSERT_EQ(train_b(*decoder), 5 + 2 * 2) << "each layer with queries and what leaves attention";
    decoder->to(at::kDouble);
    testing::PaddedConv padded_decoder(*decoder, 2);
    const Encoded memory = testing::any_memory(batch, at::kDouble, /*has_values=*/true);
    testing::expect_same(
        *decoder, [&] { return decoder->forward(testing::targets(batch), memory, {}); },
        [&] { return padded_decoder.decode(batch, memory); }, 1e-10);
  }
}

TEST(LoraModels, OfConvolutionsDecodeStepByStepAsTeacherForcingDoes) {
  const data::Batch batch = first_batch();
  for (const bool weight_norm : {true, false}) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(std::string(weight_norm ? "normed " : "plain ") + c10::toString(dtype));
      const auto decoder = make_conv_decoder(uneven_layers<ConvDecoderOptions>(weight_norm),
                                             setup_with_lora("decoder"));
      ASSERT_EQ(train_b(*decoder), 9);
      decoder->to(dtype);
      const Encoded memory = testing::any_memory(batch, dtype, /*has_values=*/true);
      testing::expect_steps_of_teacher_forcing(*decoder, memory, batch,
                                               dtype == at::kDouble ? 1e-10 : 1e-4);
    }
  }
}

/// What the loss says to LoRA, by name; `alone`: all other tensors are frozen.
std::map<std::string, at::Tensor> lora_gradients(Seq2SeqModel& model, bool alone) {
  for (auto& item : model.named_parameters()) {
    item.value().set_requires_grad(!alone || nn::is_lora(item.key()));
    item.value().mutable_grad() = at::Tensor();
  }
  model.loss(first_batch(), {}).loss_sum.backward();
  std::map<std::string, at::Tensor> gradients;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().grad().defined()) continue;
    if (alone || nn::is_lora(item.key())) gradients[item.key()] = item.value().grad().clone();
  }
  return gradients;
}

TEST(LoraModels, OfConvolutionsLearnAloneWhatTheyLearnBesideAllOthers) {
  const auto model = stretto::test::small_transformer(options_of("conv", "conv"), kRows);
  const auto maps = static_cast<size_t>(train_b(*model));
  const auto among_all = lora_gradients(*model, /*alone=*/false);
  const auto alone = lora_gradients(*model, /*alone=*/true);
  ASSERT_GT(maps, 10u);
  ASSERT_EQ(among_all.size(), 2 * maps);
  ASSERT_EQ(alone.size(), 2 * maps) << "what is frozen has no gradient";
  for (const auto& [name, gradient] : alone) {
    EXPECT_GT(gradient.abs().sum().item<double>(), 0) << name;
    EXPECT_TRUE(at::allclose(gradient, among_all.at(name), 1e-3, 1e-5)) << name;
  }
}

/// Names of the tensors of a small encoder of text, without memory.
std::vector<std::string> names_of_text_model(const nn::LoraOptions& lora) {
  BertOptions options;
  options.preset = "tiny";
  options.lora = lora;
  const auto model = make_text_model({.model = options,
                                      .rows = 50,
                                      .head = TextHeadKind::kLabels,
                                      .num_labels = 3,
                                      .device = at::kMeta});
  std::vector<std::string> names;
  for (const auto& item : model->named_parameters()) names.push_back(item.key());
  return names;
}

TEST(LoraModels, OfTextTrainTheirHeadToo) {
  const nn::LoraOptions lora{.rank = 2};
  optim::TrainingPlan plan;
  plan.adding.push_back({"model.lora", lora.train_patterns(), &nn::is_lora});
  int adapted = 0;
  for (const auto& name : names_of_text_model(lora)) {
    const bool trains = name.starts_with("head.") || nn::is_lora(name);
    EXPECT_EQ(plan.freezes({name}), !trains) << name;
    adapted += nn::is_lora(name) ? 1 : 0;
  }
  EXPECT_EQ(adapted, 2 * 2 * 2) << "A and B of qkv and out in two layers";
}

TEST(LoraModels, OfTextHaveDepthsFromTheHeadToTheEmbeddings) {
  const auto names = names_of_text_model({});
  const auto depths = optim::layer_depths(names);
  for (size_t i = 0; i < names.size(); ++i) {
    const int64_t want = names[i].starts_with("head.")               ? 0
                         : names[i].starts_with("encoder.layers.1.") ? 1
                         : names[i].starts_with("encoder.layers.0.") ? 2
                                                                     : 3;
    EXPECT_EQ(depths[i], want) << names[i];
  }
}

// The masks are the same in a batch that is cut in two, as for lack of memory.
TEST(LoraModels, DropTheSameElementsInABatchThatIsCut) {
  auto options = options_of("transformer", "transformer");
  options.lora.dropout = 0.5;
  const auto model = stretto::test::small_transformer(options, kRows);
  train_b(*model);
  const data::Batch batch = first_batch();
  const ForwardContext context{.training = true, .dropout_key = 5};
  const auto loss = [&](const data::Batch& part) {
    return model->loss(part, context).loss_sum.item<double>();
  };
  const double whole = loss(batch);
  EXPECT_NEAR(loss(data::part(batch, 0, 1)) + loss(data::part(batch, 1, 3)), whole, 1e-3);
  const torch::NoGradGuard no_grad;
  EXPECT_GT(std::abs(model->loss(batch, {}).loss_sum.item<double>() - whole), 1e-2);
}

}  // namespace
}  // namespace stretto::models
