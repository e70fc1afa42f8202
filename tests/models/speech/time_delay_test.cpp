// Wave2Letter+, Jasper, QuartzNet, and the encoder of Listen, Attend and Spell.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <vector>

#include "config/schema.h"
#include "models/speech/speech_conflicts.h"
#include "models/speech/time_delay_encoder.h"
#include "tests/models/speech/speech_cases.h"

namespace stretto::models {
namespace {

using testing::speech::expect_near_in_narrow_types, testing::speech::expect_no_batch,
    testing::speech::expect_plain_network, testing::speech::num_parameters_of,
    testing::speech::PlainLayers, testing::speech::speech_model, testing::speech::Utterances,
    testing::speech::utterances;

static_assert(config::lists_every_member<ConvBlockOptions>);
static_assert(config::lists_every_member<Wave2LetterOptions>);
static_assert(config::lists_every_member<JasperOptions>);
static_assert(config::lists_every_member<QuartzNetOptions>);
static_assert(config::lists_every_member<LasOptions>);

/// A stride, residual connections of both kinds, a dilation, an even kernel, and separable blocks.
std::vector<ConvBlockOptions> every_kind_of_block() {
  const ConvBlockOptions dense{.repeat = 2, .channels = 7, .kernel = 3, .residual = "dense"};
  return {{.channels = 6, .kernel = 5, .stride = 2, .groups = 2},
          {.repeat = 2, .channels = 8, .kernel = 4, .residual = "block"},
          dense,
          {.repeat = 2, .channels = 9, .kernel = 5, .residual = "dense", .separable = true},
          dense,
          {.channels = 14, .kernel = 7, .dilation = 2, .separable = true, .groups = 7}};
}

template <class Options>
Options narrow_blocks(std::vector<ConvBlockOptions> blocks) {
  Options options;
  options.preset = "none";
  options.blocks = std::move(blocks);
  return options;
}

Utterances plain_activation(const Utterances& all, bool clips) {
  return PlainLayers::each(all, [&](const at::Tensor& x) {
    const at::Tensor positive = at::where(x > 0, x, at::zeros_like(x));
    return clips ? at::where(positive < 20, positive, at::full_like(x, 20)) : positive;
  });
}

Utterances sum_of(const Utterances& a, const Utterances& b) {
  Utterances sum;
  for (size_t i = 0; i < a.size(); ++i) sum.push_back(a[i] + b[i]);
  return sum;
}

/// Blocks by their description alone.
auto plain_blocks(const std::vector<ConvBlockOptions>& blocks, bool clips) {
  return [=](const PlainLayers& layers, Utterances x) {
    std::vector<Utterances> dense;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const ConvBlockOptions& block = blocks[i];
      const std::string name = "encoder.blocks." + std::to_string(i) + ".";
      std::vector<Utterances> inputs;
      if (block.residual == "block") inputs = {x};
      if (block.residual == "dense") {
        dense.push_back(x);
        inputs = dense;
      }
      for (int64_t r = 0; r < block.repeat; ++r) {
        const std::string number = std::to_string(r);
        const int64_t stride = r == 0 ? block.stride : 1;
        if (block.separable) {
          x = layers.conv(name + "depthwise" + number, x, block.kernel, stride, block.dilation);
          x = layers.conv(name + "conv" + number, x, 1, 1, 1, block.groups);
        } else {
          x = layers.conv(name + "conv" + number, x, block.kernel, stride, block.dilation,
                          block.groups);
        }
        x = layers.norm(name + "norm" + number, x);
        for (size_t k = 0; r + 1 == block.repeat && k < inputs.size(); ++k) {
          const std::string input = std::to_string(k);
          const Utterances beside = layers.conv(name + "residual" + input, inputs[k], 1, 1, 1);
          x = sum_of(x, layers.norm(name + "residual_norm" + input, beside));
        }
        x = plain_activation(x, clips);
      }
    }
    return x;
  };
}

TEST(TimeDelayEncoder, IsThePlainNetwork) {
  const auto blocks = every_kind_of_block();
  auto jasper = narrow_blocks<JasperOptions>(blocks);
  expect_plain_network(jasper, jasper.norm_epsilon, plain_blocks(blocks, false));
  auto wave2letter = narrow_blocks<Wave2LetterOptions>(blocks);
  wave2letter.norm_epsilon = 1e-6;
  expect_plain_network(wave2letter, 1e-6, plain_blocks(blocks, true));
}

TEST(TimeDelayEncoder, IsNearInNarrowTypes) {
  expect_near_in_narrow_types(narrow_blocks<JasperOptions>(every_kind_of_block()));
}

TEST(TimeDelayEncoder, ClipsItsActivationsWhereAsked) {
  const auto largest = [](const char* activation) {
    auto options = narrow_blocks<QuartzNetOptions>({{.kernel = 1}});
    options.activation = activation;
    const auto model = speech_model(options);
    const at::NoGradGuard no_grad;
    model->named_parameters()["encoder.blocks.0.norm0.bias"].fill_(25);
    model->eval();
    return model->encode(utterances({1}, {4}), {}).keys.max().item<double>();
  };
  EXPECT_EQ(largest("clipped_relu"), 20);
  EXPECT_GT(largest("relu"), 20);
}

TEST(TimeDelayEncoder, GivesTheSameScoresInEveryBatch) {
  expect_no_batch(narrow_blocks<JasperOptions>(every_kind_of_block()));
  Wave2LetterOptions small;
  small.preset = "wave2letter_small";
  expect_no_batch(small);
}

TEST(TimeDelayEncoder, DropsTheSameElementsInEveryBatch) {
  const ConvBlockOptions block{.repeat = 2, .kernel = 3, .stride = 2, .dropout = 0.5};
  const auto model = speech_model(narrow_blocks<JasperOptions>({block}));
  model->eval();  // norms of a batch would differ
  const ForwardContext context{.training = true, .dropout_key = 77};
  const at::Tensor both = model->encode(utterances({3, 8}, {9, 12}), context).keys;
  const at::Tensor alone = model->encode(utterances({8}, {12}), context).keys;
  EXPECT_TRUE(at::allclose(both.narrow(0, 5, 6), alone));
  EXPECT_FALSE(at::allclose(alone, model->encode(utterances({8}, {12}), {}).keys));
  auto without = narrow_blocks<JasperOptions>({block});
  without.dropout_scale = 0;
  const auto plain = speech_model(without);
  plain->eval();
  EXPECT_TRUE(at::allclose(plain->encode(utterances({8}, {12}), context).keys,
                           plain->encode(utterances({8}, {12}), {}).keys));
}

TEST(TimeDelayEncoder, HasAsManyParametersAsPublished) {
  // NVIDIA NeMo's QuartzNet15x5 and Jasper10x5dr: 64 features, 28 characters and the blank one.
  EXPECT_EQ(num_parameters_of(QuartzNetOptions{}), 18'924'381);
  EXPECT_EQ(num_parameters_of(JasperOptions{}), 332'632'349);
  EXPECT_EQ(num_parameters_of(Wave2LetterOptions{}), 106'496'285);
  LasOptions las;
  las.decoder.weight = 0;
  EXPECT_EQ(num_parameters_of(las), 38'063'645);
}

TEST(TimeDelayEncoder, HasGroupsAsPublished) {
  // QuartzNet 15x5 with two groups, 12.1 million (table 4 of the paper).
  QuartzNetOptions options;
  options.blocks = blocks_of(options);
  for (size_t i = 1; i + 2 < options.blocks.size(); ++i) options.blocks[i].groups = 2;
  EXPECT_NEAR(static_cast<double>(num_parameters_of(options)), 12.1e6, 5e4);
}

TEST(TimeDelayEncoder, FirstFiltersAreThoseOfTheFirstConvolution) {
  const auto blocks = every_kind_of_block();
  const auto model = speech_model(narrow_blocks<JasperOptions>(blocks));
  const at::Tensor filters = model->first_filters();
  EXPECT_EQ(filters.sizes(), (std::vector<int64_t>{6, 1, 5, testing::speech::kFeatures / 2}));
  EXPECT_TRUE(
      at::equal(filters.flatten(1), model->named_parameters()["encoder.blocks.0.conv0.weight"]));
  auto last = blocks.back();
  last.groups = 1;
  const auto separable = speech_model(narrow_blocks<JasperOptions>({last}));
  EXPECT_EQ(separable->first_filters().sizes(),
            (std::vector<int64_t>{testing::speech::kFeatures, 1, 7, 1}));
}

TEST(TimeDelayEncoder, SaysWhichBlocksDoNotFit) {
  EXPECT_TRUE(option_conflicts(narrow_blocks<JasperOptions>(every_kind_of_block())).empty());
  const auto blamed = [](std::vector<ConvBlockOptions> blocks) {
    const auto found = option_conflicts(narrow_blocks<JasperOptions>(std::move(blocks)));
    return found.empty() ? "" : found.front().keys.front();
  };
  EXPECT_EQ(blamed({}), "model.blocks");
  ConvBlockOptions stride{.stride = 2};
  const ConvBlockOptions dense{.residual = "dense"};
  EXPECT_EQ(blamed({dense, stride}), "");
  EXPECT_EQ(blamed({dense, stride, dense}), "model.blocks.2.residual");
  EXPECT_EQ(blamed({{.channels = 6}, {.channels = 8, .groups = 4}}), "model.blocks.1.groups");
  stride.residual = "block";
  EXPECT_EQ(blamed({dense, stride}), "model.blocks.1.residual");
}

}  // namespace
}  // namespace stretto::models
