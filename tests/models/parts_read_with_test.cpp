// What `read_with` says behind a key of a part is held against the part: it is another one if and
// only if the key is read.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "models/decoders/convolution.h"
#include "models/decoders/light_convolution.h"
#include "models/encoders/convolution.h"
#include "models/encoders/light_convolution.h"
#include "tests/config/is_read.h"
#include "tests/models/part_cases.h"
#include "tests/models/recurrent_pairings.h"

namespace stretto::models {
namespace {

using stretto::testing::is_read;

template <class Options, class Make>
void expect_positions_where_they_are_learned(const Make& make) {
  for (const std::string positions : {"learned", "sinusoidal", "none"}) {
    Options options;
    options.num_layers = 1;
    options.positions = positions;
    Options longer = options;
    longer.max_positions += 8;
    const bool differs =
        testing::count_parameters(*make(longer)) != testing::count_parameters(*make(options));
    EXPECT_EQ(differs, is_read("max_positions", options)) << Options::kName << " " << positions;
  }
}

TEST(KeysOfParts, PositionsAreAsManyAsTheySayWhereTheyAreLearned) {
  const auto encoder = testing::setup_of("encoder"), decoder = testing::setup_of("decoder");
  expect_positions_where_they_are_learned<ConvEncoderOptions>(
      [&](const auto& options) { return make_conv_encoder(options, encoder); });
  expect_positions_where_they_are_learned<LightEncoderOptions>(
      [&](const auto& options) { return make_light_encoder(options, encoder); });
  expect_positions_where_they_are_learned<DynamicEncoderOptions>(
      [&](const auto& options) { return make_dynamic_encoder(options, encoder); });
  expect_positions_where_they_are_learned<ConvDecoderOptions>(
      [&](const auto& options) { return make_conv_decoder(options, decoder); });
  expect_positions_where_they_are_learned<LightDecoderOptions>(
      [&](const auto& options) { return make_light_decoder(options, decoder); });
  expect_positions_where_they_are_learned<DynamicDecoderOptions>(
      [&](const auto& options) { return make_dynamic_decoder(options, decoder); });
}

TEST(KeysOfParts, OfAnLstmCountWhereTheySay) {
  using O = LstmEncoderOptions;
  const std::map<std::string, std::function<void(O&)>> changes{
      {"variational", [](O& o) { o.variational = true; }},
      {"bidirectional_layers", [](O& o) { o.bidirectional_layers = 2; }},
      {"num_layers", [](O& o) { o.num_layers = 1; }},
  };
  const auto rows = [](const O& encoder) {
    const torch::NoGradGuard no_grad;
    auto made = testing::recurrent::gnmt();
    made.encoder = encoder;
    const testing::recurrent::Joined joined(made, at::kFloat);
    return joined.rows(testing::recurrent::three_pairs(), {.training = true, .dropout_key = 5});
  };
  for (const bool bidirectional : {true, false}) {
    for (const double dropout : {0.0, 0.5}) {
      O options;
      options.bidirectional = bidirectional;
      options.dropout = dropout;
      const at::Tensor before = rows(options);
      for (const auto& [key, apply] : changes) {
        O changed = options;
        apply(changed);
        EXPECT_EQ(!at::equal(rows(changed), before), is_read(key, options))
            << key << ", in both directions: " << bidirectional << ", dropout " << dropout;
      }
    }
  }
}

}  // namespace
}  // namespace stretto::models
