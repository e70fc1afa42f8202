#include "families/language_model/folders/causal_class.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/base/failure.h"
#include "tests/families/language_model/folders/causal_config.h"

namespace stretto::interchange {
namespace {

using models::CausalTransformerOptions;
using stretto::testing::failure;
using stretto::testing::gpt2_config;
using stretto::testing::llama_config;

CausalDescription read_causal(const nlohmann::json& config) {
  return read_causal_config(config.dump(), "config.json");
}

nlohmann::json changed_causal(nlohmann::json config, const char* key, const nlohmann::json& value) {
  config[key] = value;
  return config;
}

void expect_causal_refused(const nlohmann::json& config, const std::string& reason) {
  const auto error = failure(ExitCode::kBadData, [&] { read_causal(config); });
  EXPECT_NE(error.message().find(reason), std::string::npos) << error.message();
}

const NamePair* name_pair_of(const std::vector<NamePair>& names, const std::string& ours) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const NamePair& pair) { return pair.ours == ours; });
  return found == names.end() ? nullptr : &*found;
}

TEST(CausalClass, Gpt2IsTheFormOfTheDefaults) {
  const auto found = read_causal(gpt2_config());
  EXPECT_EQ(found.its, &kGpt2);
  EXPECT_EQ(found.vocab_size, 12);
  const auto sizes = models::sizes_of(found.model);
  EXPECT_EQ(sizes.num_layers, 2);
  EXPECT_EQ(sizes.d_model, 8);
  EXPECT_EQ(sizes.num_heads, 2);
  EXPECT_EQ(sizes.ffn_dim, 32);
  EXPECT_EQ(found.model.max_positions, 16);
  EXPECT_EQ(found.model.activation, "gelu_tanh");
  EXPECT_EQ(found.model.positions, "learned");
  EXPECT_EQ(found.model.norm_epsilon, 1e-5);
  EXPECT_TRUE(found.model.tie_embeddings);
}

TEST(CausalClass, Gpt2sMapsAreTransposed) {
  const auto names = causal_names(read_causal(gpt2_config()));
  const auto* qkv = name_pair_of(names, "decoder.layers.1.self_attention.qkv.weight");
  ASSERT_NE(qkv, nullptr);
  EXPECT_EQ(qkv->theirs, std::vector<std::string>{"transformer.h.1.attn.c_attn.weight"});
  EXPECT_TRUE(qkv->transposed);
  EXPECT_FALSE(name_pair_of(names, "decoder.layers.1.self_attention.qkv.bias")->transposed);
  EXPECT_FALSE(name_pair_of(names, "decoder.embedding.weight")->transposed);
  EXPECT_EQ(name_pair_of(names, "output.weight"), nullptr);
  const auto bare = causal_names(read_causal(gpt2_config()), /*has_prefix=*/false);
  EXPECT_EQ(name_pair_of(bare, "decoder.final_norm.bias")->theirs,
            std::vector<std::string>{"ln_f.bias"});
}

TEST(CausalClass, ATiedOutputRepeatsTheTable) {
  EXPECT_EQ(causal_copies(read_causal(gpt2_config())),
            (std::vector<NamePair>{{{"lm_head.weight"}, "decoder.embedding.weight"}}));
  const auto own = read_causal(changed_causal(gpt2_config(), "tie_word_embeddings", false));
  EXPECT_TRUE(causal_copies(own).empty());
  EXPECT_EQ(name_pair_of(causal_names(own), "output.weight")->theirs,
            std::vector<std::string>{"lm_head.weight"});
}

