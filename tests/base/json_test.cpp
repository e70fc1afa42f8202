#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/base/failure.h"
#include "tests/base/held_memory.h"

namespace stretto {
namespace {

std::string message_of(std::string_view bytes, size_t max_bytes = 0) {
  return testing::failure(ExitCode::kBadData, [&] { parse_json(bytes, "f.json", max_bytes); })
      .what();
}

std::string nested(int depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, ReadsWhatIsSound) {
  const auto json =
      parse_json(R"({"a": [1, -2, 0.5, true, null, "é\u00e9"], "b": {"a": 1}})", "f", 0);
  EXPECT_EQ(json["a"][5], "éé");
  EXPECT_EQ(json["b"]["a"], 1);
}

TEST(Json, NestingIsBounded) {
  EXPECT_NO_THROW(parse_json(nested(64), "f.json", 0));
  EXPECT_NE(message_of(nested(65)).find("deeper than 64"), std::string::npos);
  EXPECT_NE(message_of(std::string(1000000, '[')).find("deeper than 64"), std::string::npos);
}

TEST(Json, AKeyTwiceInOneObjectIsRefused) {
  EXPECT_NE(message_of(R"({"a":1,"b":{},"a":2})").find("\"a\" stands twice"), std::string::npos);
  EXPECT_NE(message_of(R"([{"a":{"x":1,"x":2}}])").find("\"x\" stands twice"), std::string::npos);
  // Written differently, still the same key.
  EXPECT_NE(message_of(R"({"a":1,"\u0061":2})").find("stands twice"), std::string::npos);
  EXPECT_NO_THROW(parse_json(R"([{"a":1},{"a":2}])", "f.json", 0));
}

TEST(Json, ErrorsNameLineAndColumn) {
  EXPECT_EQ(message_of("{\n  \"a\": 1,\n  !}").substr(0, 11), "f.json:3:3:");
  EXPECT_EQ(message_of("").substr(0, 11), "f.json:1:1:");
  EXPECT_TRUE(message_of("[1e999999]").ends_with(": number overflow parsing '1e999999'"));
  EXPECT_EQ(message_of("[1e999999]").find("json.exception"), std::string::npos);
}

TEST(Json, ErrorsOfAPartOfAFileNameTheLineInTheFile) {
  const auto message = [](std::string_view bytes) -> std::string {
    return testing::failure(ExitCode::kBadData, [&] { parse_json(bytes, "f.jsonl", 0, 7); }).what();
  };
  EXPECT_EQ(message("{\"a\" 1}").substr(0, 12), "f.jsonl:7:6:");
  EXPECT_EQ(message("{\n\n !}").substr(0, 12), "f.jsonl:9:2:");
  EXPECT_EQ(message("{\"a\": 1, \"a\": 2}"), "f.jsonl:7: key \"a\" stands twice in one object");
}

TEST(Json, WhatIsNotJsonIsRefused) {
  for (const char* bad : {"{", "[1,]", "{\"a\":1} x", "\"\xff\"", "\"\xc0\x80\"", "nul", "1e999999",
                          "'a'", "{\"a\" 1}", "\"a\nb\"", "NaN"}) {
    EXPECT_TRUE(message_of(bad).starts_with("f.json")) << bad;
  }
  EXPECT_NE(message_of(std::string_view("[1]\0x", 5)).find("f.json:1:4: a zero byte"),
            std::string::npos);
}

TEST(Json, SizeIsBounded) {
  EXPECT_NO_THROW(parse_json("[1]", "f.json", 3));
  EXPECT_NE(message_of("[1] ", 3).find("at most"), std::string::npos);
}

TEST(Json, CountsAtLeastTheMemoryThatItTakes) {
  std::string lists = "[", members = "{\"\": 0", texts = "[\"\"";
  for (int i = 0; i < 20'000; ++i) {
    lists += "[],";
    members += ",\"" + std::to_string(i) + "\":{}";
    texts += ",\"" + std::string(i % 40, 'x') + "\"";
  }
  for (const std::string& text : {lists + "[]]", members + "}", texts + "]"}) {
    Allowance allowance("f.json");
    const size_t before = testing::held_memory();
    const auto json = parse_json(text, "f.json", 0, allowance);
    const size_t held = testing::held_memory() - before;
    EXPECT_LE(held, allowance.taken()) << text.substr(0, 20);
    EXPECT_GT(json.size(), 20'000U);
  }
}

TEST(Json, IsRefusedBeforeItTakesMoreThanItsReadingMay) {
  Allowance allowance("a folder");
  allowance.take(Allowance::kSpare - 500, "another file");
  EXPECT_NO_THROW(parse_json("[1, 2]", "f.json", 0, allowance));
  const auto error = testing::failure(ExitCode::kBadData, [&] {
    parse_json("[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]", "f.json", 0,
               allowance);
  });
  EXPECT_NE(std::string(error.what()).find("a folder: the JSON of f.json would take more than"),
            std::string::npos);
}

TEST(Json, ASealTellsOfEveryOtherValue) {
  const std::string text = sealed_json({{"score", 0.75}, {"name", "a\xff"}, {"none", NAN}});
  const auto json = parse_json(text, "f.json", 0);
  EXPECT_TRUE(is_intact(json));
  EXPECT_EQ(json["name"], "a\xef\xbf\xbd") << "bytes that are not UTF-8";
  EXPECT_TRUE(json["none"].is_null());
  EXPECT_EQ(sealed_json(json), text);
  auto changed = json;
  changed["score"] = 0.85;
  EXPECT_FALSE(is_intact(changed));
  changed.erase("checksum");
  EXPECT_TRUE(is_intact(changed)) << "it never had one";
  EXPECT_FALSE(is_intact(nlohmann::json::array()));
}

}  // namespace
}  // namespace stretto
