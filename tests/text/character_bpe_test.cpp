// BPE of characters, as SentencePiece has it and Llama's tokenizer.json, and the patterns and the
// composition of later byte-level ones.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/text/llama_spec.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"
#include "text/word_splits.h"

namespace stretto::text {
namespace {

using testing::llama_spec;
using Prefix = TokenizerSpec::SpacePrefix;

std::shared_ptr<const Tokenizer> made_of(const TokenizerSpec& spec) {
  return make_json_tokenizer(write_tokenizer_json(spec), "llama.json");
}

std::vector<int64_t> llama_ids(const TokenizerSpec& spec, const std::string& line) {
  std::vector<int64_t> ids;
  made_of(spec)->encode(line, ids);
  return ids;
}

using LlamaIds = std::vector<int64_t>;

TEST(CharacterBpe, EveryTextGetsAMarkInFrontByTheNormalizer) {
  const auto spec = llama_spec();
  EXPECT_EQ(llama_ids(spec, "ab ab"), (LlamaIds{9, 9}));
  EXPECT_EQ(llama_ids(spec, " ab"), (LlamaIds{5, 9})) << "its own space stays";
  EXPECT_EQ(llama_ids(spec, "ab</s>ab"), (LlamaIds{9, 2, 9}));
  EXPECT_EQ(llama_ids(spec, ""), LlamaIds{});
}

TEST(CharacterBpe, ANormalizerMayMarkSpacesAlone) {
  auto json = nlohmann::json::parse(write_tokenizer_json(llama_spec()));
  json["normalizer"]["normalizers"].erase(0);
  const auto spec = parse_tokenizer_json(json.dump(), "llama.json");
  EXPECT_EQ(spec.space_prefix, Prefix::kNever);
  EXPECT_EQ(llama_ids(spec, "ab ab"), (LlamaIds{8, 9}));
}

TEST(CharacterBpe, APreTokenizerMarksAsItsSchemeSays) {
  EXPECT_EQ(llama_ids(llama_spec(Prefix::kFirst), "ab</s>ab"), (LlamaIds{9, 2, 8}));
  EXPECT_EQ(llama_ids(llama_spec(Prefix::kAlways), "ab</s>ab"), (LlamaIds{9, 2, 9}));
  EXPECT_EQ(llama_ids(llama_spec(Prefix::kNever), "ab</s>ab"), (LlamaIds{8, 2, 8}));
  EXPECT_EQ(llama_ids(llama_spec(Prefix::kFirst), " ab"), LlamaIds{9}) << "a space is its mark";
}

TEST(CharacterBpe, WhatHasNoPieceIsSpeltByBytesOrUnknown) {
  const auto spec = llama_spec();
  EXPECT_EQ(llama_ids(spec, "é ab"), (LlamaIds{5, 3, 4, 9}));
  EXPECT_EQ(llama_ids(spec, "üßab"), (LlamaIds{5, 0, 8})) << "one token for unknown neighbours";
  TokenizerSpec apart = spec;
  apart.fuse_unk = false;
  EXPECT_EQ(llama_ids(apart, "üßab"), (LlamaIds{5, 0, 0, 8}));
}

TEST(CharacterBpe, TextComesBackWithoutTheMarkInFront) {
  const auto tokenizer = made_of(llama_spec());
  for (const char* line : {"ab ab", " ab", "  ab c", "é ab", " "}) {
    LlamaIds ids;
    tokenizer->encode(line, ids);
    EXPECT_EQ(tokenizer->decode(ids), line);
  }
  EXPECT_EQ(tokenizer->decode({1, 9, 2}), "ab") << "special tokens are left out";
  EXPECT_EQ(tokenizer->decode({3, 8}),
            "\xEF\xBF\xBD"
            "ab")
      << "half a character";
  EXPECT_EQ(tokenizer->decode({3, 4, 8}), "éab");
}

TEST(CharacterBpe, SpansAreThoseOfTheLine) {
  LlamaIds ids;
  std::vector<CodePointSpan> spans;
  made_of(llama_spec())->encode_with_spans("é ab", ids, spans);
  EXPECT_EQ(spans, (std::vector<CodePointSpan>{{0, 1}, {0, 1}, {0, 1}, {1, 4}}));
}

TEST(CharacterBpe, APieceWithoutAMarkContinuesAWord) {
  const auto tokenizer = made_of(llama_spec());
  EXPECT_TRUE(tokenizer->continues_word(8));
  EXPECT_FALSE(tokenizer->continues_word(9));
  EXPECT_FALSE(tokenizer->continues_word(2));
}

TEST(CharacterBpe, WhatIsWrittenReadsTheSame) {
  for (const Prefix prefix : {Prefix::kDoubled, Prefix::kFirst, Prefix::kAlways, Prefix::kNever}) {
    auto spec = llama_spec(prefix);
    spec.decoder_strips = prefix != Prefix::kNever;
    const std::string json = write_tokenizer_json(spec);
    const auto again = parse_tokenizer_json(json, "again");
    EXPECT_EQ(again.space_prefix, prefix);
    EXPECT_EQ(again.decoder_strips, spec.decoder_strips);
    EXPECT_EQ(write_tokenizer_json(again), json);
  }
}

TEST(CharacterBpe, FilesThatSayItOtherwiseAreRefused) {
  const auto refused = [](const char* place, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(write_tokenizer_json(llama_spec()));
    json[nlohmann::json::json_pointer(place)] = value;
    return testing::failure(ExitCode::kBadData, [&] { parse_tokenizer_json(json.dump(), "t"); })
        .message();
  };
  EXPECT_NE(refused("/normalizer", nullptr).find("needs Prepend and Replace"), std::string::npos);
  EXPECT_NE(refused("/normalizer/normalizers/0/prepend", "_").find("expected `▁`"),
            std::string::npos);
  EXPECT_NE(refused("/normalizer/normalizers/1/pattern/String", "_").find("expected ` `"),
            std::string::npos);
  EXPECT_NE(refused("/decoder", nullptr).find("needs the decoders"), std::string::npos);
  EXPECT_NE(refused("/decoder/decoders/3/start", 2).find("one space of the start"),
            std::string::npos);
  const nlohmann::json metaspace{
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "first"}, {"split", false}};
  EXPECT_NE(refused("/pre_tokenizer", metaspace).find("spaces are marked twice"),
            std::string::npos);
  EXPECT_NE(refused("/model/byte_fallback", "yes").find("expected true or false"),
            std::string::npos);
}

// --- byte-level BPE of Llama 3 and of Qwen2
// --------------------------------------------------------

std::string words_by_lines(const std::string& text, int most_digits) {
  std::vector<ByteRange> words;
  split_by_lines(text, most_digits, words);
  std::string shown;
  for (const ByteRange& word : words) shown += "[" + std::string(word.of(text)) + "]";
  return shown;
}

TEST(SplitByLines, WordsAreThoseOfTheExpression) {
  struct Case {
    const char *text, *words;
  };
  for (const Case& one :
       {Case{"Hello world's 12345 tests!!", "[Hello][ world]['s][ ][123][45][ tests][!!]"},
        Case{"I'LL can'T", "[I]['LL][ can]['T]"}, Case{"(hello) 'x", "[(hello][)][ '][x]"},
        Case{"  \n a", "[  \n][ a]"}, Case{"!?\r\n\r\nz", "[!?\r\n\r\n][z]"},
        Case{"x  y  ", "[x][ ][ y][  ]"}, Case{"\tfoo \t", "[\tfoo][ \t]"},
        Case{"''s",
             "['']"
             "[s]"},
        Case{"", ""}}) {
    EXPECT_EQ(words_by_lines(one.text, 3), one.words);
  }
  EXPECT_EQ(words_by_lines(" 123", 1), "[ ][1][2][3]");
}

TEST(ByteLevel, OtherPatternsAndCompositionAreReadAndWritten) {
  TokenizerSpec spec;
  spec.model = TokenizerSpec::Model::kByteBpe;
  spec.decoder = TokenizerSpec::Decoder::kBytes;
  spec.pattern = TokenizerSpec::Pattern::kQwen2;
  spec.nfc = true;
  spec.vocab = {{"a", 0}, {"Ã©", 1}, {"Ã", 2}, {"©", 3}, {"Ġ", 4}, {"1", 5}};
  spec.merges = {{"Ã", "©"}};
  const std::string json = write_tokenizer_json(spec);
  const auto again = parse_tokenizer_json(json, "qwen");
  EXPECT_TRUE(again.nfc);
  EXPECT_EQ(again.pattern, TokenizerSpec::Pattern::kQwen2);
  EXPECT_EQ(write_tokenizer_json(again), json);
  LlamaIds ids;
  std::vector<CodePointSpan> spans;
  made_of(spec)->encode_with_spans("ae\xCC\x81 a", ids, spans);
  EXPECT_EQ(ids, (LlamaIds{0, 1, 4, 0}));
  EXPECT_EQ(spans, (std::vector<CodePointSpan>{{0, 1}, {1, 2}, {3, 4}, {4, 5}}));
  auto other = nlohmann::json::parse(json);
  other["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\w+";
  EXPECT_NE(testing::failure(ExitCode::kBadData, [&] { parse_tokenizer_json(other.dump(), "t"); })
                .message()
                .find("this pattern is not known"),
            std::string::npos);
}

}  // namespace
}  // namespace stretto::text
