#include "models/option_conflicts.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "config/schema.h"

namespace stretto::models {
namespace {

constexpr int64_t kFarTooMany = std::numeric_limits<int64_t>::max();

// Whoever reads a configuration goes on with such a number, to name all mistakes at once.
TEST(OptionConflicts, LeaveNumbersBeyondTheirRangesToTheirKeys) {
  Seq2SeqOptions model;
  model.positions = "rotary";
  for (const int64_t heads : {int64_t{0}, int64_t{-8}}) {
    model.encoder = StackOptions{.num_heads = heads};
    EXPECT_TRUE(option_conflicts(model).empty()) << heads;
  }
  model.encoder = LstmEncoderOptions{.num_layers = kFarTooMany, .bidirectional = false};
  model.decoder = LstmDecoderOptions{.num_layers = kFarTooMany, .initial_state = "last"};
  EXPECT_TRUE(option_conflicts(model).empty());
}

/// `[model]` of a decoder alone.
struct DecoderModel : LayerStyle {
  using Inherited = LayerStyle;
  int64_t d_model = 8;
  DecoderChoice decoder;

  static auto fields() {
    using namespace config;
    return Fields{field(&DecoderModel::d_model, "d_model", "width"),
                  field(&DecoderModel::decoder, "decoder", "what writes")}
        .with(LayerStyle::fields({"decoder.name"}));
  }
};

TEST(LayerStyle, HasItsKeysInAnyModel) {
  DecoderModel model;
  config::Schema schema;
  config::bind(model, "model", schema);
  for (const char* leaf : {"norm", "norm_layer", "parallel_residual", "zero_gamma", "activation",
                           "positions", "dropout", "attention_dropout", "activation_dropout"}) {
    const config::Key* key = schema.find("model." + std::string(leaf));
    ASSERT_NE(key, nullptr) << leaf;
    ASSERT_EQ(key->readers.size(), 1u) << leaf;
    EXPECT_EQ(key->readers[0].deciding_key, "model.decoder.name") << leaf;
    EXPECT_EQ(key->readers[0].values, std::vector<std::string>{"transformer"}) << leaf;
  }
  EXPECT_EQ(schema.find("model.max_positions")->readers[0].deciding_key, "model.positions");
  Seq2SeqOptions pair;
  config::Schema both;
  config::bind(pair, "model", both);
  EXPECT_EQ(both.find("model.norm")->readers.size(), 2u);
}

TEST(OptionConflicts, OfOneStackAreToldOfItsSection) {
  const auto keys = [](const StackOptions& stack, const LayerStyle& style, int64_t d_model) {
    std::vector<std::string> blamed;
    for (const auto& found : option_conflicts(stack, style, d_model, "model.decoder")) {
      blamed.push_back(found.keys.front());
    }
    return blamed;
  };
  using Keys = std::vector<std::string>;
  LayerStyle style;
  EXPECT_EQ(keys({.num_heads = 2}, style, 8), Keys{});
  EXPECT_EQ(keys({.num_heads = 3}, style, 8), Keys{"model.decoder.num_heads"});
  EXPECT_EQ(keys({.num_heads = 4, .num_kv_heads = 3}, style, 8),
            Keys{"model.decoder.num_kv_heads"});
  EXPECT_EQ(keys({.num_heads = 1}, style, 9), Keys{"model.d_model"});
  style.positions = "rotary";
  EXPECT_EQ(keys({.num_heads = 8}, style, 8), Keys{"model.decoder.num_heads"});
  style.parallel_residual = true;
  EXPECT_EQ(keys({.num_heads = 2}, style, 8), Keys{"model.parallel_residual"});
  style.norm = "pre";
  EXPECT_EQ(keys({.num_heads = 2}, style, 8), Keys{});
}

}  // namespace
}  // namespace stretto::models
