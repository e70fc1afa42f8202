#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "tests/base/failure.h"
#include "text/tokenizer_spec.h"

namespace stretto::text {
namespace {

using Json = nlohmann::json;

Json token(int id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

Json special(const std::string& name) {
  return {{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
}
Json sequence(const std::string& name, int type) {
  return {{"Sequence", {{"id", name}, {"type_id", type}}}};
}

Json bert() {
  Json json;
  json["version"] = "1.0";
  json["truncation"] = nullptr;
  json["padding"] = nullptr;
  json["added_tokens"] = {token(0, "[UNK]"), token(1, "[CLS]"), token(4, "<x>")};
  json["normalizer"] = {{"type", "BertNormalizer"},
                        {"clean_text", true},
                        {"handle_chinese_chars", true},
                        {"strip_accents", nullptr},
                        {"lowercase", true}};
  json["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {special("[CLS]"), sequence("A", 0)}},
      {"pair", {special("[CLS]"), sequence("A", 0), sequence("B", 1)}},
      {"special_tokens",
       {{"[CLS]",
         {{"id", "[CLS]"}, {"ids", Json::array({1})}, {"tokens", Json::array({"[CLS]"})}}}}}};
  json["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}};
  json["model"] = {{"type", "WordPiece"},
                   {"unk_token", "[UNK]"},
                   {"continuing_subword_prefix", "##"},
                   {"max_input_chars_per_word", 50},
                   {"vocab", {{"[UNK]", 0}, {"[CLS]", 1}, {"a", 2}, {"##b", 3}}}};
  return json;
}

Json gpt2() {
  Json json;
  json["pre_tokenizer"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}};
  json["post_processor"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}};
  json["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", ""},
                   {"continuing_subword_prefix", ""},
                   {"fuse_unk", false},
                   {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}},
                   {"merges", {"#version: 0.2", "a b"}}};
  return json;
}

TokenizerSpec parsed(const Json& json) {
  return parse_tokenizer_json(json.dump(), "t.json");
}

std::string refusal(const Json& json) {
  return testing::failure(ExitCode::kBadData, [&] { parsed(json); }).what();
}

TEST(TokenizerJson, ReadsBerts) {
  const TokenizerSpec spec = parsed(bert());
  EXPECT_EQ(spec.model, TokenizerSpec::Model::kWordPiece);
  EXPECT_EQ(spec.vocab, (PieceIds{{"[UNK]", 0}, {"[CLS]", 1}, {"a", 2}, {"##b", 3}}));
  EXPECT_EQ(spec.unk_token, "[UNK]");
  EXPECT_EQ(spec.max_word_chars, 50);
  ASSERT_TRUE(spec.normalizer);
  EXPECT_FALSE(spec.normalizer->strip_accents);
  ASSERT_EQ(spec.added.size(), 3U);
  EXPECT_EQ(spec.added[2].content, "<x>");
  ASSERT_EQ(spec.sequences.pair.size(), 3U);
  EXPECT_EQ(spec.sequences.pair[0].id, 1);
  EXPECT_EQ(spec.sequences.pair[2].part, SequenceTemplate::Part::kSecond);
  EXPECT_EQ(spec.sequences.pair[2].segment, 1);
  EXPECT_EQ(spec.decoder, TokenizerSpec::Decoder::kWordPiece);
  EXPECT_FALSE(spec.decoder_cleanup);
}

TEST(TokenizerJson, ReadsGpt2s) {
  const TokenizerSpec spec = parsed(gpt2());
  EXPECT_EQ(spec.model, TokenizerSpec::Model::kByteBpe);
  EXPECT_FALSE(spec.unk_token);
  EXPECT_TRUE(spec.add_prefix_space);
  EXPECT_TRUE(spec.use_regex);
  EXPECT_EQ(spec.trim_offsets, true);
  ASSERT_EQ(spec.merges.size(), 1U);
  Json pairs = gpt2();
  pairs["model"]["merges"] = Json::array({Json::array({"a", "b"})});
  EXPECT_EQ(parsed(pairs).merges, spec.merges);
}

TEST(TokenizerJson, FilesOfEarlyVersionsNameNoModel) {
  Json wordpiece = bert(), bpe = gpt2();
  wordpiece["model"].erase("type");
  bpe["model"].erase("type");
  EXPECT_EQ(parsed(wordpiece).model, TokenizerSpec::Model::kWordPiece);
  EXPECT_EQ(parsed(bpe).model, TokenizerSpec::Model::kByteBpe);
}

TEST(TokenizerJson, OtherTemplatesAreReadToo) {
  Json json = bert();
  json["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"<x>", 4}}, {"cls", {"[CLS]", 1}}};
  const TokenizerSpec spec = parsed(json);
  ASSERT_EQ(spec.sequences.pair.size(), 5U);
  EXPECT_EQ(spec.sequences.pair[4].id, 4);
  EXPECT_EQ(spec.sequences.pair[4].segment, 1);
  Json roberta = gpt2();
  roberta["post_processor"] = {{"type", "RobertaProcessing"},
                               {"sep", {"b", 1}},
                               {"cls", {"a", 0}},
                               {"trim_offsets", false},
                               {"add_prefix_space", true}};
  EXPECT_EQ(parsed(roberta).sequences.pair.size(), 6U);
  EXPECT_FALSE(parsed(roberta).trim_offsets);
  Json several = gpt2();
  several["post_processor"] = {
      {"type", "Sequence"}, {"processors", {gpt2()["post_processor"], roberta["post_processor"]}}};
  EXPECT_EQ(parsed(several).trim_offsets, true);
  EXPECT_EQ(parsed(several).sequences.single.size(), 3U);
}

TEST(TokenizerJson, ComesBackAsItWasWritten) {
  for (const Json& json : {bert(), gpt2()}) {
    const std::string written = write_tokenizer_json(parsed(json));
    const TokenizerSpec spec = parsed(json), back = parse_tokenizer_json(written, "t.json");
    EXPECT_EQ(back.vocab, spec.vocab);
    EXPECT_EQ(back.merges, spec.merges);
    EXPECT_EQ(back.added, spec.added);
    EXPECT_EQ(back.sequences, spec.sequences);
    EXPECT_EQ(back.trim_offsets, spec.trim_offsets);
    EXPECT_EQ(write_tokenizer_json(back), written);
  }
}

TEST(TokenizerJson, OfAModelThatCutsAndPadsIsReadWithoutBoth) {
  Json json = bert();
  json["truncation"] = {{"max_length", 128}, {"strategy", "LongestFirst"}, {"stride", 0}};
  json["padding"] = {{"strategy", {{"Fixed", 128}}}, {"pad_id", 0}, {"pad_token", "[PAD]"}};
  EXPECT_EQ(write_tokenizer_json(parsed(json)), write_tokenizer_json(parsed(bert())));
}

TEST(TokenizerJson, NamesTheFieldThatItDoesNotSupport) {
  const auto with = [](Json json, const char* pointer, const Json& value) {
    json[Json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  EXPECT_EQ(with(bert(), "/model/type", "Unigram"),
            "t.json: model.type: `Unigram` is not supported");
  EXPECT_EQ(with(bert(), "/normalizer/type", "NFC"),
            "t.json: normalizer.type: `NFC` is not supported");
  EXPECT_EQ(with(bert(), "/pre_tokenizer/type", "Whitespace"),
            "t.json: pre_tokenizer.type: `Whitespace` is not supported");
  EXPECT_EQ(with(gpt2(), "/model/dropout", 0.1),
            "t.json: model.dropout: BPE-dropout is not supported");
  EXPECT_EQ(with(bert(), "/decoder/type", "CTC"), "t.json: decoder.type: `CTC` is not supported");
  EXPECT_EQ(with(bert(), "/model/extra", 1), "t.json: model.extra: this field is not supported");
  EXPECT_EQ(with(bert(), "/version", "2.0"), "t.json: version: expected 1.0");
}

TEST(TokenizerJson, NamesTheFieldThatIsWrong) {
  const auto with = [](Json json, const char* pointer, const Json& value) {
    json[Json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  EXPECT_EQ(with(bert(), "/model/vocab", 3), "t.json: model.vocab: expected an object, got number");
  EXPECT_EQ(with(bert(), "/model/vocab/a", "2"),
            "t.json: model.vocab[\"a\"]: expected a whole number, got string");
  EXPECT_EQ(with(bert(), "/model/vocab/a", 0),
            "t.json: model.vocab: `[UNK]` and `a` both have id 0");
  EXPECT_EQ(with(bert(), "/model/vocab/a", 99999999),
            "t.json: model.vocab[\"a\"]: 99999999 is too large: at most 10000000 is allowed");
  EXPECT_EQ(with(bert(), "/model/unk_token", "?"),
            "t.json: model.unk_token: `?` is not in model.vocab");
  EXPECT_EQ(with(bert(), "/added_tokens/2/id", 9),
            "t.json: added_tokens[2]: id 9 of `<x>` should be 4");
  EXPECT_EQ(with(bert(), "/added_tokens/1/content", "[UNK]"),
            "t.json: added_tokens[1]: `[UNK]` stands here again");
  EXPECT_EQ(with(bert(), "/added_tokens/1/lstrip", nullptr),
            "t.json: added_tokens[1].lstrip: expected true or false, got null");
  EXPECT_EQ(with(bert(), "/post_processor/single", Json::array()),
            "t.json: post_processor.single: each text must stand in it once");
  EXPECT_EQ(with(bert(), "/post_processor/special_tokens/[CLS]/ids", Json::array({77})),
            "t.json: post_processor.special_tokens.[CLS].ids[0]: no token has id 77");
  EXPECT_EQ(with(gpt2(), "/model/merges/1", "a b c"),
            "t.json: model.merges[1]: `a b c` is not two pieces with a space between them");
  Json none = bert();
  none.erase("model");
  EXPECT_EQ(refusal(none), "t.json: no field `model`");
}

TEST(TokenizerJson, RefusesDeepNestingAndBrokenText) {
  const auto failure_of = [](const std::string& bytes) {
    return std::string(testing::failure(ExitCode::kBadData, [&] {
                         parse_tokenizer_json(bytes, "t.json");
                       }).what());
  };
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(failure_of(deep), "t.json: nested deeper than 64 levels");
  EXPECT_EQ(failure_of("{\"model\":" + deep + "}"), "t.json: nested deeper than 64 levels");
  EXPECT_NE(failure_of("{\"model\": {\"vocab\": {\"a\": 1, \"a\": 2}}}").find("stands twice"),
            std::string::npos);
  EXPECT_NE(failure_of("[]").find("expected an object, got array"), std::string::npos);
  EXPECT_NE(failure_of("").find("t.json"), std::string::npos);
}

TEST(TokenizerJson, APieceAndAnAddedTokenHave64KiBAtMost) {
  const std::string more(65537, 'x');
  const auto refused = [](const Json& json) {
    return std::string(stretto::testing::failure(ExitCode::kBadData, [&] {
                         parse_tokenizer_json(json.dump(), "t.json");
                       }).what());
  };
  Json json = bert();
  json["model"]["vocab"][more] = 4;
  json["added_tokens"] = Json::array();
  EXPECT_NE(refused(json).find("model.vocab: a piece of 65,537 bytes"), std::string::npos);
  json = bert();
  json["added_tokens"][2] = token(4, more);
  EXPECT_NE(refused(json).find("added_tokens[2]: a piece of 65,537 bytes"), std::string::npos);
}

TEST(TokenizerJson, ATemplateCannotMultiply) {
  Json json = bert();
  auto& special_tokens = json["post_processor"]["special_tokens"]["[CLS]"];
  special_tokens["ids"] = std::vector<int>(100, 1);
  special_tokens["tokens"] = std::vector<std::string>(100, "[CLS]");
  auto& single = json["post_processor"]["single"];
  single = {special("[CLS]"), special("[CLS]"), sequence("A", 0)};
  EXPECT_EQ(parse_tokenizer_json(json.dump(), "t.json").sequences.single.size(), 201U);
  single.push_back(special("[CLS]"));
  const auto error = stretto::testing::failure(
      ExitCode::kBadData, [&] { parse_tokenizer_json(json.dump(), "t.json"); });
  EXPECT_NE(std::string(error.what()).find("single: more than 256 tokens"), std::string::npos)
      << error.what();
}

TEST(TokenizerJson, GivesBackTheMemoryOfItsJson) {
  Allowance allowance("a folder");
  parse_tokenizer_json(bert().dump(), "t.json", allowance);
  EXPECT_GT(allowance.taken(), 7 * 256U);  // four pieces and three added tokens
  EXPECT_LT(allowance.taken(), 7 * 400U);
}

}  // namespace
}  // namespace stretto::text
