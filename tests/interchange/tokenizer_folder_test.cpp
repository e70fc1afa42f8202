#include "interchange/tokenizer_folder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::TempDir;

constexpr const char* kBertPieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\nhouse\n##s\n";

void write_all(const TempDir& dir, const std::map<std::string, std::string>& files) {
  for (const auto& [name, bytes] : files) dir.write(name, bytes);
}

std::string json_of(const text::TokenizerSpec& spec) {
  return text::write_tokenizer_json(spec);
}

TEST(TokenizerFolder, CaseAndAccentsAreThoseOfItsConfig) {
  const TempDir dir;
  dir.write("vocab.txt", kBertPieces);
  dir.write("tokenizer_config.json", R"({"do_lower_case": false, "strip_accents": true})");
  const auto spec = read_tokenizer_folder(dir.path(), text::kBertKind);
  EXPECT_FALSE(spec.normalizer->lowercase);
  EXPECT_EQ(spec.normalizer->strip_accents, true);
}

TEST(TokenizerFolder, LimitsOfCallsAreLeftOut) {
  const TempDir dir;
  dir.write("vocab.txt", kBertPieces);
  const auto spec = read_tokenizer_folder(dir.path(), text::kBertKind);
  auto json = nlohmann::json::parse(json_of(spec));
  json["truncation"] = {{"max_length", 128}};
  json["padding"] = {{"strategy", "BatchLongest"}};
  dir.write("tokenizer.json", json.dump());
  EXPECT_EQ(json_of(read_tokenizer_folder(dir.path(), text::kBertKind)), json_of(spec));
}

TEST(TokenizerFolder, WhatIsWrittenReadsBack) {
  const TempDir bert, out, roberta, bytes;
  bert.write("vocab.txt", kBertPieces);
  const auto spec = read_tokenizer_folder(bert.path(), text::kBertKind);
  write_all(out, tokenizer_files(spec, 16, 2));
  EXPECT_EQ(json_of(read_tokenizer_folder(out.path(), text::kBertKind)), json_of(spec));
  roberta.write("vocab.json",
                R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "ab": 6})");
  roberta.write("merges.txt", "#version: 0.2\na b\n");
  const auto pieces = read_tokenizer_folder(roberta.path(), text::kRobertaKind);
  EXPECT_EQ(pieces.sequences.single.size(), 3U);
  const auto files = tokenizer_files(pieces, 16, 1);
  const auto config = nlohmann::json::parse(files.at("tokenizer_config.json"));
  EXPECT_EQ(config["pad_token"], "<pad>");
  EXPECT_EQ(config["model_input_names"].size(), 2U);  // no segments
  write_all(bytes, files);
  EXPECT_EQ(json_of(read_tokenizer_folder(bytes.path(), text::kRobertaKind)), json_of(pieces));
}

// A class without segments takes no token_type_ids, and one with a single segment no second one.
TEST(TokenizerFolder, SegmentsAreThoseOfTheModel) {
  const TempDir dir, out;
  dir.write("vocab.txt", kBertPieces);
  const auto spec = read_tokenizer_folder(dir.path(), text::kBertKind);
  const auto inputs = [&](int64_t num_segments) {
    const auto files = tokenizer_files(spec, 16, num_segments);
    return nlohmann::json::parse(files.at("tokenizer_config.json"))["model_input_names"].size();
  };
  EXPECT_EQ(inputs(2), 3U);
  EXPECT_EQ(inputs(1), 2U);
  EXPECT_EQ(inputs(0), 2U);
  write_all(out, tokenizer_files(spec, 16, 0));
  const auto again = read_tokenizer_folder(out.path(), text::kBertKind);
  EXPECT_EQ(again.sequences.pair.size(), spec.sequences.pair.size());
  for (const auto& slot : again.sequences.pair) EXPECT_EQ(slot.segment, 0);
}

TEST(TokenizerFolder, TwoThatDisagreeAreRefused) {
  const TempDir dir;
  dir.write("vocab.txt", kBertPieces);
  dir.write("tokenizer.json", json_of(read_tokenizer_folder(dir.path(), text::kBertKind)));
  read_tokenizer_folder(dir.path(), text::kBertKind);
  const auto refused = [&] {
    return std::string(failure(ExitCode::kBadData, [&] {
                         read_tokenizer_folder(dir.path(), text::kBertKind);
                       }).what());
  };
  dir.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhouse\nred\n##s\n");
  EXPECT_NE(refused().find("disagree"), std::string::npos);
  dir.write("vocab.txt", std::string(kBertPieces) + "more\n");
  EXPECT_NE(refused().find("`more`"), std::string::npos);
  dir.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\nhouse\n");
  EXPECT_NE(refused().find("8 pieces, and 7"), std::string::npos);
  dir.write("vocab.txt", kBertPieces);
  dir.write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_NE(refused().find("do_lower_case"), std::string::npos);
  for (const char* key : {"strip_accents", "tokenize_chinese_chars"}) {
    dir.write("tokenizer_config.json", "{\"" + std::string(key) + "\": false}");
    EXPECT_NE(refused().find(key), std::string::npos);
    dir.write("tokenizer_config.json", "{\"" + std::string(key) + "\": true}");
    read_tokenizer_folder(dir.path(), text::kBertKind);
  }
  dir.write("tokenizer_config.json", "{}");
  dir.write("vocab.json", "{}");
  EXPECT_NE(refused().find("two kinds"), std::string::npos);
}

