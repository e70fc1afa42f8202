#include "families/language_model/engine/generator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "kernels/gemm/packed_weights.h"
#include "models/causal_model.h"
#include "tests/families/language_model/engine/scripted_model.h"
#include "tests/kernels/scopes.h"
#include "tests/text/special_ids.h"
#include "text/byte_bpe.h"
#include "text/tokenizer_spec.h"

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

TEST(Generator, EndsAtAnyTokenThatEndsATextAndLeavesItOut) {
  const auto words = ScriptedModel::tokenizer();
  auto model = ScriptedModel::generating();
  model.ends = {8};  // "mat"
  for (const int64_t beam_size : {1, 2}) {
    auto options = greedy_options();
    options.beam_size = beam_size;
    const auto found = continuations_of(Generator(model, *words, options), {"the cat", "on mat"});
    EXPECT_EQ(found[0][0].text, " sat on") << beam_size;
    EXPECT_EQ(found[0][0].end, decoding::OutputEnd::kToken) << beam_size;
    EXPECT_EQ(found[0][0].token_log_probs.size(), 3U) << "the end has one too";
    EXPECT_EQ(found[1][0].text, " .") << "in a prompt it ends nothing";
  }
  auto drawn = greedy_options();
  drawn.method = "sample";
  drawn.top_k = 1;
  const auto sample = continuations_of(Generator(model, *words, drawn), {"the cat"});
  EXPECT_EQ(sample[0][0].ids, (std::vector<int64_t>{6, 7}));
  auto longer = greedy_options();
  longer.min_len = 3;
  const auto found = continuations_of(Generator(model, *words, longer), {"the cat"});
  EXPECT_GE(found[0][0].ids.size(), 3U);
  EXPECT_EQ(std::ranges::find(found[0][0].ids, 8), found[0][0].ids.end());
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
  // By their scores, the first ones of more would be others.
  for (const int64_t count : {1, 3, 4}) {
    EXPECT_EQ(samples(count, {"the"}), std::vector<std::string>(five.begin(), five.begin() + count))
        << count;
  }
  EXPECT_NE(std::ranges::count(five, five[0]), 5);
}

/// Writes these tokens one after the other, whatever the prompt.
class RecitedModel : public decoding::StepModel {
 public:
  RecitedModel(std::vector<int64_t> ids, int64_t vocab, int64_t lanes)
      : ids_(std::move(ids)), vocab_(vocab), lanes_(lanes) {}

  static GeneratingModel generating(const std::vector<int64_t>& ids, int64_t vocab) {
    return {.start =
                [ids, vocab](int64_t sources, int64_t lanes_per_source) {
                  return std::make_unique<RecitedModel>(ids, vocab, sources * lanes_per_source);
                },
            .before = {}};
  }

  at::Tensor step(const at::Tensor& /*tokens*/) override { return next(); }
  at::Tensor prefill_packed(const decoding::PackedPrompts& /*prompts*/,
                            int64_t /*lanes_per_source*/) override {
    return next();
  }
  bool takes_unequal_prompts() const override { return true; }
  void reorder(const std::vector<int64_t>& parents) override { lanes_ = std::ssize(parents); }
  int64_t vocab_size() const override { return vocab_; }

 private:
  at::Tensor next() {
    at::Tensor logits = at::zeros({lanes_, vocab_});
    logits.select(1, ids_.at(step_++)).fill_(8);
    return at::log_softmax(logits, 1);
  }

  std::vector<int64_t> ids_;
  int64_t vocab_, lanes_;
  size_t step_ = 0;
};

TEST(Generator, WritesPaddingAndBeginningsWhereItMay) {
  const auto words = ScriptedModel::tokenizer();
  GeneratingModel model = RecitedModel::generating(
      {4, testing::kBos, 5, testing::kPad, testing::kEos}, ScriptedModel::kSize);
  const auto ids_by = [&] {
    const Generator generator(model, *words, greedy_options(5));
    return continuations_of(generator, {"the"})[0][0].ids;
  };
  const auto without = ids_by();
  EXPECT_EQ(std::ranges::count(without, testing::kBos), 0);
  EXPECT_EQ(std::ranges::count(without, testing::kPad), 0);
  model.writes_all = true;
  EXPECT_EQ(ids_by(), (std::vector<int64_t>{4, testing::kBos, 5, testing::kPad}));
}

TEST(Generator, NothingMayStandInFrontOfAPrompt) {
  const auto words = ScriptedModel::tokenizer();
  GeneratingModel model = ScriptedModel::generating();
  EXPECT_TRUE(Generator(model, *words, greedy_options()).begins_texts());
  model.before = {};
  const Generator generator(model, *words, greedy_options());
  EXPECT_FALSE(generator.begins_texts());
  EXPECT_TRUE(generator.prompt_of("").empty());
  EXPECT_EQ(generator.prompt_of("the"), std::vector<int64_t>{4});
  EXPECT_EQ(continuations_of(generator, {"the cat"})[0][0].text, " sat on mat .");
}

