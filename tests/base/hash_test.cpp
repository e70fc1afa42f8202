#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace stretto {
namespace {

TEST(Hash, Xxh3OfNothingIsTheValueOfItsSpecification) {
  EXPECT_EQ(xxh3_64(""), 0x2d06800538d394c2ull);
}

TEST(Hash, Sha256AgreesWithFips180) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, Sha1AgreesWithFips180) {
  EXPECT_EQ(sha1_hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST(Hash, PartsHashLikeTheirConcatenation) {
  std::string text(10000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 % 251);
  Xxh3Stream xxh;
  Sha256Stream sha;
  const std::string_view view = text;
  for (size_t at = 0, step = 0; at < text.size(); at += step, step = step * 2 + 1) {
    xxh.update(view.substr(at, step).data(), view.substr(at, step).size());
    sha.update(view.substr(at, step));
  }
  EXPECT_EQ(xxh.digest(), xxh3_64(text));
  EXPECT_EQ(sha.hex_digest(), sha256_hex(text));
}

TEST(Hash, Hex64KeepsLeadingZeros) {
  EXPECT_EQ(hex64(0), "0000000000000000");
  EXPECT_EQ(hex64(0x00ab00000000cdefull), "00ab00000000cdef");
}

}  // namespace
}  // namespace stretto
