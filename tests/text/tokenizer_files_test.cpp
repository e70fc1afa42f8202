#include "text/tokenizer_files.h"

#include <gtest/gtest.h>

#include <string>

#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

constexpr const char* kBert = "[UNK]\n[CLS]\n[SEP]\na\n";

TEST(TokenizerFiles, AreToldApartByTheirContent) {
  EXPECT_EQ(kind_of_file("\n\x05", "x.model"), TokenizerFile::kSentencePiece);
  EXPECT_EQ(kind_of_file(std::string("\n\x05\0", 3), "x"), TokenizerFile::kSentencePiece);
  EXPECT_EQ(kind_of_file(R"( {"version": "1.0", "model" : {}})", "t"),
            TokenizerFile::kTokenizerJson);
  EXPECT_EQ(kind_of_file(R"({"model": 5, "{": 6, "\"model\"": 7})", "t"),
            TokenizerFile::kVocabJson);
  EXPECT_EQ(kind_of_file(kBert, "v"), TokenizerFile::kBertVocab);
  EXPECT_EQ(kind_of_file("[UNK]\r\n[CLS]\r\n[SEP]", "v"), TokenizerFile::kBertVocab);
  EXPECT_EQ(kind_of_file("[UNK]x\n[CLS]\n[SEP]\n", "v"), TokenizerFile::kVocabulary);
  EXPECT_EQ(kind_of_file("the 12\na 3\n", "dict.txt"), TokenizerFile::kVocabulary);
  EXPECT_EQ(kind_of_file("[\"a\", \"b\"]\n", "c"), TokenizerFile::kCharacters);
  EXPECT_EQ(kind_of_file("", "v"), TokenizerFile::kVocabulary);
}

TEST(TokenizerFiles, BecomeOneFile) {
  const std::string bytes = model_bytes(kBert, "vocab.txt");
  ASSERT_TRUE(is_json_model(bytes));
  EXPECT_EQ(model_bytes(bytes, "tokenizer.json"), bytes) << "which stays as it is";
  EXPECT_EQ(make_model_tokenizer(bytes, "t")->specials().bos, 1);
  EXPECT_NE(model_bytes(kBert, "v", {.lowercase = false}), bytes);
  EXPECT_TRUE(is_json_model(model_bytes("[UNK]\na\n", "v", {.is_wordpiece = true})));
  EXPECT_EQ(model_bytes("a\n", "v"), "a\n");
  EXPECT_EQ(make_model_tokenizer(model_bytes("[\"a\"]", "c"), "c")->size(), 5);
}

}  // namespace
}  // namespace stretto::text
