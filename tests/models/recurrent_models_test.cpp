#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "config/schema.h"
#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/decoders/transformer.h"
#include "models/encoder_decoder.h"
#include "models/encoders/transformer.h"
#include "tests/models/recurrent_pairings.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using namespace testing::recurrent;

static_assert(config::lists_every_member<LstmEncoderOptions>);
static_assert(config::lists_every_member<LstmDecoderOptions>);

Pairing dropping(const std::string& cell, bool variational) {
  Pairing made = pairing(cell, cell, 3);
  const auto set = [&](auto& options) {
    options.dropout = 0.3;
    options.variational = variational;
    options.recurrent_dropout = 0.2;
    options.zoneout_hidden = 0.1;
    options.zoneout_cell = 0.4;
  };
  set(made.encoder);
  set(made.decoder);
  return made;
}

TEST(RecurrentModels, DropoutDoesNotDependOnTheCutIntoMicroBatches) {
  for (const char* cell : {"lstm", "gru", "norm_lstm"}) {
    for (const bool variational : {false, true}) {
      SCOPED_TRACE(cell);
      const Joined joined(dropping(cell, variational));
      const ForwardContext context{.training = true, .dropout_key = 12345};
      const at::Tensor whole =
          joined.rows(data::concatenate({three_pairs(), two_pairs()}), context);
      const at::Tensor parts =
          at::cat({joined.rows(three_pairs(), context), joined.rows(two_pairs(), context)});
      EXPECT_LT(apart(parts, whole), 1e-12);
      EXPECT_GT(apart(joined.rows(three_pairs(), {}), joined.rows(three_pairs(), context)), 1e-2);
      const ForwardContext other{.training = true, .dropout_key = 54321};
      EXPECT_GT(apart(joined.rows(three_pairs(), other), joined.rows(three_pairs(), context)),
                1e-2);
    }
  }
}

TEST(RecurrentModels, VariationalDropoutHasOneMaskASequence) {
  const data::Batch batch = three_pairs();
  const nn::PackedRows rows = pack(data::source(batch), &batch.sample_ids, at::kCPU);
  const ForwardContext context{.training = true, .dropout_key = 7};
  const at::Tensor ones = at::ones({rows.ids.size(0), 64}, at::kFloat);
  for (const bool variational : {false, true}) {
    const RecurrentPart part(dropping("lstm", variational).encoder);
    const at::Tensor kept = RecurrentPass(part, rows, context, kEncoderSites).drop_input(ones, 1);
    EXPECT_EQ(at::equal(kept[0], kept[4]), variational);  // of the first sequence
    EXPECT_FALSE(at::equal(kept[4], kept[5]));            // of two sequences
  }
}

TEST(RecurrentModels, FirstWeightsAreUniformAndCellsRemember) {
  Pairing made = gnmt();
  made.encoder.init_bound = made.decoder.init_bound = 0.1;
  const Joined joined(made, at::kFloat);
  for (const auto& item : joined.named_parameters()) {
    if (item.value().dim() != 2) continue;
    const double most = item.value().abs().max().item<double>();
    EXPECT_LE(most, 0.1 + 1e-6) << item.key();
    EXPECT_GT(most, 0.08) << item.key();
  }
  const at::Tensor bias = joined.named_parameters()["decoder.layers.1.input.bias"];
  at::Tensor expected = at::zeros({4 * kModelWidth});
  expected.slice(0, kModelWidth, 2 * kModelWidth).fill_(1);
  EXPECT_TRUE(at::equal(bias, expected));
}

std::shared_ptr<EncoderDecoder> on_meta(const LstmEncoderOptions& encoder,
                                        const LstmDecoderOptions& decoder, int64_t d_model,
                                        const std::string& tie) {
  EncoderDecoderParts parts{.d_model = d_model, .tie_embeddings = tie};
  parts.encoder = [&](const PartSetup& setup) { return make_lstm_encoder(encoder, setup); };
  parts.decoder = [&](const PartSetup& setup) { return make_lstm_decoder(decoder, setup); };
  constexpr int64_t kVocabulary = 32768;
  return std::make_shared<EncoderDecoder>(parts,
                                          ModelSetup{.src_rows = kVocabulary,
                                                     .tgt_rows = kVocabulary,
                                                     .num_tgt_classes = kVocabulary,
                                                     .device = at::kMeta},
                                          nn::OutputLosses{});
}