TEST(TokenizerFolder, FoldersWithoutOneAreRefused) {
  const TempDir dir;
  failure(ExitCode::kUsage, [&] { read_tokenizer_folder(dir.path(), text::kBertKind); });
  dir.write("vocab.json", R"({"a": 0})");
  failure(ExitCode::kUsage,
          [&] { read_tokenizer_folder(dir.path(), text::kRobertaKind); });  // no merges.txt
  dir.write("tokenizer_config.json", "[]");
  failure(ExitCode::kBadData, [&] { read_tokenizer_folder(dir.path(), text::kRobertaKind); });
}

// Without them every text would be encoded otherwise than the model was trained.
TEST(TokenizerFolder, TokensAroundATextMustBeKnown) {
  const auto problem = [](const TempDir& dir, const text::PretrainedKind& kind) {
    return std::string(
        failure(ExitCode::kBadData, [&] { read_tokenizer_folder(dir.path(), kind); }).what());
  };
  const TempDir dir, bytes;
  dir.write("vocab.txt", "[PAD]\n[UNK]\n[SEP]\nred\n");
  EXPECT_NE(problem(dir, text::kBertKind).find("vocab.txt: has no `[CLS]`, and the model expects"),
            std::string::npos);
  dir.write("vocab.txt", "[PAD]\n[UNK]\nred\n");
  EXPECT_NE(problem(dir, text::kBertKind).find("has no `[CLS]` and no `[SEP]`"), std::string::npos);
  dir.write("added_tokens.json", R"({"[CLS]": 3, "[SEP]": 4})");
  EXPECT_EQ(read_tokenizer_folder(dir.path(), text::kBertKind).sequences.single.size(), 3U);
  bytes.write("vocab.json", R"({"<pad>": 0, "<unk>": 1, "a": 2, "b": 3, "ab": 4})");
  bytes.write("merges.txt", "#version: 0.2\na b\n");
  EXPECT_NE(problem(bytes, text::kRobertaKind).find("vocab.json: has no `<s>` and no `</s>`"),
            std::string::npos);
}

/// A kind that no file here names: a beginning before a text, and nothing behind it.
constexpr std::string_view kEdges[] = {"<s>", "</s>"};
constexpr text::PretrainedKind kBeginningAlone{.model = text::TokenizerSpec::Model::kByteBpe,
                                               .specials = kEdges,
                                               .single = "<s> $A",
                                               .pair = "<s> $A <s> $B:1"};

TEST(TokenizerFolder, AFurtherKindIsARow) {
  const TempDir dir;
  dir.write("vocab.json", R"({"<s>": 0, "</s>": 1, "a": 2, "b": 3, "ab": 4})");
  dir.write("merges.txt", "#version: 0.2\na b\n");
  const auto spec = read_tokenizer_folder(dir.path(), kBeginningAlone);
  EXPECT_EQ(spec.added.size(), 2U);
  EXPECT_EQ(spec.sequences.single.size(), 2U);
  EXPECT_EQ(spec.sequences.pair.back().segment, 1);
  EXPECT_FALSE(spec.trim_offsets.has_value());
  dir.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  const auto error =
      failure(ExitCode::kBadData, [&] { read_tokenizer_folder(dir.path(), kBeginningAlone); });
  EXPECT_NE(error.message().find("has no `<s>`, and the model expects `<s>text`"),
            std::string::npos)
      << error.message();
}

// GPT-2's: the text alone, so that nothing can be missing around it.
TEST(TokenizerFolder, AKindMayHaveNoTemplate) {
  const TempDir dir;
  dir.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  dir.write("merges.txt", "#version: 0.2\na b\n");
  auto kind = kBeginningAlone;
  kind.single = kind.pair = "";
  EXPECT_EQ(read_tokenizer_folder(dir.path(), kind).sequences, text::SequenceTemplate());
}

}  // namespace
}  // namespace stretto::interchange
