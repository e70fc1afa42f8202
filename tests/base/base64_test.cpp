#include "base/base64.h"

#include <gtest/gtest.h>

namespace stretto {
namespace {

// RFC 4648, section 10.
constexpr std::pair<const char*, const char*> kVectors[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
};

TEST(Base64, HasTheValuesOfItsStandard) {
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(base64(bytes), text);
    EXPECT_EQ(bytes_of_base64(text), bytes);
  }
}

TEST(Base64, EveryByteComesBack) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    bytes += static_cast<char>(i * 7 % 256);
    EXPECT_EQ(bytes_of_base64(base64(bytes)), bytes);
  }
}

TEST(Base64, AnythingElseIsRefused) {
  for (const char* text : {"Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zg==Zg==", "Zm9v\n", "Zm9 ",
                           "Zm-_", "Zh==", "Zm9=", "Zg=A", "\xff\xff\xff\xff"}) {
    EXPECT_FALSE(bytes_of_base64(text)) << text;
  }
}

}  // namespace
}  // namespace stretto
