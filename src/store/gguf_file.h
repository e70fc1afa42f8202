#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::store {

/// Types of tensors in a GGUF file, with ggml's numbers.
enum class GgufType : uint32_t { kF32 = 0, kF16 = 1, kQ8_0 = 8 };

/// Weights of a block of Q8_0, which is fp16 d and as many int8 q: w = d q.
inline constexpr int64_t kQ8Block = 32;

/// Bytes of so many elements; of Q8_0 a multiple of kQ8Block.
uint64_t gguf_bytes(GgufType type, uint64_t elements);

/// fp32 values as a type has them: F16 to nearest, ties to even; Q8_0 with d = max |w| / 127, and
/// to nearest, ties away from zero.
/// Throws std::invalid_argument for values that do not fill the blocks of Q8_0.
std::string gguf_values(GgufType type, const std::vector<float>& values);

/// A GGUF file (https://github.com/ggml-org/ggml, docs/gguf.md), version 3, little-endian: metadata
/// by key, then tensors, each at a multiple of 32 bytes.
class GgufFile {
 public:
  void set_string(std::string_view key, std::string_view value);
  void set_u32(std::string_view key, uint32_t value);
  void set_f32(std::string_view key, float value);
  void set_bool(std::string_view key, bool value);
  void set_strings(std::string_view key, const std::vector<std::string>& values);
  void set_i32s(std::string_view key, const std::vector<int32_t>& values);
  void set_f32s(std::string_view key, const std::vector<float>& values);

  /// @param name   at most 64 bytes
  /// @param shape  outermost first, as elsewhere; the file has it the other way round
  /// @param make   the bytes of the tensor, when its turn comes
  /// Throws std::invalid_argument for another name, and for a row that does not fill its blocks.
  void add_tensor(std::string name, GgufType type, std::vector<int64_t> shape,
                  std::function<std::string()> make);

  /// Writes a file that is there only when it is whole (base/named_output.h). Throws Error(kIo);
  /// std::invalid_argument for a tensor that was made of other bytes than its shape says.
  void write(const std::filesystem::path& path) const;

 private:
  struct Tensor {
    std::string name;
    GgufType type;
    std::vector<int64_t> shape;
    std::function<std::string()> make;
    uint64_t bytes;
  };

  void begin_value(std::string_view key, uint32_t type);
  void begin_array(std::string_view key, uint32_t type, size_t count);
  std::string header() const;

  std::string metadata_;
  uint64_t num_keys_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace stretto::store
