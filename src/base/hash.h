#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stretto {

/// XXH3-64 of a byte range (about 8 GB/s on one core); for integrity and cache keys, not secrecy.
uint64_t xxh3_64(const void* data, size_t size_bytes);
inline uint64_t xxh3_64(std::string_view text) {
  return xxh3_64(text.data(), text.size());
}

/// XXH3-64 over chunks that arrive one after the other; equals the hash of their concatenation.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(Xxh3Stream&&) noexcept;
  Xxh3Stream& operator=(Xxh3Stream&&) noexcept;
  void update(const void* data, size_t size_bytes);
  uint64_t digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// SHA-256 over chunks that arrive one after the other.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  Sha256Stream(Sha256Stream&&) noexcept;
  Sha256Stream& operator=(Sha256Stream&&) noexcept;
  void update(std::string_view bytes);
  std::string hex_digest();  ///< 64 lower-case hex digits; call it once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// SHA-256 as 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

/// SHA-1 as 40 lower-case hex digits, where a data set is defined by it; not for integrity.
std::string sha1_hex(std::string_view bytes);

/// 16 lower-case hex digits, the form in which 64-bit hashes stand in metrics and manifests.
std::string hex64(uint64_t value);

}  // namespace stretto
