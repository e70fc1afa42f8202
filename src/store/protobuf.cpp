#include "store/protobuf.h"

#include <bit>

namespace stretto::store {
namespace {

constexpr uint32_t kVarint = 0, kLengthDelimited = 2, kFixed32 = 5;

// Seven bits a byte, the lowest first; the eighth bit says that more follow.
void append_varint(std::string& bytes, uint64_t value) {
  while (value >= 0x80) {
    bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<char>(value));
}

}  // namespace

void ProtobufMessage::add_key(uint32_t field, uint32_t wire_type) {
  append_varint(bytes_, uint64_t{field} << 3 | wire_type);
}

void ProtobufMessage::add_int(uint32_t field, int64_t value) {
  add_key(field, kVarint);
  append_varint(bytes_, static_cast<uint64_t>(value));
}

void ProtobufMessage::add_float(uint32_t field, float value) {
  add_key(field, kFixed32);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) {
    bytes_.push_back(static_cast<char>((bits >> shift) & 0xff));
  }
}

void ProtobufMessage::add_bytes(uint32_t field, std::string_view value) {
  add_key(field, kLengthDelimited);
  append_varint(bytes_, value.size());
  bytes_.append(value);
}

void ProtobufMessage::add_message(uint32_t field, const ProtobufMessage& value) {
  add_bytes(field, value.bytes());
}

void ProtobufMessage::add_ints(uint32_t field, std::span<const int64_t> values) {
  std::string packed;
  for (const int64_t value : values) append_varint(packed, static_cast<uint64_t>(value));
  add_bytes(field, packed);
}

}  // namespace stretto::store