TEST(CausalClass, LlamaSharesKeysAndHasNoBiases) {
  auto config = llama_config();
  config["rms_norm_eps"] = 1e-5;
  config["rope_theta"] = 500000.0;
  const auto found = read_causal(config);
  EXPECT_EQ(found.its, &kLlama);
  EXPECT_EQ(found.model.num_kv_heads, 1);
  EXPECT_EQ(found.model.head_dim, 0) << "an equal part of the width";
  EXPECT_EQ(found.model.activation, "swiglu");
  EXPECT_EQ(found.model.norm_layer, "rms_norm");
  EXPECT_EQ(found.model.biases, "none");
  EXPECT_EQ(found.model.rope.base, 500000);
  EXPECT_FALSE(found.model.tie_embeddings);
  const auto names = causal_names(found);
  EXPECT_EQ(name_pair_of(names, "decoder.layers.0.self_attention.qkv.weight")->theirs,
            (std::vector<std::string>{"model.layers.0.self_attn.q_proj.weight",
                                      "model.layers.0.self_attn.k_proj.weight",
                                      "model.layers.0.self_attn.v_proj.weight"}));
  EXPECT_EQ(name_pair_of(names, "decoder.layers.0.ffn.up.weight")->theirs,
            (std::vector<std::string>{"model.layers.0.mlp.gate_proj.weight",
                                      "model.layers.0.mlp.up_proj.weight"}))
      << "the gate comes first";
  EXPECT_EQ(name_pair_of(names, "decoder.layers.0.self_attention.qkv.bias"), nullptr);
}

TEST(CausalClass, OtherClassesOfLlamasFormDifferByOptions) {
  const auto mistral = read_causal(
      changed_causal(llama_config("mistral", "MistralForCausalLM"), "sliding_window", 8));
  EXPECT_EQ(mistral.model.sliding_window, 8);
  const auto qwen2 = read_causal(llama_config("qwen2", "Qwen2ForCausalLM"));
  EXPECT_EQ(qwen2.model.biases, "qkv");
  EXPECT_EQ(qwen2.model.sliding_window, 0);
  EXPECT_NE(name_pair_of(causal_names(qwen2), "decoder.layers.1.self_attention.qkv.bias"), nullptr);
  EXPECT_EQ(name_pair_of(causal_names(qwen2), "decoder.layers.1.self_attention.out.bias"), nullptr);
  auto wide = llama_config("qwen3", "Qwen3ForCausalLM");
  wide["head_dim"] = 6;
  const auto qwen3 = read_causal(wide);
  EXPECT_TRUE(qwen3.model.qk_norm);
  EXPECT_EQ(qwen3.model.head_dim, 6);
  wide.erase("head_dim");
  EXPECT_EQ(read_causal(wide).model.head_dim, 128) << "its own default";
}

TEST(CausalClass, WindowsOfSomeLayersAreEveryLayerButTheNth) {
  auto config = llama_config("qwen2", "Qwen2ForCausalLM");
  config["use_sliding_window"] = true;
  config["sliding_window"] = 8;
  config["max_window_layers"] = 2;
  EXPECT_EQ(read_causal(config).model.sliding_window, 0) << "no layer has it";
  config["max_window_layers"] = 0;
  EXPECT_EQ(read_causal(config).model.sliding_window, 8);
  EXPECT_EQ(read_causal(config).model.full_attention_every, 0);
  config["layer_types"] = {"sliding_attention", "full_attention"};
  EXPECT_EQ(read_causal(config).model.full_attention_every, 2);
  config["layer_types"] = {"full_attention", "sliding_attention"};
  expect_causal_refused(config, "`layer_types` gives some layers a window");
  config["layer_types"] = {"full_attention"};
  expect_causal_refused(config, "`layer_types` is no list with a word for each of 2 layers");
  auto mistral = llama_config("mistral", "MistralForCausalLM");
  mistral["sliding_window"] = 8;
  mistral["layer_types"] = {"sliding_attention", "full_attention"};
  expect_causal_refused(mistral, "in this class all have one");
  config.erase("layer_types");
  config["max_window_layers"] = 1;
  expect_causal_refused(config, "`max_window_layers` gives some layers a window");
}

