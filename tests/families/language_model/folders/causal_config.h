#pragma once

#include <nlohmann/json.hpp>
#include <string>

/// config.json of small language models: 2 layers, D = 8, 2 heads, a vocabulary of 12.
namespace stretto::testing {

inline nlohmann::json gpt2_config() {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", 12},
          {"n_embd", 8},
          {"n_layer", 2},
          {"n_head", 2},
          {"n_positions", 16},
          {"bos_token_id", 0},
          {"eos_token_id", 0}};
}

/// @param type  "llama", "mistral", "qwen2" or "qwen3"
inline nlohmann::json llama_config(const std::string& type, const std::string& name) {
  return {{"architectures", {name}},
          {"model_type", type},
          {"vocab_size", 12},
          {"hidden_size", 8},
          {"intermediate_size", 16},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"max_position_embeddings", 32},
          {"head_dim", 4},
          {"sliding_window", nullptr}};
}
inline nlohmann::json llama_config() {
  return llama_config("llama", "LlamaForCausalLM");
}

}  // namespace stretto::testing
