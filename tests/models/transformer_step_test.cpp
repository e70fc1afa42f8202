#include "models/decoders/transformer_step.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "models/seq2seq_options.h"
#include "tests/models/part_cases.h"

namespace stretto::models {
namespace {

std::shared_ptr<TransformerDecoder> decoder_with(int64_t num_kv_heads,
                                                 const std::string& positions = "sinusoidal",
                                                 int64_t head_dim = 0) {
  Seq2SeqOptions options;
  options.d_model = testing::kWidth;
  options.positions = positions;
  options.max_distance = 3;  // sentences are longer
  const StackOptions stack{.num_layers = 2,
                           .num_heads = head_dim > 0 ? 3 : 4,
                           .ffn_dim = 20,
                           .num_kv_heads = num_kv_heads,
                           .head_dim = head_dim};
  return std::make_shared<TransformerDecoder>(TransformerPart(options, stack),
                                              testing::setup_of("decoder"));
}

TEST(TransformerStepDecoder, CachesOnlyTheHeadsOfKeysThatThereAre) {
  const torch::NoGradGuard no_grad;
  const Encoded memory = testing::any_memory(testing::first_batch(), at::kFloat, false);
  const auto cached = [&](int64_t num_kv_heads) {
    TransformerStepDecoder steps(decoder_with(num_kv_heads), memory, 2);
    steps.step(at::full({6}, 5, at::kLong));
    return steps.cached_numbers();
  };
  EXPECT_GT(cached(0), 0);
  EXPECT_EQ(cached(4), cached(0));
  EXPECT_EQ(2 * cached(2), cached(0));
  EXPECT_EQ(4 * cached(1), cached(0));
}

TEST(TransformerStepDecoder, StepsAreTeacherForcingWithEveryKindOfAttention) {
  for (const char* positions : {"sinusoidal", "rotary", "alibi", "t5", "shaw"})
    for (const int64_t num_kv_heads : {0, 1, 2})
      for (const bool has_values : {false, true}) {
        SCOPED_TRACE(std::string(positions) + " " + std::to_string(num_kv_heads));
        const auto decoder = decoder_with(num_kv_heads, positions);
        const data::Batch batch = testing::first_batch();
        const Encoded memory = testing::any_memory(batch, at::kFloat, has_values);
        testing::expect_steps_of_teacher_forcing(*decoder, memory, batch, 1e-5);
        testing::expect_no_look_ahead(*decoder, memory, batch);
        testing::expect_lanes_to_keep_their_histories(*decoder);
      }
}

// Three heads of six columns in rows of sixteen: some were taken out.
TEST(TransformerStepDecoder, HeadsMayHaveAWidthOfTheirOwn) {
  for (const char* positions : {"sinusoidal", "rotary"})
    for (const int64_t num_kv_heads : {0, 1}) {
      SCOPED_TRACE(std::string(positions) + " " + std::to_string(num_kv_heads));
      const auto decoder = decoder_with(num_kv_heads, positions, /*head_dim=*/6);
      EXPECT_EQ(decoder->named_parameters()["layers.0.cross_attention.out.weight"].sizes(),
                (std::vector<int64_t>{testing::kWidth, 18}));
      const data::Batch batch = testing::first_batch();
      const Encoded memory = testing::any_memory(batch, at::kFloat, /*has_values=*/true);
      testing::expect_steps_of_teacher_forcing(*decoder, memory, batch, 1e-5);
      testing::expect_no_look_ahead(*decoder, memory, batch);
      testing::expect_lanes_to_keep_their_histories(*decoder);
    }
}

}  // namespace
}  // namespace stretto::models