TEST(RecurrentModels, RecipesHaveTheirNumbersOfParameters) {
  // By hand: an LSTM layer has 4 H (D + H + 1), the first of a decoder 4 H M more, attention
  // A (M + H + 2) + 1.
  LstmEncoderOptions encoder;
  LstmDecoderOptions decoder;
  encoder.num_layers = 7;
  decoder.num_layers = 8;
  EXPECT_EQ(num_parameters(*on_meta(encoder, decoder, 1024, "none")), 274'794'497);
  encoder.num_layers = encoder.bidirectional_layers = decoder.num_layers = 2;
  encoder.hidden_dim = decoder.hidden_dim = 512;
  EXPECT_EQ(num_parameters(*on_meta(encoder, decoder, 512, "none")), 70'005'761);
  encoder.hidden_dim = decoder.hidden_dim = 200;
  EXPECT_EQ(num_parameters(*on_meta(encoder, decoder, 80, "all")), 5'354'641);
}

TEST(RecurrentModels, RowsOfAnEncoderAreDModelWideUnlessUnitsAreSet) {
  LstmEncoderOptions options;
  EXPECT_EQ(options.width(512, 0), 1024);
  EXPECT_EQ(options.width(512, 1), 512);
  options.bidirectional_layers = 2;
  EXPECT_EQ(options.width(512, 0), 512);
  EXPECT_EQ(options.width(512, 1), 512);
  options.hidden_dim = 512;
  EXPECT_EQ(options.width(512, 1), 1024);
  options.bidirectional = false;
  EXPECT_EQ(options.width(512, 1), 512);
}

Seq2SeqOptions small_transformer() {
  Seq2SeqOptions options;
  options.d_model = kModelWidth;
  options.encoder = StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 12};
  options.decoder = StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 12};
  return options;
}

void expect_trains(const EncoderDecoderParts& parts) {
  EncoderDecoder model(parts,
                       {.src_rows = kWords,
                        .tgt_rows = kWords,
                        .num_tgt_classes = kWords,
                        .src_specials = stretto::testing::kSpecials,
                        .tgt_specials = stretto::testing::kSpecials,
                        .seed = 3},
                       nn::OutputLosses{.one = losses::make_loss({})});
  const ForwardContext context{.training = true, .dropout_key = 1};
  const at::Tensor loss = model.loss(three_pairs(), context).loss_sum;
  EXPECT_TRUE(std::isfinite(loss.item<double>()));
  loss.backward();
  for (const auto& item : model.named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
  }
}

TEST(RecurrentModels, PairWithTheTransformers) {
  const Seq2SeqOptions transformer = small_transformer();
  EncoderDecoderParts parts{.d_model = kModelWidth};
  parts.encoder = [&](const PartSetup& setup) {
    return make_lstm_encoder(pairing("", "lstm", 2).encoder, setup);
  };
  parts.decoder = [&](const PartSetup& setup) {
    return std::make_shared<TransformerDecoder>(
        TransformerPart(transformer, transformer.decoder.as<StackOptions>()), setup);
  };
  expect_trains(parts);
  parts.encoder = [&](const PartSetup& setup) {
    return std::make_shared<TransformerEncoder>(
        TransformerPart(transformer, transformer.encoder.as<StackOptions>()), setup);
  };
  for (const char* initial : {"zero", "mean"}) {
    parts.decoder = [&](const PartSetup& setup) {
      LstmDecoderOptions options = pairing("", "lstm", 2).decoder;
      options.initial_state = initial;
      return make_lstm_decoder(options, setup);
    };
    expect_trains(parts);
  }
}

TEST(RecurrentModels, ATransformerRefusesRowsOfAnotherWidth) {
  const Seq2SeqOptions transformer = small_transformer();
  const PartSetup setup{.init = nn::Init(3, at::kCPU),
                        .d_model = kModelWidth,
                        .memory_width = 2 * kModelWidth,
                        .rows = kWords};
  EXPECT_THROW(TransformerDecoder(
                   TransformerPart(transformer, transformer.decoder.as<StackOptions>()), setup),
               c10::Error);
}

TEST(RecurrentModels, RefuseWhatDoesNotFit) {
  Pairing wide = gnmt();
  wide.encoder.residual_from = 1;  // reads both directions of the layer below
  EXPECT_THROW(Joined{wide}, c10::Error);
  Pairing luong = gnmt();
  luong.decoder.attention = "luong";
  luong.decoder.attention_width = 5;
  EXPECT_THROW(Joined{luong}, c10::Error);
  Pairing deeper = gnmt();
  deeper.decoder.initial_state = "last";
  deeper.decoder.num_layers = 3;
  EXPECT_THROW(Joined(deeper).rows(three_pairs(), {}), c10::Error);
  Pairing narrower = gnmt();  // its first layer has twice the decoder's width
  narrower.decoder.initial_state = "last";
  EXPECT_THROW(Joined(narrower).rows(three_pairs(), {}), c10::Error);
  const Joined joined(gnmt());
  const nn::PackedRows src = pack(data::source(three_pairs()), nullptr, at::kCPU);
  EXPECT_THROW(joined.decoder->attention(src, joined.encoder->forward(src, {}), 1), c10::Error);
}

}  // namespace
}  // namespace stretto::models
