#include "families/language_model/engine/generator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/packed_weights.h"
#include "models/heads/token.h"
#include "models/memory.h"
#include "models/parts.h"
#include "models/registry.h"
#include "models/vocabulary_steps.h"
#include "tests/families/language_model/engine/scripted_model.h"
#include "tests/kernels/scopes.h"

namespace stretto::tasks {
namespace {

using stretto::testing::ScriptedModel;

decoding::GenerationOptions greedy_options(int64_t max_new_tokens = 20) {
  decoding::GenerationOptions options;
  options.method = "beam";
  options.max_new_tokens = max_new_tokens;
  return options;
}

/// What is written behind some prompts together.
std::vector<std::vector<Continuation>> continuations_of(const Generator& generator,
                                                        const std::vector<std::string>& prompts,
                                                        const TextListener& listener = {}) {
  std::vector<GenerationRequest> requests;
  for (const std::string& prompt : prompts) {
    requests.push_back({.prompt = generator.prompt_of(prompt), .line = std::ssize(requests)});
  }
  std::vector<const GenerationRequest*> all;
  for (const GenerationRequest& request : requests) all.push_back(&request);
  return generator.run(all, listener);
}

TEST(Generator, WritesBehindThePromptUntilTheTextEnds) {
  const auto words = ScriptedModel::tokenizer();
  const Generator generator(ScriptedModel::generating(), *words, greedy_options());
  const auto found = continuations_of(generator, {"the cat", "", "on mat ."});
  EXPECT_EQ(found[0][0].text, " sat on mat .");
  EXPECT_EQ(found[0][0].ids, (std::vector<int64_t>{6, 7, 8, 9}));
  EXPECT_EQ(found[0][0].end, decoding::OutputEnd::kToken);
  EXPECT_EQ(found[0][0].token_log_probs.size(), 5U);  // the end has one too
  EXPECT_EQ(found[1][0].text, "the cat sat on mat .");
  EXPECT_EQ(found[2][0].text, "");
}

TEST(Generator, StopsInFrontOfAStopString) {
  const auto words = ScriptedModel::tokenizer();
  for (const int64_t beam_size : {1, 2}) {
    auto options = greedy_options();
    options.beam_size = beam_size;
    options.stop = {"nothing", " on m"};
    const Generator generator(ScriptedModel::generating(), *words, options);
    std::string heard;
    const auto found = continuations_of(
        generator, {"the"}, [&](size_t /*request*/, const std::string& text) { heard += text; });
    EXPECT_EQ(found[0][0].text, " cat sat") << beam_size;
    EXPECT_EQ(found[0][0].end, decoding::OutputEnd::kStop) << beam_size;
    if (beam_size == 1) {
      EXPECT_EQ(heard, " cat sat");
    }
  }
}

TEST(Generator, EndsAtItsBound) {
  const auto words = ScriptedModel::tokenizer();
  const Generator generator(ScriptedModel::generating(), *words, greedy_options(2));
  const auto found = continuations_of(generator, {"the"});
  EXPECT_EQ(found[0][0].text, " cat sat");
  EXPECT_EQ(found[0][0].end, decoding::OutputEnd::kBound);
  EXPECT_EQ(found[0][0].token_log_probs.size(), 2U);
}

TEST(Generator, KnowsHowMuchRoomAPromptLeaves) {
  const auto words = ScriptedModel::tokenizer();
  const Generator generator(ScriptedModel::generating(true, 4), *words, greedy_options(3));
  const auto room = [&](const std::string& text) {
    return generator.room({.prompt = generator.prompt_of(text)});
  };
  EXPECT_EQ(room("the"), 3);
  EXPECT_EQ(room("the cat sat"), 1);
  EXPECT_EQ(room("the cat sat on"), 0);
  EXPECT_EQ(continuations_of(generator, {"the cat sat"})[0][0].text, " on");
}

TEST(Generator, ListenersHearTheTextInParts) {
  const auto words = ScriptedModel::tokenizer();
  for (const bool packs : {true, false}) {
    const Generator generator(ScriptedModel::generating(packs), *words, greedy_options());
    std::vector<std::vector<std::string>> heard(2);
    const auto found = continuations_of(
        generator, {"the cat", "mat"},
        [&](size_t request, const std::string& text) { heard[request].push_back(text); });
    EXPECT_EQ(heard[0], (std::vector<std::string>{" sat", " on", " mat", " ."})) << packs;
    EXPECT_EQ(heard[1], (std::vector<std::string>{" ."})) << packs;
    EXPECT_EQ(found[0][0].text, " sat on mat .");
  }
}

TEST(Generator, SamplesAreInTheOrderOfTheirNumbers) {
  const auto words = ScriptedModel::tokenizer();
  const auto samples = [&](int64_t count, const std::vector<std::string>& prompts) {
    decoding::GenerationOptions options;
    options.nbest = count;
    options.max_new_tokens = 12;
    const Generator generator(ScriptedModel::generating(), *words, options);
    std::vector<std::string> texts;
    const auto found = continuations_of(generator, prompts);
    for (const auto& one : found[0]) texts.push_back(one.text);
    return texts;
  };
  const auto five = samples(5, {"the"}), two = samples(2, {"the", "cat sat"});
  ASSERT_EQ(five.size(), 5U);
  EXPECT_EQ(std::vector<std::string>(five.begin(), five.begin() + 2), two);
  EXPECT_NE(std::ranges::count(five, five[0]), 5);
}

/// A Transformer of random weights over the words.
GeneratingModel small_transformer() {
  models::LayerStyle style;
  style.norm = "pre";
  style.positions = "rotary";
  models::PartSetup setup{.init = nn::Init(3, at::kCPU).child("decoder"),
                          .d_model = 16,
                          .memory_width = std::nullopt,
                          .rows = 16,
                          .pad = 0,
                          .first_site = models::kDecoderSites};
  const models::StackOptions stack{
      .num_layers = 2, .num_heads = 4, .ffn_dim = 20, .num_kv_heads = 2};
  const std::shared_ptr<models::Decoder> decoder = models::make_decoder(stack, style, setup);
  const auto head = std::make_shared<models::TokenHead>(
      models::TokenHeadSetup{.init = nn::Init(5, at::kCPU).child("output"),
                             .width = 16,
                             .rows = 16,
                             .num_classes = ScriptedModel::kSize},
      nn::OutputLosses{});
  return {
      .start =
          [decoder, head](int64_t sources, int64_t lanes_per_source) {
            return models::steps_of_vocabulary(
                {.model = decoder,
                 .steps = decoder->start(models::no_memory(sources, at::kCPU), lanes_per_source),
                 .head = head,
                 .lanes = sources * lanes_per_source});
          },
      .before = {ScriptedModel::kEnd}};
}

void expect_same_bits(const std::vector<Continuation>& a, const std::vector<Continuation>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].text, b[i].text);
    EXPECT_EQ(a[i].ids, b[i].ids);
    EXPECT_EQ(a[i].token_log_probs, b[i].token_log_probs);
    EXPECT_EQ(a[i].log_prob, b[i].log_prob);
  }
}

