#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "config/schema.h"
#include "losses/registry.h"
#include "models/decoders/recurrent.h"
#include "models/decoders/transformer.h"
#include "models/encoder_decoder.h"
#include "models/encoders/recurrent.h"
#include "models/encoders/transformer.h"
#include "models/packed.h"
#include "tests/models/plain_recurrent.h"

namespace stretto::models {
namespace {

constexpr int64_t kWords = 24, kWidth = 8;

static_assert(config::lists_every_member<LstmEncoderOptions>);
static_assert(config::lists_every_member<LstmDecoderOptions>);

struct Pairing {
  std::string text;
  LstmEncoderOptions encoder = {};
  LstmDecoderOptions decoder = {};
};

Pairing pairing(const std::string& text, const std::string& cell, int64_t layers) {
  Pairing made{.text = text};
  made.encoder.cell = made.decoder.cell = cell;
  made.encoder.num_layers = made.decoder.num_layers = layers;
  // Small widths: weights large enough that a wrong wire shows.
  made.encoder.init_bound = made.decoder.init_bound = 0.5;
  return made;
}

Pairing gnmt() {
  return pairing("GNMT v2", "lstm", 4);
}

/// Every cell, score, place of the context, output, initial state, and width at least once.
std::vector<Pairing> pairings() {
  std::vector<Pairing> all{gnmt()};
  all.push_back(pairing("GNMT of GRUs, from the mean", "gru", 3));
  all.back().decoder.attention = "bahdanau";
  all.back().decoder.context_to = "gnmt";
  all.back().decoder.initial_state = "mean";
  all.push_back(pairing("normed, all bidirectional, scaled Luong", "norm_lstm", 2));
  all.back().encoder.bidirectional_layers = 2;
  all.back().decoder.attention = "luong_scaled";
  all.back().decoder.context_to = "first";
  all.back().decoder.output = "attended";
  all.push_back(pairing("narrow, from the last states, Luong", "lstm", 2));
  all.back().encoder.bidirectional = false;
  all.back().encoder.hidden_dim = all.back().decoder.hidden_dim = 6;
  all.back().decoder.attention = "luong";
  all.back().decoder.context_to = "first";
  all.back().decoder.initial_state = "last";
  all.push_back(pairing("widths of their own, zoneout", "lstm", 2));
  all.back().encoder.bidirectional_layers = 2;
  all.back().encoder.hidden_dim = 6;
  all.back().encoder.zoneout_hidden = all.back().decoder.zoneout_hidden = 0.2;
  all.back().encoder.zoneout_cell = all.back().decoder.zoneout_cell = 0.4;
  all.back().decoder.hidden_dim = 10;
  all.back().decoder.attention_width = 7;
  all.back().decoder.output = "attended";
  all.back().decoder.initial_state = "mean";
  all.push_back(pairing("residuals from the first layer on", "gru", 2));
  all.back().encoder.bidirectional_layers = 2;
  all.back().encoder.residual_from = all.back().decoder.residual_from = 0;
  all.back().decoder.initial_state = "last";
  return all;
}

/// An encoder and a decoder without what joins them to a vocabulary.
struct Joined : torch::nn::Module {
  explicit Joined(const Pairing& made, at::ScalarType dtype = at::kDouble) {
    const nn::Init init(3, at::kCPU);
    PartSetup setup{.init = init.child("encoder"),
                    .d_model = kWidth,
                    .rows = kWords,
                    .pad = 0,
                    .first_site = kEncoderSites};
    encoder = register_module("encoder", make_lstm_encoder(made.encoder, setup));
    setup.init = init.child("decoder");
    setup.memory_width = encoder->width();
    setup.first_site = kDecoderSites;
    decoder = register_module("decoder", make_lstm_decoder(made.decoder, setup));
    to(dtype);
  }

  at::Tensor rows(const data::Batch& batch, const ForwardContext& context) const {
    const auto* ids = context.training ? &batch.sample_ids : nullptr;
    return decoder->forward(pack(shift_right(batch.tgt), ids, at::kCPU),
                            encoder->forward(pack(batch.src, ids, at::kCPU), context), context);
  }

