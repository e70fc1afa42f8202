// Prompts that a decoder takes at once.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "decoding/ensemble.h"
#include "kernels/gemm/packed_weights.h"
#include "models/heads/token.h"
#include "models/memory.h"
#include "models/registry.h"
#include "models/vocabulary_steps.h"
#include "tests/kernels/scopes.h"
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

/// A prompt of so many tokens, other ones for each number.
std::vector<int64_t> numbered_prompt(int64_t number, int64_t length) {
  std::vector<int64_t> ids;
  for (int64_t t = 0; t < length; ++t) ids.push_back(4 + (7 * number + 5 * t) % 19);
  return ids;
}

decoding::PackedPrompts packed_prompts(const std::vector<std::vector<int64_t>>& all) {
  decoding::PackedPrompts prompts;
  for (const auto& prompt : all) prompts.append(prompt);
  return prompts;
}

/// Prompts of different lengths together, and each alone: through steps in which lanes change
/// places and prompts leave, the longest one first, all rows have the same bits.
void expect_the_bits_of_single_prompts(Decoder& decoder) {
  constexpr int64_t kLanes = 2;
  const std::vector<std::vector<int64_t>> prompts{numbered_prompt(0, 5), numbered_prompt(1, 41),
                                                  numbered_prompt(2, 1)};
  const auto together = decoder.start(no_memory(3, at::kCPU), kLanes);
  at::Tensor rows = together->prefill_packed(packed_prompts(prompts), kLanes);
  std::vector<std::unique_ptr<StepDecoder>> alone;
  std::vector<at::Tensor> rows_alone;
  for (const auto& prompt : prompts) {
    alone.push_back(decoder.start(no_memory(1, at::kCPU), kLanes));
    rows_alone.push_back(alone.back()->prefill_packed(packed_prompts({prompt}), kLanes));
  }
  std::vector<size_t> alive{0, 1, 2};
  for (int64_t t = 0; t < 50; ++t) {
    for (size_t place = 0; place < alive.size(); ++place) {
      EXPECT_TRUE(at::equal(rows.narrow(0, static_cast<int64_t>(place) * kLanes, kLanes),
                            rows_alone[alive[place]]))
          << "prompt " << alive[place] << ", step " << t;
    }
    std::vector<int64_t> parents;
    std::vector<size_t> next;
    for (size_t place = 0; place < alive.size(); ++place) {
      const bool leaves = (alive[place] == 1 && t == 8) || (alive[place] == 0 && t == 20);
      if (leaves) continue;
      const auto lane = static_cast<int64_t>(place) * kLanes;
      parents.insert(parents.end(), {lane + 1, t % 3 == 0 ? lane + 1 : lane});
      next.push_back(alive[place]);
      alone[alive[place]]->reorder({1, t % 3 == 0 ? 1 : 0});
    }
    together->reorder(parents);
    alive = next;
    std::vector<int64_t> tokens;
    for (const size_t prompt : alive) {
      const auto number = static_cast<int64_t>(prompt);
      const std::vector<int64_t> own{4 + (number + t) % 19, 5 + (3 * number + t) % 17};
      tokens.insert(tokens.end(), own.begin(), own.end());
      rows_alone[prompt] = alone[prompt]->step(at::tensor(own, at::kLong));
    }
    rows = together->step(at::tensor(tokens, at::kLong));
  }
}

TEST(Prefill, PromptsOfUnequalLengthsHaveTheBitsOfEachAlone) {
  const torch::NoGradGuard no_grad;
  const stretto::testing::OwnProducts own_products;
  for (const char* positions : {"sinusoidal", "learned", "rotary", "alibi", "t5", "shaw"}) {
    SCOPED_TRACE(positions);
    LayerStyle style;
    style.norm = "pre";
    style.positions = positions;
    style.max_positions = 52;  // the shortest takes 51 of them, in 91 steps of the caches
    style.max_distance = 3;
    const auto decoder = prompted(kPromptedStack, style, false);
    kernels::PackedWeights weights;
    const kernels::PackedWeightsScope packed(weights);
    expect_the_bits_of_single_prompts(*decoder);
  }
}

// The longest prompt leaves in time; the positions of the others are counted for themselves.
TEST(Prefill, EachPromptHasAllPositionsOfTheModel) {
  const torch::NoGradGuard no_grad;
  LayerStyle style;
  style.positions = "learned";
  style.max_positions = 24;
  const auto decoder = prompted(kPromptedStack, style, false);
  const auto steps = decoder->start(no_memory(2, at::kCPU), 1);
  steps->prefill_packed(packed_prompts({numbered_prompt(0, 24), numbered_prompt(1, 2)}), 1);
  steps->reorder({1});
  for (int64_t t = 2; t < 24; ++t) steps->step(at::full({1}, 5, at::kLong));
  EXPECT_THROW(steps->step(at::full({1}, 5, at::kLong)), Error);
}

TEST(Prefill, OfUnequalPromptsIsRefusedByDecodersThatStep) {
  const Encoded memory = testing::any_memory(testing::first_batch(), at::kFloat, true);
  const auto decoder = prompted(LstmDecoderOptions{.num_layers = 2}, {}, true);
  const auto steps = decoder->start(memory, 1);
  EXPECT_FALSE(steps->takes_unequal_prompts());
  const std::vector<int64_t> two{5, 6}, one{7};
  EXPECT_THROW(steps->prefill_packed(packed_prompts({two, one, two}), 1), c10::Error);
  EXPECT_EQ(steps->prefill_packed(packed_prompts({two, two, two}), 1).size(0), 3);
}

// What was subtracted from logits is known, since penalties of repetition are those of logits.
TEST(Prefill, NormalisersMakeLogitsOfLogProbabilities) {
  const torch::NoGradGuard no_grad;
  const auto decoder = prompted(kPromptedStack, {}, false);
  const auto head =
      std::make_shared<TokenHead>(TokenHeadSetup{.init = nn::Init(5, at::kCPU).child("output"),
                                                 .width = kWidth,
                                                 .rows = kRows,
                                                 .num_classes = kRows - 3},
                                  nn::OutputLosses{});
  const auto steps = decoder->start(no_memory(2, at::kCPU), 1);
  const auto model = steps_of_vocabulary({.model = decoder,
                                          .steps = decoder->start(no_memory(2, at::kCPU), 1),
                                          .head = head,
                                          .lanes = 2});
  const auto prompts = packed_prompts({numbered_prompt(0, 3), numbered_prompt(1, 6)});
  const at::Tensor rows = steps->prefill_packed(prompts, 1);
  const at::Tensor log_probs = model->prefill_packed(prompts, 1);
  const at::Tensor logits = at::linear(rows, head->matrix().narrow(0, 0, kRows - 3));
  EXPECT_TRUE(at::allclose(log_probs + model->log_normalisers().unsqueeze(1), logits, 1e-5, 1e-5));
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
