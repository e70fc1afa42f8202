#include "tests/add_a_model/bag_encoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/load.h"
#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/decoders/recurrent.h"
#include "models/decoders/transformer.h"
#include "models/encoder_decoder.h"
#include "tests/add_a_model/bag_conflicts.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::kRows;
using testing::kWidth;

static_assert(config::lists_every_member<BagEncoderOptions>);

// Options: they are read from a file, and what cannot be built is refused.

struct Sections {
  config::Choice<StackOptions, BagEncoderOptions> encoder;

  static auto fields() {
    return config::Fields{config::field(&Sections::encoder, "encoder", "what reads the source")};
  }
};

TEST(BagEncoderOptions, AreReadWhereTheEncoderIsChosenByName) {
  Sections sections, defaults;
  std::vector<config::Problem> problems;
  config::load_text("[encoder]\nname = \"bag\"\nwindow = 7\n", "my.toml", "/nowhere", {},
                    config::schema_of(sections), config::schema_of(defaults), problems);
  EXPECT_TRUE(problems.empty());
  ASSERT_TRUE(sections.encoder.is<BagEncoderOptions>());
  EXPECT_EQ(sections.encoder.as<BagEncoderOptions>().window, 7);
}

TEST(BagEncoderOptions, AWindowWithoutAMiddleIsRefused) {
  EXPECT_TRUE(option_conflicts(BagEncoderOptions{.window = 5}, "model.encoder").empty());
  const auto found = option_conflicts(BagEncoderOptions{.window = 4}, "model.encoder");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].keys, std::vector<std::string>{"model.encoder.window"});
  EXPECT_EQ(found[0].what, "a window of 4 tokens has none in its middle");
  EXPECT_EQ(found[0].hint, "use an odd number, for instance 5");
}

// The encoder by itself.

std::shared_ptr<Encoder> bag(const BagEncoderOptions& options, at::ScalarType dtype) {
  auto encoder = make_bag_encoder(options, testing::setup_of("encoder"));
  encoder->to(dtype);
  return encoder;
}

/// The same rows, one after the other.
at::Tensor slow_rows(const Encoder& encoder, const data::PackedTokens& tokens, int64_t reach) {
  const auto parameters = encoder.named_parameters();
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < tokens.num_sequences(); ++i) {
    for (int64_t t = 0; t < tokens.length(i); ++t) {
      std::vector<at::Tensor> around;
      for (int64_t s = std::max<int64_t>(0, t - reach);
           s <= std::min(tokens.length(i) - 1, t + reach); ++s) {
        const int64_t id = tokens.sequence(i)[static_cast<size_t>(s)];
        around.push_back(parameters["embedding.weight"][id] * std::sqrt(double(kWidth)));
      }
      rows.push_back(parameters["out.weight"].mv(at::stack(around).mean(0)) +
                     parameters["out.bias"]);
    }
  }
  return at::stack(rows);
}

TEST(BagEncoder, RowsAreMapsOfTheMeansOfTheirSequence) {
  const data::Batch batch = testing::first_batch();
  for (const int64_t window : {1, 3, 5, 99}) {  // the last is wider than every sequence
    SCOPED_TRACE(window);
    const auto encoder = bag({.window = window, .dropout = 0.0}, at::kDouble);
    testing::expect_same(
        *encoder, [&] { return encoder->forward(testing::sources(batch), {}).keys; },
        [&] { return slow_rows(*encoder, data::source(batch), window / 2); }, 1e-12);
  }
}

TEST(BagEncoder, EveryParameterGetsAGradient) {
  const data::Batch batch = testing::first_batch();
  const auto encoder = bag({}, at::kDouble);
  testing::expect_a_gradient_for_every_parameter(
      *encoder, encoder->forward(testing::sources(batch), {}).keys);
}

TEST(BagEncoder, AnInfinityStaysInItsSequence) {
  const data::Batch batch = testing::first_batch();
  const auto encoder = bag({.window = 99, .dropout = 0.0}, at::kFloat);
  const torch::NoGradGuard no_grad;
  encoder->named_parameters()["embedding.weight"][9].fill_(INFINITY);  // in the first sequence
  const at::Tensor rows = encoder->forward(testing::sources(batch), {}).keys;
  const int64_t second = data::source(batch).offsets[1];
  EXPECT_FALSE(rows.narrow(0, 0, second).isfinite().all().item<bool>());
  EXPECT_TRUE(rows.narrow(0, second, rows.size(0) - second).isfinite().all().item<bool>());
}

TEST(BagEncoder, OperationsAreThoseOfItsOneProduct) {
  for (const double length : {1.0, 50.0}) {
    EXPECT_EQ(bag({.window = 9}, at::kFloat)->operations(length), 2 * kWidth * kWidth);
  }
}

// The encoder in a model.

const StackOptions kStack{.num_layers = 2, .num_heads = 2, .ffn_dim = 20};

std::shared_ptr<Decoder> transformer(const PartSetup& setup) {
  Seq2SeqOptions options;
  options.d_model = setup.d_model;
  return std::make_shared<TransformerDecoder>(TransformerPart(options, kStack), setup);
}

/// Recurrent, from the mean of the encoder's rows, which any encoder has.
std::shared_ptr<Decoder> recurrent(const PartSetup& setup) {
  LstmDecoderOptions options;
  options.initial_state = "mean";
  return make_lstm_decoder(options, setup);
}

TEST(BagEncoder, DropoutDoesNotDependOnTheCutIntoMicroBatches) {
  const auto encoder = bag({.window = 3, .dropout = 0.3}, at::kFloat);
  testing::expect_dropout_without_regard_to_the_cut(*encoder,
                                                    *transformer(testing::setup_of("decoder")));
}

TEST(BagEncoder, TrainsAndDecodesWithDecodersOfOtherFamilies) {
  const data::Batch batch = testing::first_batch();
  for (const auto& decoder : {transformer, recurrent}) {
    const EncoderDecoderParts parts{
        .d_model = kWidth,
        .encoder = [](const PartSetup& setup) { return make_bag_encoder({}, setup); },
        .decoder = decoder};
    const auto model =
        std::make_shared<EncoderDecoder>(parts,
                                         ModelSetup{.src_rows = kRows,
                                                    .tgt_rows = kRows,
                                                    .num_tgt_classes = kRows,
                                                    .src_specials = stretto::testing::kSpecials,
                                                    .tgt_specials = stretto::testing::kSpecials},
                                         nn::OutputLosses{.one = losses::make_loss({})});
    EXPECT_TRUE(model->named_parameters().contains("encoder.out.weight"));
    const ForwardContext context{.training = true, .dropout_key = 1};
    const at::Tensor loss = model->loss(batch, context).loss_sum;
    EXPECT_TRUE(std::isfinite(loss.item<double>()));
    loss.backward();
    for (const auto& item : model->named_parameters()) {
      EXPECT_TRUE(item.value().grad().defined()) << item.key();
    }
    const at::Tensor next = model->start(data::source(batch), 2)->step(at::full({6}, 4, at::kLong));
    EXPECT_EQ(next.sizes(), (std::vector<int64_t>{6, kRows}));
  }
}

}  // namespace
}  // namespace stretto::models