  std::shared_ptr<Encoder> encoder;
  std::shared_ptr<Decoder> decoder;
};

void add(data::PackedTokens& tokens, const std::vector<int64_t>& ids) {
  tokens.ids.insert(tokens.ids.end(), ids.begin(), ids.end());
  tokens.offsets.push_back(static_cast<int32_t>(tokens.ids.size()));
}

data::Batch three_pairs() {
  data::Batch batch{.sample_ids = {17, 4, 99}, .src = {}, .tgt = {}};
  add(batch.src, {5, 9, 14, 7, 3});
  add(batch.src, {3});
  add(batch.src, {20, 11, 6, 3});
  add(batch.tgt, {10, 4, 3});
  add(batch.tgt, {13, 12, 5, 18, 19, 3});
  add(batch.tgt, {3});
  return batch;
}

data::Batch two_pairs() {
  data::Batch batch{.sample_ids = {1000, 2}, .src = {}, .tgt = {}};
  add(batch.src, {4, 4, 15, 3});
  add(batch.src, {16, 3});
  add(batch.tgt, {6, 7, 8, 9, 3});
  add(batch.tgt, {20, 3});
  return batch;
}

at::Tensor ids_of(const data::PackedTokens& tokens, int64_t sequence) {
  return at::tensor(tokens.ids, at::kLong)
      .slice(0, tokens.offsets[static_cast<size_t>(sequence)],
             tokens.offsets[static_cast<size_t>(sequence) + 1]);
}

/// A number that every row has its own part in.
at::Tensor probe(const at::Tensor& rows) {
  return (rows * at::arange(rows.numel(), rows.options()).sin().view_as(rows)).sum();
}

at::Tensor taken_gradients(torch::nn::Module& module) {
  std::vector<at::Tensor> all;
  for (at::Tensor& parameter : module.parameters()) {
    const at::Tensor& grad = parameter.grad();
    all.push_back(grad.defined() ? grad.flatten().clone() : at::zeros_like(parameter).flatten());
    parameter.mutable_grad() = at::Tensor();
  }
  return at::cat(all);
}

double apart(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).norm().item<double>() / b.norm().item<double>();
}

at::Tensor plain_rows(const Pairing& made, const Joined& joined, const data::Batch& batch) {
  const testing::PlainRecurrent plain(made.encoder, made.decoder, joined);
  const data::PackedTokens input = shift_right(batch.tgt);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < input.num_sequences(); ++i) {
    rows.push_back(plain.decode(ids_of(input, i), plain.encode(ids_of(batch.src, i))));
  }
  return at::cat(rows);
}

TEST(RecurrentParts, PackedRowsAndGradientsEqualPlainOnes) {
  for (const Pairing& made : pairings()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(made.text);
      Joined joined(made, dtype);
      const double bound = dtype == at::kDouble ? 1e-10 : 2e-5;
      const at::Tensor packed = joined.rows(three_pairs(), {});
      EXPECT_EQ(packed.size(1), kWidth);
      probe(packed).backward();
      const at::Tensor packed_gradients = taken_gradients(joined);
      const at::Tensor plain = plain_rows(made, joined, three_pairs());
      probe(plain).backward();
      EXPECT_LT(apart(packed, plain), bound);
      EXPECT_LT(apart(packed_gradients, taken_gradients(joined)), 10 * bound);
    }
  }
}

TEST(RecurrentParts, EveryParameterGetsAGradient) {
  for (const Pairing& made : pairings()) {
    SCOPED_TRACE(made.text);
    const Joined joined(made);
    probe(joined.rows(three_pairs(), {})).backward();
    for (const auto& item : joined.named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_GT(item.value().grad().abs().sum().item<double>(), 0) << item.key();
    }
  }
}

TEST(RecurrentParts, StepsHaveTheRowsOfTeacherForcing) {
  for (const Pairing& made : pairings()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(made.text);
      const torch::NoGradGuard no_grad;
      const Joined joined(made, dtype);
      const data::Batch batch = three_pairs();
      const data::PackedTokens input = shift_right(batch.tgt);
      const at::Tensor expected = joined.rows(batch, {});
      // Two lanes a source; the second of each goes astray and then follows the first.
      const auto steps =
          joined.decoder->start(joined.encoder->forward(pack(batch.src, nullptr, at::kCPU), {}), 2);
      std::vector<size_t> alive{0, 1, 2};
      for (int32_t t = 0; !alive.empty(); ++t) {
        std::vector<int64_t> tokens, parents;
        std::vector<size_t> next;
        for (const size_t i : alive) {
          const int64_t token = input.ids[static_cast<size_t>(input.offsets[i] + t)];
          tokens.insert(tokens.end(), {token, (token + 5) % kWords});
        }
        const at::Tensor rows = steps->step(at::tensor(tokens));
        for (size_t k = 0; k < alive.size(); ++k) {
          const at::Tensor wanted = expected[input.offsets[alive[k]] + t];
          EXPECT_LT((rows[static_cast<int64_t>(2 * k)] - wanted).abs().max().item<double>(), 1e-5)
              << "source " << alive[k] << ", step " << t;
          if (input.offsets[alive[k]] + t + 1 == input.offsets[alive[k] + 1]) continue;
          next.push_back(alive[k]);
          parents.insert(parents.end(), 2, static_cast<int64_t>(2 * k));
        }
        alive = next;
        if (!alive.empty()) steps->reorder(parents);
      }
    }
  }
}

