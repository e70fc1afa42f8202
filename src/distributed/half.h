#pragma once

#include <bit>
#include <cstdint>

namespace stretto::distributed {

/// Half types for sums between processes, without libtorch. Rounding is to nearest, ties to even;
/// not-a-number stays not-a-number. No branches, so that loops over them become vector code.

/// bfloat16: the upper half of an fp32.
inline float from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

/// IEEE half: 1 sign, 5 exponent, 10 mantissa bits.
inline float from_f16(uint16_t bits) {
  // Shifted into an fp32's place, the number is 2^112 too small, subnormal ones included.
  const float magnitude =
      std::bit_cast<float>((static_cast<uint32_t>(bits) & 0x7fffu) << 13) * 0x1p112f;
  uint32_t out = std::bit_cast<uint32_t>(magnitude);
  out |= magnitude >= 65536.0f ? 0x7f800000u : 0u;  // infinity and not-a-number
  return std::bit_cast<float>(out | (static_cast<uint32_t>(bits) & 0x8000u) << 16);
}

inline uint16_t to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal: move the exponent's zero and round at bit 13; what passes 65504 becomes infinity.
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal (below 2^-14): adding 0.5 puts the ten bits at the end, rounded by the addition.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - 0x3f000000u;
  uint32_t out = magnitude < 0x38800000u ? subnormal : normal;
  out = magnitude >= 0x477ff000u ? 0x7c00u : out;
  out = magnitude > 0x7f800000u ? 0x7e00u : out;
  return static_cast<uint16_t>(sign | out);
}

/// sum[i] = round(sum[i] + add[i]), the addition in fp32. Uses F16C where the processor has it.
void add_bf16(uint16_t* sum, const uint16_t* add, int64_t count);
void add_f16(uint16_t* sum, const uint16_t* add, int64_t count);

}  // namespace stretto::distributed
