#include "models/model_cost.h"

#include <gtest/gtest.h>

#include "models/registry.h"

namespace stretto::models {
namespace {

struct TableSizes {
  int64_t src, tgt;
};

constexpr TableSizes kPaperTables{.src = 32768, .tgt = 32768};

ModelCost cost(const Seq2SeqOptions& options, const TableSizes& rows, const Lengths& lengths = {}) {
  return cost_of(*make_model(options,
                             {.src_rows = rows.src,
                              .tgt_rows = rows.tgt,
                              .num_tgt_classes = rows.tgt,
                              .device = at::kMeta},
                             nullptr),
                 lengths);
}

/// The Transformer in closed form, d its width, f the inner width of a feed-forward part:
///
///     attention      4 d^2 + 4 d               projections with biases
///     feed-forward   2 d f + f + d             swiglu: 3 d f, no biases
///     layer norm     2 d                       2 in an encoder layer, 3 in a decoder layer,
///                                              1 more for each stack unless norm = "post"
///     tables         V d                       tied: all 1, decoder 2, none 3
///     learned        max_positions d           for each stack
///
/// Training takes six operations for each weight that a token meets (a multiplication and an
/// addition, once forward and twice backward), and 12 d n for attention over n tokens in a layer.
class ClosedForm {
 public:
  ClosedForm(const Seq2SeqOptions& options, const TableSizes& table_rows)
      : model(options), rows(table_rows), d(options.d_model) {}

  int64_t parameters() const {
    int64_t count = encoder().num_layers * (attention() + feed_forward(encoder()) + 4 * d) +
                    decoder().num_layers * (2 * attention() + feed_forward(decoder()) + 6 * d) +
                    rows.src * d;
    if (model.norm != "post") count += 4 * d;
    if (model.positions == "learned") count += 2 * model.max_positions * d;
    if (model.tie_embeddings != "all") count += rows.tgt * d;
    if (model.tie_embeddings == "none") count += rows.tgt * d;
    return count;
  }

  double training_flops(const Lengths& lengths) const {
    const double src_per_tgt = lengths.src / lengths.tgt;
    const auto width = double(d);
    const auto layers = double(encoder().num_layers), decoder_layers = double(decoder().num_layers);
    const double per_source =
        layers * (4 * width * width + double(matrices(encoder()))) +
        decoder_layers * 2 * width * width;  // keys and values of cross attention
    const double per_target = decoder_layers * (6 * width * width + double(matrices(decoder()))) +
                              double(rows.tgt) * width;
    const double seen =
        layers * src_per_tgt * lengths.src + decoder_layers * (lengths.tgt + lengths.src);
    return 6 * (src_per_tgt * per_source + per_target) + 12 * width * seen;
  }

 private:
  const StackOptions& encoder() const { return model.encoder.as<StackOptions>(); }
  const StackOptions& decoder() const { return model.decoder.as<StackOptions>(); }
  bool gated() const { return model.activation == "swiglu"; }
  int64_t attention() const { return 4 * d * d + 4 * d; }
  int64_t matrices(const StackOptions& stack) const {
    return (gated() ? 3 : 2) * d * stack.ffn_dim;
  }
  int64_t feed_forward(const StackOptions& stack) const {
    return matrices(stack) + (gated() ? 0 : stack.ffn_dim + d);
  }