TEST(RecurrentParts, LanesThatSwapPlacesKeepTheirHistories) {
  const torch::NoGradGuard no_grad;
  const Joined joined(gnmt(), at::kFloat);
  const Encoded memory = joined.encoder->forward(pack(three_pairs().src, nullptr, at::kCPU), {});
  const auto straight = joined.decoder->start(memory, 2),
             swapped = joined.decoder->start(memory, 2);
  const at::Tensor turned = at::tensor({1, 0, 3, 2, 5, 4});
  for (int64_t t = 0; t < 8; ++t) {
    const at::Tensor tokens = (at::arange(6, at::kLong) * 7 + t) % kWords;
    const bool odd = t % 2 == 1;
    const at::Tensor a = straight->step(tokens);
    const at::Tensor b = swapped->step(odd ? tokens.index_select(0, turned) : tokens);
    EXPECT_TRUE(at::allclose(a, odd ? b.index_select(0, turned) : b, 1e-5, 1e-6)) << "step " << t;
    swapped->reorder({1, 0, 3, 2, 5, 4});
  }
}

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

TEST(RecurrentParts, DropoutDoesNotDependOnTheCutIntoMicroBatches) {
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

TEST(RecurrentParts, VariationalDropoutHasOneMaskASequence) {
  const data::Batch batch = three_pairs();
  const nn::PackedRows rows = pack(batch.src, &batch.sample_ids, at::kCPU);
  const ForwardContext context{.training = true, .dropout_key = 7};
  const at::Tensor ones = at::ones({rows.ids.size(0), 64}, at::kFloat);
  for (const bool variational : {false, true}) {
    const RecurrentPart part(dropping("lstm", variational).encoder);
    const at::Tensor kept = RecurrentPass(part, rows, context, kEncoderSites).drop_input(ones, 1);
    EXPECT_EQ(at::equal(kept[0], kept[4]), variational);  // of the first sequence
    EXPECT_FALSE(at::equal(kept[4], kept[5]));            // of two sequences
  }
}

at::Tensor first_rows(const Pairing& made, int64_t last_token) {
  const torch::NoGradGuard no_grad;
  data::PackedTokens src;
  add(src, {5, 9, last_token});
  return Joined(made).encoder->forward(pack(src, nullptr, at::kCPU), {}).keys[0];
}

TEST(RecurrentParts, OnlyABidirectionalEncoderSeesWhatComesLater) {
  Pairing made = gnmt();
  EXPECT_FALSE(at::equal(first_rows(made, 3), first_rows(made, 4)));
  made.encoder.bidirectional = false;
  EXPECT_TRUE(at::equal(first_rows(made, 3), first_rows(made, 4)));
}

TEST(RecurrentParts, BackwardIsForwardOfTheReversedSequence) {
  const torch::NoGradGuard no_grad;
  const RecurrentPart part(gnmt().encoder);
  const RecurrentLayer layer(nn::Init(5, at::kCPU), part, kWidth, 6);
  const at::Tensor x = at::arange(5 * kWidth, at::kFloat).sin().view({5, kWidth});
  data::PackedTokens tokens;
  add(tokens, {1, 2, 3, 4, 5});
  const nn::PackedRows rows = pack(tokens, nullptr, at::kCPU);
  const RecurrentPass pass(part, rows, {}, kEncoderSites);
  const auto back = layer->forward(x, {}, pass.of(0, Direction::kBackward));
  const auto ahead = layer->forward(x.flip(0), {}, pass.of(0, Direction::kForward));
  EXPECT_TRUE(at::allclose(back.h, ahead.h.flip(0), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(back.last.h, back.h.narrow(0, 0, 1), 1e-5, 1e-6));
}

TEST(RecurrentParts, ALayerThatAddsNothingLeavesItsResidual) {
  const torch::NoGradGuard no_grad;
  Pairing made = pairing("", "lstm", 2);
  made.encoder.bidirectional = false;
  made.encoder.residual_from = 0;
  const Joined joined(made);
  at::Tensor table;
  for (const auto& item : joined.encoder->named_parameters()) {
    if (item.key() == "embedding.weight") {
      table = item.value();
    } else {
      item.value().zero_();
    }
  }
  const nn::PackedRows src = pack(three_pairs().src, nullptr, at::kCPU);
  const at::Tensor expected = table.index_select(0, src.ids) * std::sqrt(double{kWidth});
  EXPECT_TRUE(at::allclose(joined.encoder->forward(src, {}).keys, expected));
}

TEST(RecurrentParts, StatesOfTheEncoderAreThoseBehindItsLastTokens) {
  const torch::NoGradGuard no_grad;
  Pairing made = pairing("", "lstm", 2);
  made.encoder.bidirectional_layers = 2;
  const Encoded encoded =
      Joined(made).encoder->forward(pack(three_pairs().src, nullptr, at::kCPU), {});
  ASSERT_EQ(encoded.state.size(), 4u);
  const at::Tensor h = encoded.state[2];  // of the upper layer
  ASSERT_EQ(h.sizes(), (std::vector<int64_t>{3, kWidth}));
  const int64_t half = kWidth / 2;
  EXPECT_TRUE(at::equal(h[0].narrow(0, 0, half), encoded.keys[4].narrow(0, 0, half)));
  EXPECT_TRUE(at::equal(h[0].narrow(0, half, half), encoded.keys[0].narrow(0, half, half)));
  EXPECT_TRUE(at::equal(h[1], encoded.keys[5]));  // a sequence of one token
}

TEST(RecurrentParts, AttentionIsThatOfThePlainForm) {
  for (const Pairing& made : pairings()) {
    SCOPED_TRACE(made.text);
    const torch::NoGradGuard no_grad;
    const Joined joined(made);
    const data::Batch batch = three_pairs();
    const data::PackedTokens input = shift_right(batch.tgt);
    const Encoded memory = joined.encoder->forward(pack(batch.src, nullptr, at::kCPU), {});
    const auto blocks = joined.decoder->attention(pack(input, nullptr, at::kCPU), memory, -1);
    ASSERT_EQ(blocks.size(), 3u);
    const testing::PlainRecurrent plain(made.encoder, made.decoder, joined);
    for (int64_t i = 0; i < 3; ++i) {
      at::Tensor weights;
      plain.decode(ids_of(input, i), plain.encode(ids_of(batch.src, i)), &weights);
      EXPECT_TRUE(at::allclose(blocks[static_cast<size_t>(i)], weights)) << "sequence " << i;
    }
  }
}

TEST(RecurrentParts, FirstWeightsAreUniformAndCellsRemember) {
  Pairing made = gnmt();
  made.encoder.init_bound = made.decoder.init_bound = 0.1;
  const Joined joined(made, at::kFloat);
  for (const auto& item : joined.named_parameters()) {
    if (item.value().dim() != 2 || item.key().ends_with("embedding.weight")) continue;
    const double most = item.value().abs().max().item<double>();
    EXPECT_LE(most, 0.1 + 1e-6) << item.key();
    EXPECT_GT(most, 0.08) << item.key();
  }
  const at::Tensor bias = joined.named_parameters()["decoder.layers.1.input.bias"];
  at::Tensor expected = at::zeros({4 * kWidth});
  expected.slice(0, kWidth, 2 * kWidth).fill_(1);
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
                                          nullptr);
}

TEST(RecurrentParts, RecipesHaveTheirNumbersOfParameters) {
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

TEST(RecurrentParts, RowsOfAnEncoderAreDModelWideUnlessUnitsAreSet) {
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

TransformerOptions small_transformer() {
  TransformerOptions options;
  options.d_model = kWidth;
  options.encoder = options.decoder = {.num_layers = 1, .num_heads = 2, .ffn_dim = 12};
  return options;
}

void expect_trains(const EncoderDecoderParts& parts) {
  EncoderDecoder model(
      parts, {.src_rows = kWords, .tgt_rows = kWords, .num_tgt_classes = kWords, .seed = 3},
      losses::make_loss({}));
  const ForwardContext context{.training = true, .dropout_key = 1};
  const at::Tensor loss = model.loss(three_pairs(), context).loss_sum;
  EXPECT_TRUE(std::isfinite(loss.item<double>()));
  loss.backward();
  for (const auto& item : model.named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
  }
}

TEST(RecurrentParts, PairWithTheTransformers) {
  const TransformerOptions transformer = small_transformer();
  EncoderDecoderParts parts{.d_model = kWidth};
  parts.encoder = [&](const PartSetup& setup) {
    return make_lstm_encoder(pairing("", "lstm", 2).encoder, setup);
  };
  parts.decoder = [&](const PartSetup& setup) {
    return std::make_shared<TransformerDecoder>(TransformerPart(transformer, transformer.decoder),
                                                setup);
  };
  expect_trains(parts);
  parts.encoder = [&](const PartSetup& setup) {
    return std::make_shared<TransformerEncoder>(TransformerPart(transformer, transformer.encoder),
                                                setup);
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

TEST(RecurrentParts, RefuseWhatDoesNotFit) {
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
  const nn::PackedRows src = pack(three_pairs().src, nullptr, at::kCPU);
  EXPECT_THROW(joined.decoder->attention(src, joined.encoder->forward(src, {}), 1), c10::Error);
}

}  // namespace
}  // namespace stretto::models