/// A byte is a token; the last id ends a text.
std::shared_ptr<const text::Tokenizer> byte_tokenizer() {
  text::TokenizerSpec spec;
  spec.model = text::TokenizerSpec::Model::kByteBpe;
  spec.decoder = text::TokenizerSpec::Decoder::kBytes;
  for (const std::string& piece : text::byte_alphabet()) {
    spec.vocab.emplace_back(piece, std::ssize(spec.vocab));
  }
  spec.vocab.emplace_back("</s>", std::ssize(spec.vocab));
  spec.added.push_back({.content = "</s>", .id = 256, .normalized = false, .special = true});
  return text::make_spec_tokenizer(spec, "test", 0);
}

TEST(Generator, ListenersNeverHearHalfACharacter) {
  const auto tokenizer = byte_tokenizer();
  const std::string text = "na\u00efve \u2014 \U0001F600!";
  std::vector<int64_t> ids;
  tokenizer->encode(text, ids);
  ASSERT_EQ(ids.size(), text.size());
  ids.push_back(256);
  for (const bool stops : {false, true}) {
    auto options = greedy_options(64);
    if (stops) options.stop = {"\U0001F600!"};  // cut by five tokens
    const Generator generator(RecitedModel::generating(ids, 257), *tokenizer, options);
    std::string heard;
    const auto found =
        continuations_of(generator, {"x"}, [&](size_t /*request*/, const std::string& part) {
          EXPECT_TRUE(is_valid_utf8(part)) << part;
          heard += part;
        });
    EXPECT_EQ(heard, stops ? text.substr(0, text.size() - 5) : text);
    EXPECT_EQ(found[0][0].text, heard);
    EXPECT_EQ(found[0][0].end, stops ? decoding::OutputEnd::kStop : decoding::OutputEnd::kToken);
  }
}

TEST(Generator, AnotherSeedGivesOtherSamples) {
  const auto words = ScriptedModel::tokenizer();
  const auto samples = [&](int64_t seed) {
    decoding::GenerationOptions options;
    options.nbest = 4;
    options.max_new_tokens = 12;
    options.seed = seed;
    const Generator generator(ScriptedModel::generating(), *words, options);
    std::vector<std::string> texts;
    const auto found = continuations_of(generator, {"the"});
    for (const auto& one : found[0]) texts.push_back(one.text);
    return texts;
  };
  EXPECT_EQ(samples(1), samples(1));
  EXPECT_NE(samples(1), samples(2));
}

models::CausalModelOptions small_options(const std::string& kind) {
  if (kind == "lstm") {
    models::CausalLstmModelOptions lstm;
    lstm.num_layers = 2;
    lstm.d_model = lstm.hidden_dim = 16;
    return lstm;
  }
  models::CausalTransformerOptions transformer;
  transformer.preset = "none";
  transformer.num_layers = 2;
  transformer.d_model = 16;
  transformer.num_heads = 4;
  transformer.num_kv_heads = 2;
  transformer.ffn_dim = 20;
  transformer.positions = kind;
  transformer.init_std = 0.4;
  return transformer;
}

/// A model of random weights over the words.
GeneratingModel small_model(const std::string& kind) {
  const auto model = models::make_causal_model({.model = small_options(kind),
                                                .rows = 16,
                                                .num_ids = ScriptedModel::kSize,
                                                .specials = testing::kSpecials,
                                                .seed = 3},
                                               {});
  model->eval();
  return {.start =
              [model](int64_t sources, int64_t lanes_per_source) {
                return model->start(sources, lanes_per_source);
              },
          .max_length = model->max_length(),
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

/// Greedy, a beam of two, and two samples.
std::vector<decoding::GenerationOptions> ways_to_continue() {
  decoding::GenerationOptions options;
  options.max_new_tokens = 40;
  options.min_len = 3;
  options.repetition_penalty = 1.2;
  options.min_p = 0.05;
  auto greedy = options, beam = options, sample = options;
  greedy.method = beam.method = "beam";
  beam.beam_size = beam.nbest = sample.nbest = 2;
  return {greedy, beam, sample};
}

class GeneratorOfKinds : public ::testing::TestWithParam<const char*> {};

TEST_P(GeneratorOfKinds, ABatchHasTheBitsOfItsSinglePrompts) {
  const torch::NoGradGuard no_grad;
  const stretto::testing::OwnProducts own_products;
  kernels::PackedWeights weights;
  const kernels::PackedWeightsScope packed(weights);
  const auto words = ScriptedModel::tokenizer();
  const std::vector<std::string> prompts{"the cat sat on the mat . the cat", "the", "",
                                         "mat on cat", "the"};
  for (const auto& options : ways_to_continue()) {
    const Generator generator(small_model(GetParam()), *words, options);
    const auto together = continuations_of(generator, prompts);
    for (size_t i = 0; i < prompts.size(); ++i) {
      SCOPED_TRACE(options.method + " of " + std::to_string(options.lanes()) + ", prompt " +
                   std::to_string(i));
      const GenerationRequest request{.prompt = generator.prompt_of(prompts[i]),
                                      .line = static_cast<int64_t>(i)};
      const std::vector<const GenerationRequest*> one{&request};
      expect_same_bits(together[i], generator.run(one)[0]);
    }
    if (options.method == "sample") {  // another line, another draw
      EXPECT_NE(together[1][0].ids, together[4][0].ids);
    }
    EXPECT_EQ(generator.most_cache_bytes() > 0, std::string(GetParam()) != "lstm");
  }
}

INSTANTIATE_TEST_SUITE_P(Each, GeneratorOfKinds, ::testing::Values("learned", "rotary", "lstm"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace stretto::tasks