TEST(CausalClass, ScaledAnglesAreReadAndOthersRefused) {
  const auto scaled = [](const nlohmann::json& scaling) {
    return changed_causal(llama_config(), "rope_scaling", scaling);
  };
  const auto linear = read_causal(scaled({{"type", "linear"}, {"factor", 2.0}})).model.rope;
  EXPECT_EQ(linear.scaling, "linear");
  EXPECT_EQ(linear.factor, 2);
  const auto llama3 = read_causal(scaled({{"rope_type", "llama3"},
                                          {"factor", 8.0},
                                          {"low_freq_factor", 1.0},
                                          {"high_freq_factor", 4.0},
                                          {"original_max_position_embeddings", 8192}}))
                          .model.rope;
  EXPECT_EQ(llama3.scaling, "llama3");
  EXPECT_EQ(llama3.original_positions, 8192);
  const auto yarn = read_causal(scaled({{"rope_type", "yarn"}, {"factor", 4.0}})).model.rope;
  EXPECT_EQ(yarn.original_positions, 32) << "max_position_embeddings";
  const auto of_deepseek =
      scaled({{"rope_type", "yarn"}, {"factor", 40.0}, {"mscale", 0.5}, {"mscale_all_dim", 1.0}});
  EXPECT_NEAR(read_causal(of_deepseek).model.rope.attention_factor,
              (0.05 * std::log(40.0) + 1) / (0.1 * std::log(40.0) + 1), 1e-12);
  EXPECT_EQ(read_causal(scaled({{"rope_type", "default"}})).model.rope.scaling, "none");
  expect_causal_refused(scaled({{"rope_type", "dynamic"}, {"factor", 2.0}}),
                        "`rope_scaling`: `rope_type` is `dynamic`");
  expect_causal_refused(scaled({{"type", "longrope"}}), "`type` is `longrope`");
  expect_causal_refused(scaled({{"rope_type", "linear"}}), "`factor` is missing");
  expect_causal_refused(scaled("linear"), "`rope_scaling` is no JSON object");
  const auto of_5 =
      changed_causal(llama_config(), "rope_parameters",
                     {{"rope_type", "linear"}, {"factor", 3.0}, {"rope_theta", 20000.0}});
  EXPECT_EQ(read_causal(of_5).model.rope.base, 20000);
  EXPECT_EQ(read_causal(of_5).model.rope.factor, 3);
  expect_causal_refused(changed_causal(llama_config(), "partial_rotary_factor", 0.5),
                        "partial_rotary_factor");
}

TEST(CausalClass, WhatAModelHereCannotBeEqualToIsRefused) {
  expect_causal_refused(changed_causal(gpt2_config(), "model_type", "gptj"),
                        "`model_type` is `gptj`");
  expect_causal_refused(changed_causal(gpt2_config(), "architectures", {"GPT2Model"}),
                        "`architectures` has `GPT2Model`");
  expect_causal_refused(changed_causal(gpt2_config(), "scale_attn_weights", false),
                        "scale_attn_weights");
  expect_causal_refused(changed_causal(gpt2_config(), "add_cross_attention", true),
                        "add_cross_attention");
  expect_causal_refused(changed_causal(gpt2_config(), "activation_function", "tanh"), "`tanh`");
  expect_causal_refused(changed_causal(gpt2_config(), "n_head", 3), "`n_head` is 3");
  expect_causal_refused(changed_causal(llama_config(), "mlp_bias", true), "mlp_bias");
  expect_causal_refused(changed_causal(llama_config(), "hidden_act", "relu"), "`relu`");
  expect_causal_refused(changed_causal(llama_config(), "num_key_value_heads", 3),
                        "`num_key_value_heads` is 3");
  expect_causal_refused(changed_causal(llama_config(), "head_dim", 3), "`head_dim` is 3");
}

