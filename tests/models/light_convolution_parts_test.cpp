#include "config/schema.h"
#include "data/pairs/pair_columns.h"
#include "models/decoders/light_convolution.h"
#include "models/encoders/light_convolution.h"
#include "models/memory.h"
#include "tests/models/padded_light_convolution.h"
#include "tests/models/part_cases.h"

namespace stretto::models {
namespace {

using testing::kWidth;

static_assert(config::lists_every_member<LightEncoderOptions>);
static_assert(config::lists_every_member<DynamicEncoderOptions>);
static_assert(config::lists_every_member<LightDecoderOptions>);
static_assert(config::lists_every_member<DynamicDecoderOptions>);

/// The same sizes for every family of options; kernels odd, even, and longer than most sequences.
template <class O>
O small(const testing::LightForm& form = {false, "post", true}) {
  O options;
  options.num_layers = 2;
  options.num_heads = 4;
  options.kernels = {3, 6};
  options.ffn_dim = 20;
  options.norm = form.norm;
  options.glu = form.glu;
  options.activation = form.activation;
  options.positions = "learned";
  options.max_positions = 40;
  options.dropout = options.input_dropout = 0.0;
  options.weight_dropout = options.activation_dropout = 0.0;
  if constexpr (requires { options.attention_dropout; }) options.attention_dropout = 0.0;
  return options;
}

/// Everything about one decoder or encoder of this file.
struct Case : testing::LightForm {
  std::string text() const {
    return std::string(predicts ? "dynamic " : "light ") + norm + (glu ? " gated " : " ") +
           activation;
  }
  std::shared_ptr<Encoder> encoder(at::ScalarType dtype) const {
    const PartSetup setup = testing::setup_of("encoder");
    auto part = predicts ? make_dynamic_encoder(small<DynamicEncoderOptions>(*this), setup)
                         : make_light_encoder(small<LightEncoderOptions>(*this), setup);
    part->to(dtype);
    return part;
  }
  std::shared_ptr<Decoder> decoder(at::ScalarType dtype) const {
    const PartSetup setup = testing::setup_of("decoder");
    auto part = predicts ? make_dynamic_decoder(small<DynamicDecoderOptions>(*this), setup)
                         : make_light_decoder(small<LightDecoderOptions>(*this), setup);
    part->to(dtype);
    return part;
  }
};

const std::vector<Case> kCases{{{false, "post", true}},
                               {{true, "post", true}},
                               {{false, "pre", false}},
                               {{true, "pre", false}},
                               {{false, "pre", true, "gelu_tanh"}},
                               {{true, "post", true, "silu"}}};

TEST(LightEncoder, PackedRowsAndGradientsEqualPaddedOnes) {
  const data::Batch batch = testing::first_batch();
  for (const Case& which : kCases) {
    SCOPED_TRACE(which.text());
    const auto encoder = which.encoder(at::kDouble);
    testing::PaddedLight reference(*encoder, which);
    testing::expect_same(
        *encoder, [&] { return encoder->forward(testing::sources(batch), {}).keys; },
        [&] { return reference.encode(data::source(batch)); }, 1e-10);
  }
}

TEST(LightDecoder, PackedRowsAndGradientsEqualPaddedOnes) {
  const data::Batch batch = testing::first_batch();
  for (const Case& which : kCases) {
    for (const bool has_values : {true, false}) {
      SCOPED_TRACE(which.text());
      const auto decoder = which.decoder(at::kDouble);
      const Encoded memory = testing::any_memory(batch, at::kDouble, has_values);
      testing::PaddedLight reference(*decoder, which);
      testing::expect_same(
          *decoder, [&] { return decoder->forward(testing::targets(batch), memory, {}); },
          [&] { return reference.decode(batch, memory); }, 1e-10);
    }
  }
}

TEST(LightParts, FastKernelsGiveTheRowsOfPlainOnes) {
  const data::Batch batch = testing::first_batch();
  for (const Case& which : kCases) {
    SCOPED_TRACE(which.text());
    const auto plain = which.decoder(at::kDouble), fast = which.decoder(at::kFloat);
    const auto rows_of = [&](Decoder& decoder, at::ScalarType dtype) {
      return decoder.forward(testing::targets(batch), testing::any_memory(batch, dtype, true), {});
    };
    const at::Tensor a = rows_of(*fast, at::kFloat), b = rows_of(*plain, at::kDouble);
    EXPECT_LT(testing::relative_distance(a.to(at::kDouble), b), 2e-5);
    EXPECT_LT(testing::relative_distance(at::cat(testing::gradients_of(*fast, a)).to(at::kDouble),
                                         at::cat(testing::gradients_of(*plain, b))),
              2e-4);
  }
}

TEST(LightParts, EveryParameterGetsAGradient) {
  const data::Batch batch = testing::first_batch();
  for (const Case& which : kCases) {
    SCOPED_TRACE(which.text());
    const auto encoder = which.encoder(at::kDouble);
    testing::expect_a_gradient_for_every_parameter(
        *encoder, encoder->forward(testing::sources(batch), {}).keys);
    const auto decoder = which.decoder(at::kDouble);
    const Encoded memory = testing::any_memory(batch, at::kDouble, true);
    testing::expect_a_gradient_for_every_parameter(
        *decoder, decoder->forward(testing::targets(batch), memory, {}));
  }
}

TEST(LightDecoder, StepsHaveTheRowsOfTeacherForcing) {
  const data::Batch batch = testing::first_batch();
  for (const Case& which : kCases) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(which.text() + " " + c10::toString(dtype));
      const auto decoder = which.decoder(dtype);
      testing::expect_steps_of_teacher_forcing(*decoder, testing::any_memory(batch, dtype, true),
                                               batch, dtype == at::kDouble ? 1e-10 : 2e-5);
    }
  }
}

