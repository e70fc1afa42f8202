#include "data/documents/json_documents.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/data/memory_stream.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using Texts = std::vector<std::string>;

Texts json_texts(const std::string& file, BadSamples* bad = nullptr) {
  JsonDocuments documents(std::make_unique<stretto::testing::MemoryStream>(file), "a.jsonl", "text",
                          bad);
  Texts found;
  std::string_view text;
  for (bool begins = false; documents.next(text, begins);) {
    EXPECT_TRUE(begins);
    found.emplace_back(text);
  }
  return found;
}

std::string json_fault(const std::string& file) {
  return failure(ExitCode::kBadData, [&] { json_texts(file); }).message();
}

TEST(JsonDocuments, AreToldByTheNameOfTheirFile) {
  for (const char* path : {"a.jsonl", "/b/a.ndjson", "a.jsonl.gz", "a.jsonl.zst", "a.zip:b.jsonl"})
    EXPECT_TRUE(is_named_json_lines(path)) << path;
  for (const char* path : {"a.txt", "a.json", "a.jsonl.txt", "a.txt.gz", "jsonl", ""})
    EXPECT_FALSE(is_named_json_lines(path)) << path;
}

TEST(JsonDocuments, AreTheStringsOfTheirKey) {
  EXPECT_EQ(
      json_texts("{\"text\": \"a\\nb\", \"id\": 1}\n\n  \n{\"id\": 2, \"text\": \"\\u00e9\"}"),
      (Texts{"a\nb", "é"}));
}

TEST(JsonDocuments, EmptyTextsAreNone) {
  EXPECT_EQ(json_texts("{\"text\": \"\"}\n{\"text\": \"a\"}\n"), Texts{"a"});
}

TEST(JsonDocuments, FaultsHaveTheirPlace) {
  EXPECT_NE(
      json_fault("{\"text\": \"a\"}\n{\"body\": \"b\"}\n").find("a.jsonl:2: there is no `text`"),
      std::string::npos);
  EXPECT_NE(json_fault("[\"a\"]").find("a.jsonl:1: must be an object, is array"),
            std::string::npos);
  EXPECT_NE(json_fault("{\"text\": 5}").find("`text` must be a string, is number"),
            std::string::npos);
  EXPECT_NE(json_fault("{\"text\": \"a\\u0000b\"}").find("NUL"), std::string::npos);
  EXPECT_NE(json_fault("{\"text\": \"a\"\n").find("a.jsonl:1"), std::string::npos);
}

TEST(JsonDocuments, AKeyThatStandsTwiceIsToldWhatToDo) {
  const auto error = failure(ExitCode::kBadData, [&] {
    json_texts("{\"text\": \"a\"}\n{\"text\": \"b\", \"text\": \"c\"}\n");
  });
  EXPECT_NE(error.message().find("a.jsonl:2: key \"text\" stands twice"), std::string::npos)
      << error.message();
  EXPECT_NE(error.advice().find("in which each key stands once"), std::string::npos)
      << error.advice();
  EXPECT_EQ(error.advice().find("whole copy"), std::string::npos) << error.advice();
  BadSamples skip({.skips = true, .most = 5});
  EXPECT_EQ(json_texts("{\"text\": \"a\"}\n{\"text\": \"b\", \"text\": \"c\"}\n", &skip),
            Texts{"a"});
  EXPECT_EQ(skip.left_out().count, 1);
}

TEST(JsonDocuments, ATextAboveTheBoundIsToldHowItCanBeRead) {
  const std::string file =
      "{\"text\": \"a\"}\n{\"text\": \"" + std::string(1'000'000, 'b') + "\"}\n";
  const auto error = failure(ExitCode::kBadData, [&] { json_texts(file); });
  EXPECT_NE(error.message().find("a.jsonl:2: this line has 1,000,0"), std::string::npos)
      << error.message();
  EXPECT_NE(error.advice().find("data.format = \"documents\""), std::string::npos)
      << error.advice();
  BadSamples skip({.skips = true, .most = 5});
  EXPECT_EQ(json_texts(file, &skip), Texts{"a"});
  EXPECT_EQ(skip.left_out().count, 1);
}

TEST(JsonDocuments, BadLinesAreLeftOutWhereTheRuleSaysSo) {
  BadSamples skip({.skips = true, .most = 5});
  EXPECT_EQ(json_texts("{\"text\": \"a\"}\nnone\n{\"text\": 5}\n{\"text\": \"b\"}\n", &skip),
            (Texts{"a", "b"}));
  EXPECT_EQ(skip.left_out().count, 2);
  EXPECT_NE(skip.left_out().text().find("a.jsonl:2"), std::string::npos) << skip.left_out().text();
}

TEST(JsonDocuments, ElseAllOfAFileAreTold) {
  BadSamples stop;
  const auto error = failure(ExitCode::kBadData, [&] {
    json_texts("{\"text\": \"a\"}\nnone\n{\"text\": \"b\"}\n{\"text\": 5}\n", &stop);
  });
  EXPECT_NE(error.message().find("a.jsonl:2"), std::string::npos) << error.message();
  EXPECT_EQ(error.details().size(), 2U);
}

}  // namespace
}  // namespace stretto::data