  const Seq2SeqOptions& model;
  const TableSizes rows;
  const int64_t d;
};

Seq2SeqOptions paper(int64_t d, int64_t ffn) {
  Seq2SeqOptions options;
  options.d_model = d;
  options.encoder = StackOptions{.num_layers = 6, .num_heads = 8, .ffn_dim = ffn};
  options.decoder = StackOptions{.num_layers = 6, .num_heads = 8, .ffn_dim = ffn};
  return options;
}

TEST(ModelCost, OfBaseAndBigHasThePublishedParameters) {
  auto base = paper(512, 2048), big = paper(1024, 4096);
  EXPECT_EQ(cost(base, kPaperTables).parameters, 60'915'712);
  EXPECT_EQ(cost(big, kPaperTables).parameters, 209'911'808);
  base.norm = big.norm = "pre";
  EXPECT_EQ(cost(base, kPaperTables).parameters, 60'917'760);
  EXPECT_EQ(cost(big, kPaperTables).parameters, 209'915'904);
  base.norm = "res_post";  // each stack ends in a norm here too
  EXPECT_EQ(cost(base, kPaperTables).parameters, 60'917'760);
}

TEST(ModelCost, OfBaseAndBigIsSixForEachWeightThatATokenMeetsAndTheAttention) {
  // Base: 44.04 M weights in products without biases, 16.78 M in the output layer.
  const double weights = 6 * (4 * 512.0 * 512 + 2 * 512.0 * 2048) +
                         6 * (8 * 512.0 * 512 + 2 * 512.0 * 2048) + 32768.0 * 512;
  const double attention = 12 * 512.0 * 6 * 90;
  EXPECT_EQ(cost(paper(512, 2048), kPaperTables).training_flops, 6 * weights + attention);
  EXPECT_NEAR(cost(paper(1024, 4096), kPaperTables).training_flops / 1e9, 1.271, 0.01);
}

TEST(ModelCost, OfATransformerIsThatOfTheClosedForm) {
  for (const char* activation : {"relu", "swiglu"}) {
    for (const char* norm : {"post", "pre", "res_post"}) {
      for (const char* positions : {"sinusoidal", "learned", "rotary"}) {
        for (const char* ties : {"all", "decoder", "none"}) {
          SCOPED_TRACE(std::string(activation) + ", " + norm + ", " + positions + ", " + ties);
          Seq2SeqOptions options;
          options.d_model = 8;
          options.encoder = StackOptions{.num_layers = 3, .num_heads = 2, .ffn_dim = 20};
          options.decoder = StackOptions{.num_layers = 2, .num_heads = 4, .ffn_dim = 12};
          options.activation = activation;
          options.norm = norm;
          options.positions = positions;
          options.max_positions = 7;
          options.tie_embeddings = ties;
          const TableSizes rows{.src = 20, .tgt = std::string(ties) == "all" ? 20 : 30};
          const ClosedForm expected(options, rows);
          EXPECT_EQ(cost(options, rows).parameters, expected.parameters());
          EXPECT_EQ(cost(options, rows).training_flops, expected.training_flops({}));
          const Lengths uneven{.src = 17.3, .tgt = 21.9};
          EXPECT_NEAR(cost(options, rows, uneven).training_flops / expected.training_flops(uneven),
                      1, 1e-12);
        }
      }
    }
  }
}

TEST(ModelCost, GrowsWithTheSourceOfATargetToken) {
  const auto base = paper(512, 2048);
  EXPECT_GT(cost(base, kPaperTables, {.src = 60, .tgt = 30}).training_flops,
            1.3 * cost(base, kPaperTables).training_flops);
}

TEST(ModelCost, IsKnownOfEveryKindOfPart) {
  const auto of = [](const EncoderChoice& encoder, const DecoderChoice& decoder) {
    Seq2SeqOptions options = paper(512, 2048);
    options.encoder = encoder;
    options.decoder = decoder;
    return cost(options, kPaperTables);
  };
  for (const ModelCost& one : {of(LstmEncoderOptions{}, LstmDecoderOptions{}),
                               of(ConvEncoderOptions{}, ConvDecoderOptions{}),
                               of(LightEncoderOptions{}, LightDecoderOptions{}),
                               of(DynamicEncoderOptions{}, DynamicDecoderOptions{})}) {
    EXPECT_GT(one.parameters, 32768 * 512);
    // At least the output projection; and hardly more than all weights on both sides.
    EXPECT_GT(one.training_flops, 6 * 32768.0 * 512);
    EXPECT_LT(one.training_flops, 2 * 6 * static_cast<double>(one.parameters));
  }
}

}  // namespace
}  // namespace stretto::models
