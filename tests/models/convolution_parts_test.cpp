#include <cmath>

#include "config/schema.h"
#include "data/pairs/pair_columns.h"
#include "models/decoders/convolution.h"
#include "models/encoders/convolution.h"
#include "tests/models/padded_convolution.h"
#include "tests/models/part_cases.h"

namespace stretto::models {
namespace {

using testing::kWidth;

static_assert(config::lists_every_member<ConvEncoderOptions>);
static_assert(config::lists_every_member<ConvDecoderOptions>);

/// Widths that change and do not, odd and even kernels, longer than most sequences and one tap.
template <class O>
O uneven() {
  O options;
  options.num_layers = 4;
  options.channels = {12, 12, 20, 8};
  options.kernels = {3, 6, 5, 1};
  options.dropout = 0.0;
  options.max_positions = 40;
  return options;
}

template <class O>
std::vector<O> variants() {
  O plain = uneven<O>();
  plain.weight_norm = false;
  plain.positions = "none";
  plain.channels = {};
  plain.num_layers = 2;
  plain.kernels = {3};
  return {uneven<O>(), plain};
}

std::shared_ptr<Encoder> encoder_of(const ConvEncoderOptions& options,
                                    at::ScalarType dtype = at::kDouble, int64_t attentions = 0) {
  auto encoder = make_conv_encoder(options, testing::setup_of("encoder"), attentions);
  encoder->to(dtype);
  return encoder;
}

std::shared_ptr<Decoder> decoder_of(const ConvDecoderOptions& options,
                                    at::ScalarType dtype = at::kDouble) {
  auto decoder = make_conv_decoder(options, testing::setup_of("decoder"));
  decoder->to(dtype);
  return decoder;
}

double tolerance_of(at::ScalarType dtype) {
  return dtype == at::kDouble ? 1e-10 : 2e-5;
}

TEST(ConvEncoder, PackedRowsAndGradientsEqualPaddedOnes) {
  const data::Batch batch = testing::first_batch();
  for (const auto& options : variants<ConvEncoderOptions>()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(options.positions + " " + c10::toString(dtype));
      const auto encoder = encoder_of(options, dtype);
      testing::PaddedConv reference(*encoder, options.num_layers);
      const auto packed = [&] {
        const Encoded encoded = encoder->forward(testing::sources(batch), {});
        return at::cat({encoded.keys, encoded.values}, 1);
      };
      const auto padded = [&] {
        const auto [z, y] = reference.encode(data::source(batch));
        return at::cat({z, y}, 1);
      };
      testing::expect_same(*encoder, packed, padded, tolerance_of(dtype));
    }
  }
}

TEST(ConvDecoder, PackedRowsAndGradientsEqualPaddedOnes) {
  const data::Batch batch = testing::first_batch();
  for (const auto& options : variants<ConvDecoderOptions>()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      for (const bool has_values : {true, false}) {
        SCOPED_TRACE(options.positions + " " + c10::toString(dtype));
        const auto decoder = decoder_of(options, dtype);
        const Encoded memory = testing::any_memory(batch, dtype, has_values);
        testing::PaddedConv reference(*decoder, options.num_layers);
        testing::expect_same(
            *decoder, [&] { return decoder->forward(testing::targets(batch), memory, {}); },
            [&] { return reference.decode(batch, memory); }, tolerance_of(dtype));
      }
    }
  }
}

TEST(ConvParts, EveryParameterGetsAGradient) {
  const data::Batch batch = testing::first_batch();
  const auto encoder = encoder_of(uneven<ConvEncoderOptions>());
  testing::expect_a_gradient_for_every_parameter(
      *encoder, encoder->forward(testing::sources(batch), {}).values);
  const auto decoder = decoder_of(uneven<ConvDecoderOptions>());
  const Encoded memory = testing::any_memory(batch, at::kDouble, true);
  testing::expect_a_gradient_for_every_parameter(
      *decoder, decoder->forward(testing::targets(batch), memory, {}));
}

TEST(ConvEncoder, DividesItsGradientByTwiceTheAttentions) {
  const data::Batch batch = testing::first_batch();
  const auto gradients = [&](ConvEncoderOptions options, int64_t attentions, bool of_keys) {
    const auto encoder = encoder_of(options, at::kDouble, attentions);
    const Encoded encoded = encoder->forward(testing::sources(batch), {});
    return testing::gradients_of(*encoder, of_keys ? encoded.keys : encoded.values);
  };
  ConvEncoderOptions options = uneven<ConvEncoderOptions>();
  const auto whole = gradients(options, 0, true), sixth = gradients(options, 3, true);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(at::allclose(sixth[i] * 6.0, whole[i]));
  }
  // What values have of the embedding itself is not scaled.
  const auto names = encoder_of(options)->named_parameters();
  ASSERT_EQ(names[0].key(), "embedding.weight");
  const double share = gradients(options, 1000, false)[0].norm().item<double>() /
                       gradients(options, 0, false)[0].norm().item<double>();
  EXPECT_GT(share, 0.1);
  options.scale_gradient = false;
  EXPECT_TRUE(at::allclose(gradients(options, 3, true)[1], whole[1]));
}

