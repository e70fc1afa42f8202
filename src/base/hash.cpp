#include "base/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include <array>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace stretto {
namespace {

using RawDigest = std::array<unsigned char, EVP_MAX_MD_SIZE>;

std::string hex_of(std::span<const unsigned char> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace

uint64_t xxh3_64(const void* data, size_t size_bytes) {
  return XXH3_64bits(data, size_bytes);
}

struct Xxh3Stream::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh{XXH3_createState()};
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {
  if (!state_->xxh) throw std::bad_alloc();
  XXH3_64bits_reset(state_->xxh.get());
}
Xxh3Stream::~Xxh3Stream() = default;
Xxh3Stream::Xxh3Stream(Xxh3Stream&&) noexcept = default;
Xxh3Stream& Xxh3Stream::operator=(Xxh3Stream&&) noexcept = default;

void Xxh3Stream::update(const void* data, size_t size_bytes) {
  if (size_bytes > 0) XXH3_64bits_update(state_->xxh.get(), data, size_bytes);
}

uint64_t Xxh3Stream::digest() const {
  return XXH3_64bits_digest(state_->xxh.get());
}

struct Sha256Stream::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> evp{EVP_MD_CTX_new()};
};

Sha256Stream::Sha256Stream() : state_(std::make_unique<State>()) {
  if (!state_->evp || EVP_DigestInit_ex(state_->evp.get(), EVP_sha256(), nullptr) != 1) {
    throw Error(ExitCode::kUsage, "OpenSSL offers no SHA-256",
                "look at OPENSSL_CONF: this OpenSSL was configured without it");
  }
}
Sha256Stream::~Sha256Stream() = default;
Sha256Stream::Sha256Stream(Sha256Stream&&) noexcept = default;
Sha256Stream& Sha256Stream::operator=(Sha256Stream&&) noexcept = default;

void Sha256Stream::update(std::string_view bytes) {
  EVP_DigestUpdate(state_->evp.get(), bytes.data(), bytes.size());
}

std::string Sha256Stream::hex_digest() {
  RawDigest raw{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->evp.get(), raw.data(), &size);
  return hex_of({raw.data(), size});
}

std::string sha256_hex(std::string_view bytes) {
  Sha256Stream stream;
  stream.update(bytes);
  return stream.hex_digest();
}

std::string sha1_hex(std::string_view bytes) {
  RawDigest raw{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), raw.data(), &size, EVP_sha1(), nullptr) != 1) {
    throw Error(ExitCode::kUsage, "OpenSSL offers no SHA-1",
                "look at OPENSSL_CONF: this OpenSSL was configured without it");
  }
  return hex_of({raw.data(), size});
}

std::string hex64(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) text[static_cast<size_t>(i)] = kDigits[value & 15];
  return text;
}

}  // namespace stretto
