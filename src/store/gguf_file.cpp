#include "store/gguf_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/named_output.h"
#include "distributed/half.h"

namespace stretto::store {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie");

constexpr uint32_t kGgufVersion = 3;
constexpr uint64_t kGgufAlignment = 32;
constexpr size_t kMostGgufName = 64;

/// Numbers of the types of values.
enum GgufValue : uint32_t {
  kGgufU32 = 4,
  kGgufI32 = 5,
  kGgufF32 = 6,
  kGgufBool = 7,
  kGgufString = 8,
  kGgufArray = 9,
};

template <class Value>
void append_gguf(std::string& bytes, Value value) {
  char raw[sizeof(Value)];
  std::memcpy(raw, &value, sizeof(Value));
  bytes.append(raw, sizeof(Value));
}

void append_gguf_string(std::string& bytes, std::string_view text) {
  append_gguf(bytes, static_cast<uint64_t>(text.size()));
  bytes.append(text);
}

uint64_t gguf_aligned(uint64_t offset) {
  return (offset + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
}

void append_q8_block(std::string& bytes, const float* values) {
  float largest = 0;
  for (int64_t i = 0; i < kQ8Block; ++i) largest = std::max(largest, std::abs(values[i]));
  const float scale = largest / 127;
  const float inverse = scale > 0 ? 1 / scale : 0;
  append_gguf(bytes, distributed::to_f16(scale));
  for (int64_t i = 0; i < kQ8Block; ++i) {
    // Ties go away from zero, as in ggml's own.
    bytes.push_back(static_cast<char>(static_cast<int8_t>(std::round(values[i] * inverse))));
  }
}

}  // namespace

uint64_t gguf_bytes(GgufType type, uint64_t elements) {
  if (type == GgufType::kQ8_0) {
    return elements / static_cast<uint64_t>(kQ8Block) * (sizeof(uint16_t) + kQ8Block);
  }
  return elements * (type == GgufType::kF16 ? sizeof(uint16_t) : sizeof(float));
}

std::string gguf_values(GgufType type, const std::vector<float>& values) {
  std::string bytes;
  bytes.reserve(gguf_bytes(type, values.size()));
  if (type == GgufType::kF32) {
    bytes.resize(values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  if (type == GgufType::kF16) {
    for (const float value : values) append_gguf(bytes, distributed::to_f16(value));
    return bytes;
  }
  if (values.size() % static_cast<size_t>(kQ8Block) != 0) {
    throw std::invalid_argument("[gguf] " + std::to_string(values.size()) +
                                " values do not fill blocks of 32");
  }
  for (size_t i = 0; i < values.size(); i += static_cast<size_t>(kQ8Block)) {
    append_q8_block(bytes, values.data() + i);
  }
  return bytes;
}

void GgufFile::begin_value(std::string_view key, uint32_t type) {
  append_gguf_string(metadata_, key);
  append_gguf(metadata_, type);
  ++num_keys_;
}

void GgufFile::begin_array(std::string_view key, uint32_t type, size_t count) {
  begin_value(key, kGgufArray);
  append_gguf(metadata_, type);
  append_gguf(metadata_, static_cast<uint64_t>(count));
}

void GgufFile::set_string(std::string_view key, std::string_view value) {
  begin_value(key, kGgufString);
  append_gguf_string(metadata_, value);
}

void GgufFile::set_u32(std::string_view key, uint32_t value) {
  begin_value(key, kGgufU32);
  append_gguf(metadata_, value);
}

void GgufFile::set_f32(std::string_view key, float value) {
  begin_value(key, kGgufF32);
  append_gguf(metadata_, value);
}

void GgufFile::set_bool(std::string_view key, bool value) {
  begin_value(key, kGgufBool);
  append_gguf(metadata_, static_cast<uint8_t>(value ? 1 : 0));
}

void GgufFile::set_strings(std::string_view key, const std::vector<std::string>& values) {
  begin_array(key, kGgufString, values.size());
  for (const auto& value : values) append_gguf_string(metadata_, value);
}

void GgufFile::set_i32s(std::string_view key, const std::vector<int32_t>& values) {
  begin_array(key, kGgufI32, values.size());
  for (const int32_t value : values) append_gguf(metadata_, value);
}

void GgufFile::set_f32s(std::string_view key, const std::vector<float>& values) {
  begin_array(key, kGgufF32, values.size());
  for (const float value : values) append_gguf(metadata_, value);
}

void GgufFile::add_tensor(std::string name, GgufType type, std::vector<int64_t> shape,
                          std::function<std::string()> make) {
  if (name.empty() || name.size() > kMostGgufName) {
    throw std::invalid_argument("[gguf] the name of a tensor has 1 to 64 bytes, not `" + name +
                                "`");
  }
  if (type == GgufType::kQ8_0 && (shape.empty() || shape.back() % kQ8Block != 0)) {
    throw std::invalid_argument("[gguf] rows of `" + name + "` do not fill blocks of 32");
  }
  uint64_t elements = 1;
  for (const int64_t size : shape) elements *= static_cast<uint64_t>(size);
  tensors_.push_back({.name = std::move(name),
                      .type = type,
                      .shape = std::move(shape),
                      .make = std::move(make),
                      .bytes = gguf_bytes(type, elements)});
}

std::string GgufFile::header() const {
  std::string bytes = "GGUF";
  append_gguf(bytes, kGgufVersion);
  append_gguf(bytes, static_cast<uint64_t>(tensors_.size()));
  append_gguf(bytes, num_keys_);
  bytes += metadata_;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    append_gguf_string(bytes, tensor.name);
    append_gguf(bytes, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      append_gguf(bytes, static_cast<uint64_t>(*size));
    }
    append_gguf(bytes, static_cast<uint32_t>(tensor.type));
    append_gguf(bytes, offset);
    offset = gguf_aligned(offset + tensor.bytes);
  }
  bytes.resize(gguf_aligned(bytes.size()), '\0');
  return bytes;
}

void GgufFile::write(const std::filesystem::path& path) const {
  NamedOutput file(path);
  file.write(header());
  for (const Tensor& tensor : tensors_) {
    std::string bytes = tensor.make();
    if (bytes.size() != tensor.bytes) {
      throw std::invalid_argument("[gguf] `" + tensor.name + "` was made of " +
                                  std::to_string(bytes.size()) +
                                  " bytes, which do not fit its shape");
    }
    bytes.resize(gguf_aligned(bytes.size()), '\0');
    file.write(bytes);
  }
  file.publish();
}

}  // namespace stretto::store