TEST(LightDecoder, LanesThatSwapPlacesKeepTheirHistories) {
  for (const Case& which : kCases) {
    SCOPED_TRACE(which.text());
    testing::expect_lanes_to_keep_their_histories(*which.decoder(at::kFloat));
  }
}

TEST(LightDecoder, ALaterTargetChangesNoEarlierRow) {
  const data::Batch batch = testing::first_batch();
  for (const Case& which : kCases) {
    SCOPED_TRACE(which.text());
    testing::expect_no_look_ahead(*which.decoder(at::kDouble),
                                  testing::any_memory(batch, at::kDouble, false), batch);
  }
}

/// With one rate of dropout on, all others off.
template <class EncoderOptions, class DecoderOptions, class MakeEncoder, class MakeDecoder>
void expect_places_of_dropout(const MakeEncoder& make_encoder, const MakeDecoder& make_decoder) {
  const std::vector<double EncoderOptions::*> of_encoder{
      &EncoderOptions::dropout, &EncoderOptions::input_dropout, &EncoderOptions::weight_dropout,
      &EncoderOptions::activation_dropout};
  const std::vector<double DecoderOptions::*> of_decoder{
      &DecoderOptions::dropout, &DecoderOptions::input_dropout, &DecoderOptions::weight_dropout,
      &DecoderOptions::attention_dropout};
  for (size_t i = 0; i < of_encoder.size(); ++i) {
    SCOPED_TRACE(i);
    auto source = small<EncoderOptions>();
    auto target = small<DecoderOptions>();
    source.*of_encoder[i] = target.*of_decoder[i] = 0.3;
    const auto encoder = make_encoder(source, testing::setup_of("encoder"));
    const auto decoder = make_decoder(target, testing::setup_of("decoder"));
    testing::expect_dropout_without_regard_to_the_cut(*encoder, *decoder);
  }
}

TEST(LightParts, DropoutDoesNotDependOnTheCutIntoMicroBatches) {
  expect_places_of_dropout<LightEncoderOptions, LightDecoderOptions>(make_light_encoder,
                                                                     make_light_decoder);
  expect_places_of_dropout<DynamicEncoderOptions, DynamicDecoderOptions>(make_dynamic_encoder,
                                                                         make_dynamic_decoder);
}

TEST(LightDecoder, AlignmentsAreDistributionsOverTheSource) {
  const data::Batch batch = testing::first_batch();
  for (const Case& which : kCases) {
    testing::expect_alignments(*which.decoder(at::kDouble),
                               testing::any_memory(batch, at::kDouble, true), batch, 2);
  }
}

TEST(KeysAndValues, AreOneProductOrTwo) {
  const data::Batch batch = testing::first_batch();
  nn::CrossAttention attention(nn::Init(3, at::kCPU),
                               nn::AttentionOptions{.d_model = kWidth, .num_heads = 2});
  Encoded memory = testing::any_memory(batch, at::kFloat, false);
  const at::Tensor one = keys_and_values(*attention, memory);
  memory.values = memory.keys;
  EXPECT_TRUE(at::allclose(keys_and_values(*attention, memory), one, 1e-5, 1e-6));
  memory.values = memory.keys * 2;
  const at::Tensor two = keys_and_values(*attention, memory);
  EXPECT_TRUE(at::allclose(two.narrow(1, 0, kWidth), one.narrow(1, 0, kWidth), 1e-5, 1e-6));
  EXPECT_FALSE(at::allclose(two.narrow(1, kWidth, kWidth), one.narrow(1, kWidth, kWidth)));
}

template <class EncoderOptions, class DecoderOptions, class MakeEncoder, class MakeDecoder>
int64_t parameters_of_big(const MakeEncoder& make_encoder, const MakeDecoder& make_decoder) {
  EncoderOptions source;
  DecoderOptions target;
  source.num_heads = target.num_heads = 16;
  source.ffn_dim = target.ffn_dim = 4096;
  PartSetup setup = testing::setup_of("part", at::kMeta);
  setup.d_model = 1024;
  setup.rows = 32'768;
  const int64_t table = setup.rows * setup.d_model;  // one for both sides, and the output
  return testing::count_parameters(*make_encoder(source, setup)) +
         testing::count_parameters(*make_decoder(target, setup)) - table;
}

/// The big models of the paper's WMT table with 32,768 shared tokens; DynamicConv has 213 million
/// there.
TEST(LightParts, HaveTheParametersOfTheBigModels) {
  const int64_t dynamic = parameters_of_big<DynamicEncoderOptions, DynamicDecoderOptions>(
      make_dynamic_encoder, make_dynamic_decoder);
  EXPECT_EQ(dynamic, 213'237'760);
  const int64_t light = parameters_of_big<LightEncoderOptions, LightDecoderOptions>(
      make_light_encoder, make_light_decoder);
  EXPECT_EQ(light, 208'867'504);
  // Filters that rows predict have 1,024 numbers for each one that all rows share.
  constexpr int64_t kTaps = (3 + 7 + 15 + 4 * 31) + (3 + 7 + 15 + 3 * 31);
  EXPECT_EQ(dynamic - light, 16 * kTaps * (1024 - 1));
}

}  // namespace
}  // namespace stretto::models
