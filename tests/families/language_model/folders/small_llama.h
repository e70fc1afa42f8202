#pragma once

#include <deque>
#include <string>
#include <vector>

#include "families/language_model/folders/export_causal.h"
#include "interchange/stored_weights.h"
#include "tests/text/llama_spec.h"

namespace stretto::testing {

/// A language model of Llama's form to be written: 1 layer, D = 8, 2 heads of 4 columns that share
/// one of keys, a feed-forward part of 6, 12 ids. Each weight is a number of its own.
class SmallLlama {
 public:
  SmallLlama() {
    auto& options = model.description.model;
    options.preset = "none";
    options.num_layers = 1;
    options.d_model = 8;
    options.num_heads = 2;
    options.num_kv_heads = 1;
    options.ffn_dim = 6;
    options.norm_layer = "rms_norm";
    options.activation = "swiglu";
    options.biases = "none";
    options.positions = "rotary";
    options.max_positions = 32;
    model.description.vocab_size = 12;
    model.tokenizer = llama_spec();
    add("decoder.embedding.weight", {12, 8});
    add("decoder.final_norm.weight", {8});
    add("decoder.layers.0.self_residual.norm.weight", {8});
    add("decoder.layers.0.self_attention.qkv.weight", {16, 8});
    add("decoder.layers.0.self_attention.out.weight", {8, 8});
    add("decoder.layers.0.ffn_residual.norm.weight", {8});
    add("decoder.layers.0.ffn.up.weight", {12, 8});
    add("decoder.layers.0.ffn.down.weight", {8, 6});
  }

  void add(const std::string& name, const std::vector<int64_t>& shape) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(next_++));
    bytes_.push_back(interchange::bytes_of_floats(values));
    model.tensors.push_back({name, store::DType::kF32, shape, bytes_.back()});
  }

  std::vector<float> values_of(const std::string& name) const {
    for (const auto& tensor : model.tensors) {
      if (tensor.name == name) return interchange::floats_of(tensor);
    }
    return {};
  }

  interchange::ExportedCausal model;

 private:
  std::deque<std::string> bytes_;
  int next_ = 0;
};

}  // namespace stretto::testing
