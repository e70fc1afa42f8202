#pragma once

#include <array>
#include <cstdint>

#if defined(__CUDACC__)
#define STRETTO_HOST_DEVICE __host__ __device__  // nvcc's own dialect; expands to nothing elsewhere
#else
#define STRETTO_HOST_DEVICE
#endif

namespace stretto {

/// Mixes two 64-bit words into one (splitmix64's finaliser); not cryptographic.
STRETTO_HOST_DEVICE constexpr uint64_t mix64(uint64_t a, uint64_t b = 0) {
  uint64_t z = a + 0x9E3779B97F4A7C15ull * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

/// Philox4x32-10 (Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3"): four 32-bit
/// words that depend on nothing but key and counter. The same code runs on the CPU and in CUDA
/// kernels, so that a stream is a function of its coordinates, never of rank, thread or device.
///
/// @param key      selects the stream, for instance mix64(seed, update)
/// @param counter  two 64-bit coordinates inside it, for instance (sample and position, feature /
/// 4)
struct Philox {
  STRETTO_HOST_DEVICE static constexpr std::array<uint32_t, 4> at(uint64_t key, uint64_t hi,
                                                                  uint64_t lo) {
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    uint32_t c0 = static_cast<uint32_t>(lo), c1 = static_cast<uint32_t>(lo >> 32);
    uint32_t c2 = static_cast<uint32_t>(hi), c3 = static_cast<uint32_t>(hi >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
      const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
      const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
  }
};

/// A sequential reader of one Philox stream, for code that wants "the next number".
///
///     RandomStream stream(mix64(seed, epoch));
///     double u = stream.uniform();            // in [0, 1)
///     uint64_t die = stream.below(6);         // 0..5, without modulo bias
class RandomStream {
 public:
  explicit RandomStream(uint64_t key, uint64_t hi = 0) : key_(key), hi_(hi) {}

  uint32_t next32() {
    if (used_ == 4) {
      block_ = Philox::at(key_, hi_, counter_++);
      used_ = 0;
    }
    return block_[used_++];
  }
  uint64_t next64() {
    const uint64_t high = next32();
    return (high << 32) | next32();
  }
  /// Uniform in [0, 1) with 53 random bits.
  double uniform() { return static_cast<double>(next64() >> 11) * 0x1.0p-53; }
  /// Standard normal by Box-Muller (two draws for each number, no hidden state).
  double normal();
  /// Uniform integer in [0, bound), bound > 0, by rejection.
  uint64_t below(uint64_t bound);

 private:
  uint64_t key_;
  uint64_t hi_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

/// A pseudo-random permutation of [0, size) that is evaluated at one index in constant time and
/// constant memory: a balanced Feistel network on the next power of four with cycle walking.
/// It is what makes the order of an epoch a pure function of (seed, epoch, index).
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key);
  /// @param index in [0, size); @return a number in [0, size); distinct indices give distinct
  /// numbers.
  uint64_t operator()(uint64_t index) const;

 private:
  uint64_t size_;
  uint64_t key_;
  int half_bits_;
};

}  // namespace stretto