TEST(ConvDecoder, StepsHaveTheRowsOfTeacherForcing) {
  const data::Batch batch = testing::first_batch();
  for (const auto& options : variants<ConvDecoderOptions>()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      for (const bool has_values : {true, false}) {
        SCOPED_TRACE(options.positions + " " + c10::toString(dtype));
        const auto decoder = decoder_of(options, dtype);
        const Encoded memory = testing::any_memory(batch, dtype, has_values);
        testing::expect_steps_of_teacher_forcing(*decoder, memory, batch, tolerance_of(dtype));
      }
    }
  }
}

TEST(ConvDecoder, LanesThatSwapPlacesKeepTheirHistories) {
  testing::expect_lanes_to_keep_their_histories(
      *decoder_of(uneven<ConvDecoderOptions>(), at::kFloat));
}

TEST(ConvDecoder, ALaterTargetChangesNoEarlierRow) {
  const data::Batch batch = testing::first_batch();
  testing::expect_no_look_ahead(*decoder_of(uneven<ConvDecoderOptions>()),
                                testing::any_memory(batch, at::kDouble, true), batch);
}

TEST(ConvParts, DropoutDoesNotDependOnTheCutIntoMicroBatches) {
  for (const auto dtype : {at::kDouble, at::kFloat}) {
    auto source = uneven<ConvEncoderOptions>();
    auto target = uneven<ConvDecoderOptions>();
    source.dropout = target.dropout = 0.3;
    testing::expect_dropout_without_regard_to_the_cut(*encoder_of(source, dtype),
                                                      *decoder_of(target, dtype));
  }
}

TEST(ConvDecoder, AlignmentsAreDistributionsOverTheSource) {
  const data::Batch batch = testing::first_batch();
  testing::expect_alignments(*decoder_of(uneven<ConvDecoderOptions>()),
                             testing::any_memory(batch, at::kDouble, true), batch, 4);
}

TEST(ConvDecoder, MayGiveRowsOfAnotherWidth) {
  auto options = uneven<ConvDecoderOptions>();
  EXPECT_EQ(decoder_of(options)->width(), kWidth);
  options.out_dim = 6;
  const auto decoder = decoder_of(options);
  EXPECT_EQ(decoder->width(), 6);
  const data::Batch batch = testing::first_batch();
  const Encoded memory = testing::any_memory(batch, at::kDouble, false);
  EXPECT_EQ(decoder->forward(testing::targets(batch), memory, {}).size(1), 6);
  EXPECT_EQ(decoder->max_length(), 40);
}

/// fairseq's recipes; each linear map has a direction, a length and a bias for each output.
TEST(ConvParts, HaveTheParametersOfPublishedRecipes) {
  ConvEncoderOptions source;
  ConvDecoderOptions target;
  PartSetup setup = testing::setup_of("part", at::kMeta);
  const auto encoder = [&] { return testing::count_parameters(*make_conv_encoder(source, setup)); };
  const auto decoder = [&] { return testing::count_parameters(*make_conv_decoder(target, setup)); };
  // IWSLT: (256, 3) x 4 and x 3; tables of 10,000 tokens and 1,024 positions.
  setup.d_model = 256;
  setup.rows = 10'000;
  source.num_layers = 4;
  target.num_layers = 3;
  EXPECT_EQ(encoder(), 11'024 * 256 + 2 * 66'048 + 4 * 394'240);
  EXPECT_EQ(decoder(), 11'024 * 256 + 2 * 66'048 + 3 * (394'240 + 2 * 66'048));
  // WMT'14 en-de: (512, 3) x 9, (1024, 3) x 4, (2048, 1) x 2 with embeddings of 768, rows of 512.
  setup.d_model = 768;
  setup.rows = 40'000;
  source.num_layers = target.num_layers = 15;
  target.out_dim = 512;
  std::vector<double> channels(9, 512), kernels(13, 3);
  channels.insert(channels.end(), {1024, 1024, 1024, 1024, 2048});
  kernels.push_back(1);
  source.channels = target.channels = channels;
  source.kernels = target.kernels = kernels;
  EXPECT_EQ(encoder(), 84'912'640);
  EXPECT_EQ(decoder(), 104'097'280);
}

TEST(LayerLists, GoOnWithTheirLastEntry) {
  EXPECT_EQ(number_of_layer({}, 5, 512), 512);
  EXPECT_EQ(number_of_layer({3}, 5, 1), 3);
  EXPECT_EQ(number_of_layer({3, 7, 15}, 1, 1), 7);
  EXPECT_EQ(number_of_layer({3, 7, 15}, 9, 1), 15);
}

TEST(LayerLists, SayWhatIsWrongWithThem) {
  EXPECT_EQ(layer_list_error({3, 7}, 2, 1023), "");
  EXPECT_EQ(layer_list_error({}, 2, 1023), "");
  EXPECT_NE(layer_list_error({3, 7, 15}, 2, 1023).find("3 entries for 2 layers"),
            std::string::npos);
  EXPECT_NE(layer_list_error({3, 7}, 1, 1023).find("2 entries for 1 layer;"), std::string::npos);
  for (const double wrong : {0.0, -3.0, 2.5, 1024.0, double{NAN}}) {
    EXPECT_NE(layer_list_error({wrong}, 2, 1023).find("from 1 to 1023"), std::string::npos);
  }
}

}  // namespace
}  // namespace stretto::models
