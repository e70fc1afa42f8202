#include "store/protobuf.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stretto::store {
namespace {

TEST(ProtobufMessage, HasTheBytesOfTheDocumentation) {
  // The examples of protobuf.dev/programming-guides/encoding.
  ProtobufMessage number;
  number.add_int(1, 150);
  EXPECT_EQ(number.bytes(), "\x08\x96\x01");
  ProtobufMessage text;
  text.add_bytes(2, "testing");
  EXPECT_EQ(text.bytes(), "\x12\x07testing");
  ProtobufMessage outer;
  outer.add_message(3, number);
  EXPECT_EQ(outer.bytes(), "\x1a\x03\x08\x96\x01");
  ProtobufMessage packed;
  packed.add_ints(6, std::vector<int64_t>{3, 270, 86942});
  EXPECT_EQ(packed.bytes(), "\x32\x06\x03\x8e\x02\x9e\xa7\x05");
}

TEST(ProtobufMessage, HasNegativeNumbersInTenBytes) {
  ProtobufMessage message;
  message.add_int(1, -1);
  EXPECT_EQ(message.bytes(), std::string("\x08") + std::string(9, '\xff') + "\x01");
}

TEST(ProtobufMessage, HasFloatsAsTheyLie) {
  ProtobufMessage message;
  message.add_float(2, 1.0F);
  EXPECT_EQ(message.bytes(), std::string("\x15\x00\x00\x80\x3f", 5));
}

TEST(ProtobufMessage, WritesFieldNumbersOfSeveralBytes) {
  ProtobufMessage message;
  message.add_int(20, 7);
  EXPECT_EQ(message.bytes(), std::string("\xa0\x01\x07", 3));
}

}  // namespace
}  // namespace stretto::store
