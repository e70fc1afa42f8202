#include "base/random.h"

#include <cmath>
#include <numbers>

namespace stretto {
namespace {

// Luby and Rackoff need four rounds for large halves; small domains need more to look random.
constexpr int kRounds = 8;

}  // namespace

double RandomStream::normal() {
  // 1 - u lies in (0, 1], so that the logarithm is finite.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

uint64_t RandomStream::below(uint64_t bound) {
  // The first 2^64 mod bound values would make small results too frequent.
  const uint64_t biased = (0 - bound) % bound;
  uint64_t draw = next64();
  while (draw < biased) draw = next64();
  return draw % bound;
}

Permutation::Permutation(uint64_t size, uint64_t key) : size_(size), key_(key), half_bits_(1) {
  while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
}

uint64_t Permutation::operator()(uint64_t index) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = index;
  do {  // the domain is less than four times `size`, so four turns on average at most
    uint64_t left = value >> half_bits_;
    uint64_t right = value & mask;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t next = left ^ (mix64(key_ ^ right, static_cast<uint64_t>(round)) & mask);
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= size_);
  return value;
}

}  // namespace stretto