TEST(CausalClass, AMissingTypeIsNamedWithWhatToAdd) {
  auto config = llama_config();
  config.erase("model_type");
  const auto error = failure(ExitCode::kBadData, [&] { read_causal(config); });
  EXPECT_NE(error.message().find("`model_type` is missing"), std::string::npos);
  EXPECT_NE(error.advice().find("add the type of the model to config.json"), std::string::npos);
  EXPECT_NE(error.advice().find("qwen3"), std::string::npos);
}

TEST(CausalClass, WhatIsReadIsWrittenAndReadsTheSame) {
  auto windowed = llama_config("qwen3", "Qwen3ForCausalLM");
  windowed["use_sliding_window"] = true;
  windowed["sliding_window"] = 4;
  windowed["layer_types"] = {"sliding_attention", "full_attention"};
  auto scaled = changed_causal(
      llama_config(), "rope_scaling",
      {{"rope_type", "yarn"}, {"factor", 4.0}, {"attention_factor", 1.5}, {"beta_fast", 16.0}});
  for (const auto& config :
       {gpt2_config(), llama_config(), scaled, windowed,
        llama_config("mistral", "MistralForCausalLM"), llama_config("qwen2", "Qwen2ForCausalLM")}) {
    const auto found = read_causal(config);
    EXPECT_EQ(causal_incompatibility(*found.its, found.model), "");
    const std::string text = write_causal_config(found, {.pad = -1, .bos = 1, .eos = 2});
    const auto again = read_causal_config(text, "again");
    EXPECT_EQ(write_causal_config(again, {.pad = -1, .bos = 1, .eos = 2}), text);
    EXPECT_EQ(again.model.rope, found.model.rope);
    EXPECT_EQ(causal_names(again), causal_names(found));
    const auto json = nlohmann::json::parse(text);
    EXPECT_EQ(json["bos_token_id"], 1);
    EXPECT_FALSE(json.contains("pad_token_id"));
  }
}

TEST(CausalClass, AModelIsWrittenAsTheFirstClassThatIsEqual) {
  const auto type_of = [](const std::function<void(CausalTransformerOptions&)>& change) {
    CausalTransformerOptions model = read_causal(llama_config()).model;
    change(model);
    return choose_causal_class(model, "auto").model_type;
  };
  EXPECT_EQ(choose_causal_class({}, "auto").model_type, "gpt2");
  EXPECT_EQ(type_of([](auto&) {}), "llama");
  EXPECT_EQ(type_of([](auto& model) { model.sliding_window = 8; }), "mistral");
  EXPECT_EQ(type_of([](auto& model) { model.biases = "qkv"; }), "qwen2");
  EXPECT_EQ(type_of([](auto& model) { model.qk_norm = true; }), "qwen3");
  const auto refused = [](const std::function<void(CausalTransformerOptions&)>& change,
                          const std::string& wanted = "auto") {
    CausalTransformerOptions model;
    change(model);
    return failure(ExitCode::kUsage, [&] { choose_causal_class(model, wanted); }).message();
  };
  EXPECT_NE(refused([](auto& model) { model.norm = "post"; }).find("model.norm = \"post\""),
            std::string::npos);
  EXPECT_NE(refused([](auto& model) { model.logit_softcap = 30; }).find("model.logit_softcap"),
            std::string::npos);
  EXPECT_NE(refused([](auto& model) { model.output_bias = true; }).find("model.output_bias"),
            std::string::npos);
  EXPECT_NE(refused([](auto& model) {
              model.adaptive_softmax.cutoffs = {100};
            }).find("model.adaptive_softmax"),
            std::string::npos);
  const auto of_llama = refused([](auto&) {}, "llama");
  EXPECT_NE(of_llama.find("LlamaForCausalLM: model.positions"), std::string::npos) << of_llama;
  EXPECT_EQ(of_llama.find("GPT2LMHeadModel"), std::string::npos) << of_llama;
}

}  // namespace
}  // namespace stretto::interchange
