#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "interchange/stored_weights.h"
#include "nn/rotary_options.h"
#include "store/safetensors.h"

/// Model folders of CTranslate2 (https://github.com/OpenNMT/CTranslate2): `model.bin`, its
/// variables by name; `config.json`, special tokens and the epsilon of norms; vocabularies as lists
/// in JSON. The layouts are those that its converters write (python/ctranslate2/specs).
namespace stretto::interchange {

/// One stack of Transformer layers, as both sides name it.
struct CTranslate2Layers {
  std::string scope;  ///< "encoder" or "decoder": of theirs, and of ours
  int64_t num_layers = 0, num_heads = 0;
  int64_t num_kv_heads = 0;  ///< 0 = num_heads
  int64_t head_dim = 0;      ///< 0 = equal parts of the width
  bool pre_norm = false, rms_norm = false;
  std::string activation;                   ///< ours; "swiglu" and "geglu" have a gate
  bool reads_memory = false;                ///< a decoder that attends to an encoder
  bool scales_embeddings = false;           ///< by the root of the width
  const nn::RotaryOptions* rope = nullptr;  ///< null: positions are added, where there are any
  bool qk_norm = false;
};

/// Why there are no such layers; empty when there are. What they do not say, such as the kind of
/// positions, is for the caller to look at.
std::string ctranslate2_layers_problem(const CTranslate2Layers& layers);

/// `model.bin`, made of tensors that are read when it is written.
///
///     uint32 version, string specification, uint32 revision
///     uint32 count, then a variable: string name, uint8 rank, uint32 sizes [rank], uint8 type,
///                   uint32 bytes, and these
///     uint32 count, then an alias: string name, string of a variable
///
/// A string is a uint16 length with the 0 at its end, its bytes, and the 0. Variables are in the
/// order of their names. Matrices of int8 have for each row a scale 127 / max |w|, which the
/// weights were multiplied by: NAME_scale [rows].
class CTranslate2Model {
 public:
  /// @param spec  "TransformerSpec", "TransformerDecoderSpec"
  /// @param tensors  of ours; F16, BF16 and F64 become F32
  CTranslate2Model(std::string spec, uint32_t revision, StoredWeights weights,
                   NamedTensors& tensors);

  void add_flag(const std::string& name, bool value);
  void add_int8(const std::string& name, int8_t value);
  void add_int16(const std::string& name, int16_t value);
  void add_int32(const std::string& name, int32_t value);
  void add_float(const std::string& name, float value);
  /// A vector, or a table that is always fp32.
  void add_tensor(const std::string& name, const store::TensorView& tensor);
  /// A matrix [out, in], stored as the weights are.
  void add_matrix(const std::string& name, const store::TensorView& tensor);
  /// @param of  the name of a variable
  void add_alias(const std::string& name, const std::string& of);

  /// SCOPE/weight and, where there is one, SCOPE/bias from OURS.weight and OURS.bias.
  void add_linear(const std::string& scope, const std::string& ours);
  /// SCOPE/gamma and, unless it is a root mean square norm, SCOPE/beta.
  void add_norm(const std::string& scope, const std::string& ours, bool rms_norm);
  /// All of a stack but its tables of tokens. Positions are added where SCOPE.positions.weight is
  /// among the tensors. Throws Error(kBadData) for a missing tensor.
  void add_layers(const CTranslate2Layers& layers);

  /// Throws Error(kUsage) for a tensor of 4 GiB and more, Error(kIo).
  void write(const std::filesystem::path& path) const;

 private:
  enum class Type : uint8_t { kFloat32 = 0, kInt8 = 1, kInt16 = 2, kInt32 = 3 };
  struct Variable {
    Type type = Type::kFloat32;
    std::vector<int64_t> shape;
    std::function<std::string()> bytes;
  };

  void add_scalar(const std::string& name, Type type, std::string bytes);
  void add_attention(const CTranslate2Layers& layers, const std::string& scope,
                     const std::string& ours);
  void add_rope_scaling(const nn::RotaryOptions& rope, const std::string& scope);
  void add_ffn(const CTranslate2Layers& layers, const std::string& scope, const std::string& ours);

  std::string spec_;
  uint32_t revision_;
  StoredWeights weights_;
  NamedTensors& tensors_;
  std::deque<std::string> converted_;  // bytes of tensors that were not F32
  std::map<std::string, Variable> variables_;
  std::map<std::string, std::string> aliases_;
};

/// The pieces of a vocabulary, one for each id, as JSON. Throws Error(kUsage) for two ids of one
/// piece, and for a piece that is not UTF-8: CTranslate2 knows tokens by their text alone.
std::string ctranslate2_vocabulary(const std::vector<std::string>& pieces);

/// config.json of these keys, sorted.
std::string ctranslate2_config(const nlohmann::json& config);

}  // namespace stretto::interchange
