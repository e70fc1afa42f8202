// Prompts that a decoder takes at once.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "decoding/ensemble.h"
#include "models/heads/token.h"
#include "models/memory.h"
#include "models/registry.h"
#include "models/vocabulary_steps.h"
#include "tests/models/part_cases.h"

namespace stretto::models {
namespace {

using testing::kRows, testing::kWidth;

std::shared_ptr<Decoder> prompted(const DecoderChoice& choice, const LayerStyle& style,
                                  bool has_memory) {
  PartSetup setup = testing::setup_of("decoder");
  if (!has_memory) setup.memory_width = std::nullopt;
  return make_decoder(choice, style, setup);
}

const StackOptions kPromptedStack{
    .num_layers = 2, .num_heads = 4, .ffn_dim = 20, .num_kv_heads = 2};

TEST(Prefill, OfATransformerIsThatOfItsSteps) {
  for (const char* positions : {"sinusoidal", "learned", "rotary", "alibi", "t5", "shaw"}) {
    for (const bool has_memory : {false, true}) {
      for (const int64_t length : {1, 5, 37}) {  // 37 is more than a cache grows by
        SCOPED_TRACE(std::string(positions) + (has_memory ? ", memory, " : ", ") +
                     std::to_string(length));
        LayerStyle style;
        style.norm = "pre";
        style.positions = positions;
        style.max_distance = 3;
        const auto decoder = prompted(kPromptedStack, style, has_memory);
        const Encoded memory = has_memory
                                   ? testing::any_memory(testing::first_batch(), at::kFloat, true)
                                   : no_memory(3, at::kCPU);
        testing::expect_prefill_of_steps(*decoder, memory, length, 1e-5);
      }
    }
  }
}

TEST(Prefill, OfOtherDecodersAreTheirSteps) {
  const std::vector<DecoderChoice> choices{
      LstmDecoderOptions{.num_layers = 2, .initial_state = "mean"},
      ConvDecoderOptions{.num_layers = 2}, LightDecoderOptions{.num_layers = 2, .num_heads = 2},
      DynamicDecoderOptions{.num_layers = 2, .num_heads = 2}};
  const Encoded memory = testing::any_memory(testing::first_batch(), at::kFloat, true);
  for (const DecoderChoice& choice : choices) {
    SCOPED_TRACE(choice.name());
    testing::expect_prefill_of_steps(*prompted(choice, {}, true), memory, 5, 1e-6);
  }
}

TEST(Prefill, ComesBeforeStepsAndFitsTheLanes) {
  const auto decoder = prompted(kPromptedStack, {}, false);
  const auto steps = decoder->start(no_memory(3, at::kCPU), 2);
  EXPECT_THROW(steps->prefill(at::full({3, 4}, 5, at::kLong), 1), c10::Error);
  EXPECT_THROW(steps->prefill(at::full({3, 0}, 5, at::kLong), 2), c10::Error);
  steps->step(at::full({6}, 5, at::kLong));
  EXPECT_THROW(steps->prefill(at::full({3, 4}, 5, at::kLong), 2), c10::Error);
}

std::unique_ptr<decoding::StepModel> scores_of(const std::shared_ptr<Decoder>& decoder) {
  const auto head =
      std::make_shared<TokenHead>(TokenHeadSetup{.init = nn::Init(5, at::kCPU).child("output"),
                                                 .width = kWidth,
                                                 .rows = kRows,
                                                 .num_classes = kRows - 3},
                                  nn::OutputLosses{});
  return steps_of_vocabulary({.model = decoder,
                              .steps = decoder->start(no_memory(2, at::kCPU), 3),
                              .head = head,
                              .lanes = 6});
}

TEST(Prefill, ScoresTheNextTokenOfALanguageModelAndOfSeveralTogether) {
  const auto one = prompted(kPromptedStack, {}, false);
  LayerStyle style;
  style.positions = "rotary";
  const auto other = prompted(kPromptedStack, style, false);
  const at::Tensor prompts = at::tensor({4, 9, 7, 12, 6, 5}, at::kLong).view({2, 3});
  const auto both = [&] {
    std::vector<std::unique_ptr<decoding::StepModel>> members;
    members.push_back(scores_of(one));
    members.push_back(scores_of(other));
    return decoding::EnsembleStepModel(std::move(members));
  };
  const auto expect_alike = [&](decoding::StepModel& filled, decoding::StepModel& stepped) {
    const at::Tensor got = filled.prefill(prompts, 3);
    at::Tensor want;
    for (int64_t t = 0; t < 3; ++t) {
      want = stepped.step(prompts.select(1, t).repeat_interleave(3).contiguous());
    }
    EXPECT_EQ(got.sizes(), (std::vector<int64_t>{6, kRows - 3}));
    EXPECT_TRUE(at::allclose(got, want, 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(got[3], got[5], 1e-6, 1e-7));  // lanes of one source
  };
  expect_alike(*scores_of(one), *scores_of(one));
  auto filled = both(), stepped = both();
  expect_alike(filled, stepped);
}

}  // namespace
}  // namespace stretto::models
