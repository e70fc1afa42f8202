// Llama's form in the file of llama.cpp (docs/gguf.md of ggml, and the names of its gguf-py).
#include "families/language_model/folders/gguf_causal.h"

#include <cmath>
#include <cstdint>
#include <deque>
#include <numbers>
#include <utility>
#include <vector>

#include "base/error.h"
#include "families/language_model/folders/causal_class.h"
#include "families/language_model/folders/gguf_tokenizer.h"
#include "interchange/folder_tensors.h"
#include "interchange/incompatibility.h"
#include "interchange/tensors.h"
#include "store/gguf_file.h"

namespace stretto::interchange {
namespace {

using models::CausalTransformerOptions;

std::string gguf_form_problem(const CausalTransformerOptions& model) {
  if (model.adapter.is_on()) return adapter_incompatibility(model.adapter);
  if (model.norm != "pre") {
    return "model.norm = \"" + model.norm + "\": its norms stand in front of parts";
  }
  if (model.norm_layer != "rms_norm") {
    return "model.norm_layer = \"" + model.norm_layer + "\": it has rms_norm";
  }
  if (model.positions != "rotary") {
    return "model.positions = \"" + model.positions + "\": its positions are rotary";
  }
  if (model.activation != "swiglu") {
    return "model.activation = \"" + model.activation + "\": its feed-forward parts have swiglu";
  }
  if (model.parallel_residual) return "model.parallel_residual = true: its parts follow each other";
  if (model.rope.scaling == "yarn") {
    return "model.rope.scaling = \"yarn\": linear and llama3 are written";
  }
  if (model.rope.scaling == "llama3" && gguf_architecture(model) != "llama") {
    return "model.rope.scaling = \"llama3\": beside norms over heads, or biases = \"qkv\", angles "
           "are "
           "not divided so";
  }
  return "";
}

std::string gguf_output_problem(const CausalTransformerOptions& model) {
  if (model.sliding_window > 0) return "model.sliding_window: it attends to all earlier tokens";
  if (auto incompatibility = incompatibility_of_output(model); !incompatibility.empty()) {
    return incompatibility;
  }
  if (model.qk_norm && model.biases != "none") {
    return "model.qk_norm = true with biases: with norms over heads its maps have none";
  }
  return "";
}

store::GgufType gguf_type_of(StoredWeights weights) {
  if (weights == StoredWeights::kInt8) return store::GgufType::kQ8_0;
  return weights == StoredWeights::kFloat16 ? store::GgufType::kF16 : store::GgufType::kF32;
}

/// Sizes that a model leaves to its other keys are given here.
struct GgufHeads {
  int64_t queries = 0, keys = 0, width = 0;
};

GgufHeads gguf_heads(const CausalTransformerOptions& model) {
  const auto sizes = models::sizes_of(model);
  return {.queries = sizes.num_heads,
          .keys = model.num_kv_heads > 0 ? model.num_kv_heads : sizes.num_heads,
          .width = model.head_dim > 0 ? model.head_dim : sizes.d_model / sizes.num_heads};
}

/// Here the columns i and i + W / 2 of a head are a pair that positions turn; in the architecture
/// `llama` the columns 2 i and 2 i + 1. Rows of a map, or numbers of its bias, in that order.
std::vector<float> with_neighbouring_pairs(const std::vector<float>& values, int64_t heads,
                                           int64_t width) {
  const auto rows = static_cast<size_t>(heads * width);
  const size_t columns = values.size() / rows, half = static_cast<size_t>(width) / 2;
  std::vector<float> out(values.size());
  for (size_t row = 0; row < rows; ++row) {
    const size_t head = row / static_cast<size_t>(width), place = row % static_cast<size_t>(width);
    const size_t from = head * static_cast<size_t>(width) + (place % 2) * half + place / 2;
    for (size_t i = 0; i < columns; ++i) out[row * columns + i] = values[from * columns + i];
  }
  return out;
}

/// By what the angles of a pair are divided (Llama 3.1; nn/rotary.h), [W / 2].
std::vector<float> llama3_divisors(const nn::RotaryOptions& rope, int64_t width) {
  std::vector<float> divisors;
  const auto original = static_cast<double>(rope.original_positions);
  for (int64_t i = 0; i < width / 2; ++i) {
    const double frequency =
        std::pow(rope.base, -2.0 * static_cast<double>(i) / static_cast<double>(width));
    const double turns = original * frequency / (2 * std::numbers::pi);
    double divisor = 1;
    if (turns < rope.low_frequency_factor) {
      divisor = rope.factor;
    } else if (turns <= rope.high_frequency_factor) {
      const double share = (turns - rope.low_frequency_factor) /
                           (rope.high_frequency_factor - rope.low_frequency_factor);
      divisor = 1 / ((1 - share) / rope.factor + share);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

/// Writes the tensors of a model under llama.cpp's names.
class GgufTensors {
 public:
  GgufTensors(const CausalTransformerOptions& model, StoredWeights weights, NamedTensors& tensors,
              store::GgufFile& file)
      : heads_(gguf_heads(model)),
        turns_pairs_(gguf_architecture(model) == "llama"),
        type_(gguf_type_of(weights)),
        tensors_(tensors),
        file_(file) {}

  void add(const std::string& theirs, const std::string& ours) {
    put(theirs, f32(tensors_.take(ours)), /*heads=*/0);
  }

  void add_layer(int64_t layer) {
    const std::string their = "blk." + std::to_string(layer) + ".";
    const std::string ours = "decoder.layers." + std::to_string(layer) + ".";
    add(their + "attn_norm.weight", ours + "self_residual.norm.weight");
    add_queries(their, ours + "self_attention.qkv.weight", ".weight");
    if (has(ours + "self_attention.qkv.bias")) {
      add_queries(their, ours + "self_attention.qkv.bias", ".bias");
    }
    add(their + "attn_output.weight", ours + "self_attention.out.weight");
    if (has(ours + "self_attention.out.bias")) {
      add(their + "attn_output.bias", ours + "self_attention.out.bias");
    }
    if (has(ours + "self_attention.q_norm.weight")) {
      add(their + "attn_q_norm.weight", ours + "self_attention.q_norm.weight");
      add(their + "attn_k_norm.weight", ours + "self_attention.k_norm.weight");
    }
    add(their + "ffn_norm.weight", ours + "ffn_residual.norm.weight");
    const auto up = f32(tensors_.take(ours + "ffn.up.weight"));
    const int64_t inner = up.shape.at(0) / 2;  // the gate comes first
    put(their + "ffn_gate.weight", rows_of(up, 0, inner), /*heads=*/0);
    put(their + "ffn_up.weight", rows_of(up, inner, inner), /*heads=*/0);
    add(their + "ffn_down.weight", ours + "ffn.down.weight");
  }

 private:
  bool has(const std::string& name) { return tensors_.find(name) != nullptr; }
  store::TensorView f32(const store::TensorView& tensor) {
    return to_f32(tensor, converted_, "the checkpoint");
  }

  void add_queries(const std::string& their, const std::string& ours, const std::string& ending) {
    const auto all = f32(tensors_.take(ours));
    const int64_t queries = heads_.queries * heads_.width, keys = heads_.keys * heads_.width;
    put(their + "attn_q" + ending, rows_of(all, 0, queries), heads_.queries);
    put(their + "attn_k" + ending, rows_of(all, queries, keys), heads_.keys);
    put(their + "attn_v" + ending, rows_of(all, queries + keys, keys), /*heads=*/0);
  }

  /// @param heads  whose rows positions turn in pairs; 0 = none
  void put(const std::string& name, const store::TensorView& view, int64_t heads) {
    const auto type = view.shape.size() > 1 ? type_ : store::GgufType::kF32;
    if (type == store::GgufType::kQ8_0 && view.shape.back() % store::kQ8Block != 0) {
      throw Error(ExitCode::kUsage,
                  "--weights int8: blocks of 32 do not divide the " +
                      std::to_string(view.shape.back()) + " columns of " + name,
                  "give --weights float16, or train with widths that are multiples of 32");
    }
    const int64_t turned = turns_pairs_ ? heads : 0;
    file_.add_tensor(name, type, view.shape, [view, type, turned, width = heads_.width] {
      auto values = floats_of(view);
      if (turned > 0) values = with_neighbouring_pairs(values, turned, width);
      return store::gguf_values(type, values);
    });
  }

  GgufHeads heads_;
  bool turns_pairs_;
  store::GgufType type_;
  NamedTensors& tensors_;
  store::GgufFile& file_;
  std::deque<std::string> converted_;  // bytes of tensors that were not F32
};

void add_gguf_rope(const CausalTransformerOptions& model, const std::string& prefix,
                   store::GgufFile& file) {
  file.set_u32(prefix + "rope.dimension_count", static_cast<uint32_t>(gguf_heads(model).width));
  file.set_f32(prefix + "rope.freq_base", static_cast<float>(model.rope.base));
  if (model.rope.scaling != "linear") return;
  file.set_string(prefix + "rope.scaling.type", "linear");
  file.set_f32(prefix + "rope.scaling.factor", static_cast<float>(model.rope.factor));
}

void add_gguf_keys(const ExportedCausal& exported, StoredWeights weights, store::GgufFile& file) {
  constexpr uint32_t kAllF32 = 0, kMostlyF16 = 1, kMostlyQ8 = 7, kQuantisationVersion = 2;
  const auto& model = exported.description.model;
  const auto sizes = models::sizes_of(model);
  const GgufHeads heads = gguf_heads(model);
  const std::string architecture(gguf_architecture(model)), prefix = architecture + ".";
  const auto count = [&](const std::string& key, int64_t value) {
    file.set_u32(prefix + key, static_cast<uint32_t>(value));
  };
  file.set_string("general.architecture", architecture);
  file.set_string("general.name", "stretto");
  const bool is_int8 = weights == StoredWeights::kInt8;
  if (is_int8) file.set_u32("general.quantization_version", kQuantisationVersion);
  const uint32_t other = weights == StoredWeights::kFloat16 ? kMostlyF16 : kAllF32;
  file.set_u32("general.file_type", is_int8 ? kMostlyQ8 : other);
  count("vocab_size", exported.description.vocab_size);
  count("context_length", model.max_positions);
  count("embedding_length", sizes.d_model);
  count("block_count", sizes.num_layers);
  count("feed_forward_length", sizes.ffn_dim);
  count("attention.head_count", heads.queries);
  count("attention.head_count_kv", heads.keys);
  count("attention.key_length", heads.width);
  count("attention.value_length", heads.width);
  file.set_f32(prefix + "attention.layer_norm_rms_epsilon", static_cast<float>(model.norm_epsilon));
  add_gguf_rope(model, prefix, file);
}

void require_gguf(const ExportedCausal& model) {
  require_expressed("no architecture of GGUF is equal to this model",
                    gguf_incompatibility(model.description.model));
  if (const auto problem = gguf_tokenizer_problem(model.tokenizer); !problem.empty()) {
    throw Error(ExitCode::kUsage, "GGUF cannot express the run's tokenizer: " + problem,
                "--format hf writes it");
  }
}

}  // namespace

std::string gguf_incompatibility(const CausalTransformerOptions& model) {
  auto problem = gguf_form_problem(model);
  return problem.empty() ? gguf_output_problem(model) : problem;
}

std::string_view gguf_architecture(const CausalTransformerOptions& model) {
  if (model.qk_norm) return "qwen3";
  return model.biases == "qkv" ? "qwen2" : "llama";
}

void export_gguf_causal(const ExportedCausal& model, StoredWeights weights,
                        const std::filesystem::path& path) {
  require_gguf(model);
  const auto& options = model.description.model;
  NamedTensors tensors(
      without_spare_rows(model.tensors, model.description.vocab_size, &is_causal_table));
  store::GgufFile file;
  add_gguf_keys(model, weights, file);
  add_gguf_tokenizer(model.tokenizer, model.end_tokens.empty() ? "" : model.end_tokens.front(),
                     file);
  GgufTensors writer(options, weights, tensors, file);
  writer.add("token_embd.weight", "decoder.embedding.weight");
  if (options.rope.scaling == "llama3") {
    const auto divisors = llama3_divisors(options.rope, gguf_heads(options).width);
    file.add_tensor("rope_freqs.weight", store::GgufType::kF32,
                    {static_cast<int64_t>(divisors.size())},
                    [divisors] { return bytes_of_floats(divisors); });
  }
  for (int64_t i = 0; i < models::sizes_of(options).num_layers; ++i) writer.add_layer(i);
  writer.add("output_norm.weight", "decoder.final_norm.weight");
  if (!options.tie_embeddings) writer.add("output.weight", "output.weight");
  tensors.require_all_taken("GGUF");
  file.write(path);
}

}  // namespace stretto::interchange