TEST(Generator, ABatchHasTheBitsOfItsSinglePrompts) {
  const torch::NoGradGuard no_grad;
  const stretto::testing::OwnProducts own_products;
  kernels::PackedWeights weights;
  const kernels::PackedWeightsScope packed(weights);
  const auto words = ScriptedModel::tokenizer();
  const std::vector<std::string> prompts{"the cat sat on the mat . the cat", "the", "",
                                         "mat on cat", "the"};
  for (const char* method : {"beam", "sample"}) {
    decoding::GenerationOptions options;
    options.method = method;
    options.beam_size = options.nbest = 2;
    options.max_new_tokens = 40;
    options.min_len = 3;
    options.repetition_penalty = 1.2;
    options.min_p = 0.05;
    const Generator generator(small_transformer(), *words, options);
    const auto together = continuations_of(generator, prompts);
    for (size_t i = 0; i < prompts.size(); ++i) {
      SCOPED_TRACE(std::string(method) + " " + std::to_string(i));
      const GenerationRequest request{.prompt = generator.prompt_of(prompts[i]),
                                      .line = static_cast<int64_t>(i)};
      const std::vector<const GenerationRequest*> one{&request};
      expect_same_bits(together[i], generator.run(one)[0]);
    }
    if (std::string(method) == "sample") {  // another line, another draw
      EXPECT_NE(together[1][0].ids, together[4][0].ids);
    }
  }
}

}  // namespace
}  // namespace stretto::tasks
