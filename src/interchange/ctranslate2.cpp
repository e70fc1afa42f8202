#include "interchange/ctranslate2.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/text.h"
#include "interchange/tensors.h"

namespace stretto::interchange {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie");

constexpr uint32_t kCTranslate2Version = 6;
/// Of include/ctranslate2/layers/attention.h.
constexpr int8_t kLinearRope = 0, kLlama3Rope = 2;

template <class Value>
std::string bytes_of_value(Value value) {
  std::string bytes(sizeof(Value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(Value));
  return bytes;
}

/// A string with its length, of which the 0 at its end is part.
std::string counted_string(const std::string& text) {
  return bytes_of_value(static_cast<uint16_t>(text.size() + 1)) + text + '\0';
}

/// Of include/ctranslate2/ops/activation.h; -1 where it has none.
int8_t ctranslate2_activation(const std::string& ours) {
  if (ours == "relu") return 0;
  if (ours == "gelu_tanh") return 1;
  if (ours == "silu" || ours == "swiglu") return 2;
  if (ours == "gelu" || ours == "geglu") return 3;
  return -1;
}

bool has_gate(const CTranslate2Layers& layers) {
  return layers.activation == "swiglu" || layers.activation == "geglu";
}

}  // namespace

std::string ctranslate2_layers_problem(const CTranslate2Layers& layers) {
  if (ctranslate2_activation(layers.activation) < 0) {
    return "model.activation = \"" + layers.activation + "\": it has no such function";
  }
  if (layers.reads_memory && layers.num_kv_heads > 0 && layers.num_kv_heads != layers.num_heads) {
    return "num_kv_heads = " + std::to_string(layers.num_kv_heads) +
           ": where it attends to an encoder, each of its heads has keys of its own";
  }
  if (layers.rope != nullptr && layers.rope->scaling == "yarn") {
    return "model.rope.scaling = \"yarn\": linear and llama3 are written";
  }
  return "";
}

CTranslate2Model::CTranslate2Model(std::string spec, uint32_t revision, StoredWeights weights,
                                   NamedTensors& tensors)
    : spec_(std::move(spec)), revision_(revision), weights_(weights), tensors_(tensors) {}

void CTranslate2Model::add_scalar(const std::string& name, Type type, std::string bytes) {
  variables_[name] = Variable{.type = type, .shape = {}, .bytes = [bytes] { return bytes; }};
}

void CTranslate2Model::add_flag(const std::string& name, bool value) {
  add_int8(name, value ? 1 : 0);
}

void CTranslate2Model::add_int8(const std::string& name, int8_t value) {
  add_scalar(name, Type::kInt8, bytes_of_value(value));
}

void CTranslate2Model::add_int16(const std::string& name, int16_t value) {
  add_scalar(name, Type::kInt16, bytes_of_value(value));
}

void CTranslate2Model::add_int32(const std::string& name, int32_t value) {
  add_scalar(name, Type::kInt32, bytes_of_value(value));
}

void CTranslate2Model::add_float(const std::string& name, float value) {
  add_scalar(name, Type::kFloat32, bytes_of_value(value));
}

void CTranslate2Model::add_tensor(const std::string& name, const store::TensorView& tensor) {
  const auto view = to_f32(tensor, converted_, "the checkpoint");
  variables_[name] = Variable{.type = Type::kFloat32,
                              .shape = view.shape,
                              .bytes = [bytes = view.bytes] { return std::string(bytes); }};
}

void CTranslate2Model::add_matrix(const std::string& name, const store::TensorView& tensor) {
  if (weights_ != StoredWeights::kInt8) return add_tensor(name, tensor);
  const auto view = to_f32(tensor, converted_, "the checkpoint");
  const int64_t rows = view.shape.at(0);
  variables_[name] = Variable{.type = Type::kInt8, .shape = view.shape, .bytes = [view, rows] {
                                const auto values = floats_of(view);
                                return int8_codes(values, int8_scales(values, rows));
                              }};
  variables_[name + "_scale"] =
      Variable{.type = Type::kFloat32, .shape = {rows}, .bytes = [view, rows] {
                 return bytes_of_floats(int8_scales(floats_of(view), rows));
               }};
}

void CTranslate2Model::add_alias(const std::string& name, const std::string& of) {
  aliases_[name] = of;
}

void CTranslate2Model::add_linear(const std::string& scope, const std::string& ours) {
  add_matrix(scope + "/weight", tensors_.take(ours + ".weight"));
  if (const auto* bias = tensors_.find(ours + ".bias")) add_tensor(scope + "/bias", *bias);
}

void CTranslate2Model::add_norm(const std::string& scope, const std::string& ours, bool rms_norm) {
  const auto& gain = tensors_.take(ours + ".weight");
  add_tensor(scope + "/gamma", gain);
  if (rms_norm) return;  // a norm without beta is one
  if (const auto* bias = tensors_.find(ours + ".bias")) return add_tensor(scope + "/beta", *bias);
  const size_t width = static_cast<size_t>(gain.num_elements());
  variables_[scope + "/beta"] =
      Variable{.type = Type::kFloat32, .shape = gain.shape, .bytes = [width] {
                 return std::string(width * sizeof(float), '\0');
               }};
}

void CTranslate2Model::add_attention(const CTranslate2Layers& layers, const std::string& scope,
                                     const std::string& ours) {
  add_linear(scope + "/linear_0", ours + ".qkv");
  add_linear(scope + "/linear_1", ours + ".out");
  if (layers.num_kv_heads > 0 && layers.num_kv_heads != layers.num_heads) {
    add_int32(scope + "/num_heads_kv", static_cast<int32_t>(layers.num_kv_heads));
  }
  if (layers.head_dim > 0) add_int32(scope + "/head_dim", static_cast<int32_t>(layers.head_dim));
  if (layers.qk_norm) {
    add_norm(scope + "/q_norm", ours + ".q_norm", /*rms_norm=*/true);
    add_norm(scope + "/k_norm", ours + ".k_norm", /*rms_norm=*/true);
  }
  if (layers.rope == nullptr) return;
  add_int32(scope + "/rotary_dim", 0);            // all columns of a head
  add_flag(scope + "/rotary_interleave", false);  // a pair is in the two halves of a head
  add_float(scope + "/rotary_base", static_cast<float>(layers.rope->base));
  add_rope_scaling(*layers.rope, scope);
}

void CTranslate2Model::add_rope_scaling(const nn::RotaryOptions& rope, const std::string& scope) {
  if (rope.scaling == "none") return;
  const bool is_linear = rope.scaling == "linear";
  add_int8(scope + "/rotary_scaling_type", is_linear ? kLinearRope : kLlama3Rope);
  add_float(scope + "/rotary_scaling_factor", static_cast<float>(rope.factor));
  if (is_linear) return;
  add_float(scope + "/rotary_low_freq_factor", static_cast<float>(rope.low_frequency_factor));
  add_float(scope + "/rotary_high_freq_factor", static_cast<float>(rope.high_frequency_factor));
  add_int32(scope + "/original_max_position_embeddings",
            static_cast<int32_t>(rope.original_positions));
}

void CTranslate2Model::add_ffn(const CTranslate2Layers& layers, const std::string& scope,
                               const std::string& ours) {
  if (has_gate(layers)) {
    const auto& up = tensors_.take(ours + ".up.weight");
    const int64_t inner = up.shape.at(0) / 2;  // the gate comes first
    add_matrix(scope + "/linear_0/weight", rows_of(up, 0, inner));
    add_matrix(scope + "/linear_0_noact/weight", rows_of(up, inner, inner));
  } else {
    add_linear(scope + "/linear_0", ours + ".up");
  }
  add_linear(scope + "/linear_1", ours + ".down");
}

void CTranslate2Model::add_layers(const CTranslate2Layers& layers) {
  const std::string& scope = layers.scope;
  add_int16(scope + "/num_heads", static_cast<int16_t>(layers.num_heads));
  add_flag(scope + "/pre_norm", layers.pre_norm);
  add_int8(scope + "/activation", ctranslate2_activation(layers.activation));
  add_flag(scope + "/scale_embeddings", layers.scales_embeddings);
  if (const auto* positions = tensors_.find(scope + ".positions.weight")) {
    add_tensor(scope + "/position_encodings/encodings", *positions);
  }
  for (int64_t i = 0; i < layers.num_layers; ++i) {
    const std::string their = scope + "/layer_" + std::to_string(i) + "/";
    const std::string ours = scope + ".layers." + std::to_string(i) + ".";
    add_attention(layers, their + "self_attention", ours + "self_attention");
    add_norm(their + "self_attention/layer_norm", ours + "self_residual.norm", layers.rms_norm);
    if (layers.reads_memory) {
      add_linear(their + "attention/linear_0", ours + "cross_attention.q");
      add_linear(their + "attention/linear_1", ours + "cross_attention.kv");
      add_linear(their + "attention/linear_2", ours + "cross_attention.out");
      add_norm(their + "attention/layer_norm", ours + "cross_residual.norm", layers.rms_norm);
    }
    add_ffn(layers, their + "ffn", ours + "ffn");
    add_norm(their + "ffn/layer_norm", ours + "ffn_residual.norm", layers.rms_norm);
  }
  if (layers.pre_norm) add_norm(scope + "/layer_norm", scope + ".final_norm", layers.rms_norm);
}

void CTranslate2Model::write(const std::filesystem::path& path) const {
  DurableFile file(path, "checkpoint");
  file.write(bytes_of_value(kCTranslate2Version) + counted_string(spec_) +
             bytes_of_value(revision_) + bytes_of_value(static_cast<uint32_t>(variables_.size())));
  for (const auto& [name, variable] : variables_) {
    const std::string bytes = variable.bytes();
    if (bytes.size() > std::numeric_limits<uint32_t>::max()) {
      throw Error(ExitCode::kUsage,
                  "`" + name + "` has 4 GiB or more: CTranslate2 has no such variables",
                  "give --weights int8");
    }
    std::string head = counted_string(name);
    head += bytes_of_value(static_cast<uint8_t>(variable.shape.size()));
    for (const int64_t size : variable.shape) head += bytes_of_value(static_cast<uint32_t>(size));
    head += bytes_of_value(static_cast<uint8_t>(variable.type));
    file.write(head + bytes_of_value(static_cast<uint32_t>(bytes.size())));
    file.write(bytes);
  }
  file.write(bytes_of_value(static_cast<uint32_t>(aliases_.size())));
  for (const auto& [name, of] : aliases_) file.write(counted_string(name) + counted_string(of));
  file.close();
}

std::string ctranslate2_vocabulary(const std::vector<std::string>& pieces) {
  std::set<std::string> seen;
  for (const auto& piece : pieces) {
    const bool is_new = seen.insert(piece).second;
    if (is_new && is_valid_utf8(piece)) continue;
    throw Error(ExitCode::kUsage,
                "the vocabulary has a piece `" + printable(piece) + "` " +
                    (is_new ? "that is not UTF-8" : "twice") +
                    ": CTranslate2 knows tokens by their text",
                "train with a vocabulary whose pieces differ and are UTF-8");
  }
  return nlohmann::json(pieces).dump(2) + "\n";
}

std::string ctranslate2_config(const nlohmann::json& config) {
  return config.dump(2) + "\n";
}

}  // namespace stretto::interchange
