#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace stretto::store {

/// A message of protocol buffers as it is written
/// (https://protobuf.dev/programming-guides/encoding): fields one behind the other, each with its
/// number. What the numbers mean is for the caller to know. A field that is added again is a
/// repeated one.
///
///     ProtobufMessage dimension;
///     dimension.add_int(1, 768);
///     ProtobufMessage shape;
///     shape.add_message(1, dimension);
class ProtobufMessage {
 public:
  void add_int(uint32_t field, int64_t value);             ///< int32, int64, enum, bool
  void add_float(uint32_t field, float value);             ///< float
  void add_bytes(uint32_t field, std::string_view value);  ///< string, bytes
  void add_message(uint32_t field, const ProtobufMessage& value);
  void add_ints(uint32_t field, std::span<const int64_t> values);  ///< repeated, packed

  const std::string& bytes() const { return bytes_; }

 private:
  void add_key(uint32_t field, uint32_t wire_type);
  std::string bytes_;
};

}  // namespace stretto::store
