// Prompts of language models of every kind, together and alone.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm/packed_weights.h"
#include "models/causal_model.h"
#include "tests/kernels/scopes.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

struct PromptedKind {
  std::string name;
  CausalModelOptions options;
};

std::vector<PromptedKind> prompted_kinds() {
  CausalTransformerOptions gpt2;
  gpt2.preset = "none";
  gpt2.num_layers = 2;
  gpt2.d_model = 16;
  gpt2.num_heads = 4;
  gpt2.ffn_dim = 20;
  gpt2.init_std = 0.4;
  CausalTransformerOptions llama = gpt2;
  llama.norm_layer = "rms_norm";
  llama.activation = "swiglu";
  llama.biases = "none";
  llama.positions = "rotary";
  llama.num_kv_heads = 2;
  CausalTransformerOptions windowed = llama;
  windowed.sliding_window = 3;
  windowed.full_attention_every = 2;
  windowed.attention_softcap = 2;
  windowed.logit_softcap = 3;
  std::vector<PromptedKind> kinds{
      {"GPT-2", gpt2}, {"Llama", llama}, {"windows and capped scores", windowed}};
  for (const char* cell : {"lstm", "gru", "norm_lstm"}) {
    CausalLstmModelOptions recurrent;
    recurrent.cell = cell;
    recurrent.num_layers = 2;
    recurrent.hidden_dim = 12;
    recurrent.d_model = 16;
    kinds.push_back({cell, recurrent});
  }
  return kinds;
}

/// `count` prompts from number `from` on, of different tokens.
decoding::PackedPrompts prompts_of_lengths(const std::vector<int64_t>& lengths, size_t from,
                                           size_t count) {
  decoding::PackedPrompts prompts;
  for (size_t i = from; i < from + count; ++i) {
    std::vector<int64_t> ids;
    for (int64_t t = 0; t < lengths[i]; ++t) {
      ids.push_back(4 + (7 * static_cast<int64_t>(i) + 5 * t) % 17);
    }
    prompts.append(ids);
  }
  return prompts;
}

TEST(CausalPrompts, TogetherHaveTheBitsOfEachAlone) {
  const torch::NoGradGuard no_grad;
  const stretto::testing::OwnProducts own_products;
  constexpr int64_t kLanes = 2;
  const std::vector<int64_t> lengths{6, 1, 35};
  for (const PromptedKind& kind : prompted_kinds()) {
    SCOPED_TRACE(kind.name);
    const auto model = make_causal_model({.model = kind.options,
                                          .rows = 24,
                                          .num_ids = 21,
                                          .specials = stretto::testing::kSpecials,
                                          .seed = 3},
                                         {});
    model->eval();
    kernels::PackedWeights weights;
    const kernels::PackedWeightsScope packed(weights);
    const auto together = model->start(3, kLanes);
    ASSERT_TRUE(together->takes_unequal_prompts());
    at::Tensor all = together->prefill_packed(prompts_of_lengths(lengths, 0, 3), kLanes);
    std::vector<std::unique_ptr<decoding::StepModel>> alone;
    std::vector<at::Tensor> own;
    for (size_t i = 0; i < lengths.size(); ++i) {
      alone.push_back(model->start(1, kLanes));
      own.push_back(alone[i]->prefill_packed(prompts_of_lengths(lengths, i, 1), kLanes));
    }
    for (int64_t t = 0; t < 6; ++t) {
      std::vector<int64_t> tokens;
      for (size_t i = 0; i < lengths.size(); ++i) {
        EXPECT_TRUE(at::equal(all.narrow(0, static_cast<int64_t>(i) * kLanes, kLanes), own[i]))
            << "prompt " << i << ", step " << t;
        const std::vector<int64_t> next{5 + t, 4 + (static_cast<int64_t>(i) + 3 * t) % 17};
        tokens.insert(tokens.end(), next.begin(), next.end());
        own[i] = alone[i]->step(at::tensor(next, at::kLong));
      }
      all = together->step(at::tensor(tokens, at::kLong));
    }
  }
}

TEST(CausalPrompts, CachesTakeTheBytesThatTheyAreComputedToTake) {
  const torch::NoGradGuard no_grad;
  for (const PromptedKind& kind : prompted_kinds()) {
    SCOPED_TRACE(kind.name);
    if (kind.name == "windows and capped scores") continue;
    const auto model = make_causal_model({.model = kind.options,
                                          .rows = 24,
                                          .num_ids = 21,
                                          .specials = stretto::testing::kSpecials,
                                          .seed = 3},
                                         {});
    model->eval();
    constexpr int64_t kSources = 3, kLanes = 2, kLayers = 2, kHeadWidth = 4;
    const int64_t kv_heads = kind.name == "Llama" ? 2 : 4;
    const auto bytes_of = [&](int64_t tokens) {
      const bool has_cache = kind.options.is<CausalTransformerOptions>();
      return has_cache ? kLayers * 2 * kv_heads * kHeadWidth * kSources * kLanes * tokens * 4 : 0;
    };
    const auto steps = model->start(kSources, kLanes);
    EXPECT_EQ(steps->most_cache_bytes(), 0);
    steps->prefill_packed(prompts_of_lengths({6, 1, 20}, 0, 3), kLanes);
    EXPECT_EQ(steps->most_cache_bytes(), bytes_of(32)) << "20 tokens, in blocks of 32";
    const at::Tensor tokens = at::full({kSources * kLanes}, 5, at::kLong);
    for (int64_t t = 20; t < 32; ++t) steps->step(tokens);
    EXPECT_EQ(steps->most_cache_bytes(), bytes_of(32));
    steps->step(tokens);
    EXPECT_EQ(steps->most_cache_bytes(), bytes_of(64));
    steps->reorder({0, 1});
    EXPECT_EQ(steps->most_cache_bytes(), bytes_of(64)) << "the most that there were";
  }
}

}  // namespace
}  // namespace stretto::models
