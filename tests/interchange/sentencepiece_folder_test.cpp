#include "interchange/sentencepiece_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/fuzz/small_sentencepiece.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::small_sentencepiece;
using stretto::testing::TempDir;
using Part = text::SequenceTemplate::Part;
using Prefix = text::TokenizerSpec::SpacePrefix;

/// @param config  tokenizer_config.json; empty = there is none
text::TokenizerSpec read_model_with(const std::string& config) {
  const TempDir dir;
  dir.write("tokenizer.model", small_sentencepiece());
  if (!config.empty()) dir.write("tokenizer_config.json", config);
  return read_sentencepiece_folder(dir.path());
}

std::string refused_with(const std::string& config) {
  return failure(ExitCode::kBadData, [&] { read_model_with(config); }).message();
}

/// Ids around one text; -1 is the text.
std::vector<int64_t> around_text(const text::TokenizerSpec& spec) {
  std::vector<int64_t> ids;
  for (const auto& slot : spec.sequences.single) {
    ids.push_back(slot.part == Part::kSpecial ? slot.id : -1);
  }
  return ids;
}

TEST(SentencePieceFolder, WithoutSettingsEachTextHasABeginningAndAMark) {
  const auto spec = read_model_with("");
  EXPECT_EQ(around_text(spec), (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(spec.space_prefix, Prefix::kDoubled);
  EXPECT_TRUE(spec.decoder_strips);
  for (const char* token : {"<unk>", "<s>", "</s>"}) {
    EXPECT_TRUE(std::ranges::any_of(spec.added, [&](const auto& added) {
      return added.content == token && added.special;
    })) << token;
  }
}

TEST(SentencePieceFolder, SettingsSayWhatStandsAroundTexts) {
  EXPECT_EQ(around_text(read_model_with(R"({"add_bos_token": false})")), std::vector<int64_t>{-1});
  EXPECT_EQ(around_text(read_model_with(R"({"add_eos_token": true, "eos_token": "</s>"})")),
            (std::vector<int64_t>{1, -1, 2}));
  EXPECT_EQ(around_text(read_model_with(R"({"bos_token": {"content": "</s>"}})")),
            (std::vector<int64_t>{2, -1}));
}

TEST(SentencePieceFolder, SettingsSayWhereMarksStand) {
  EXPECT_EQ(read_model_with(R"({"legacy": false})").space_prefix, Prefix::kFirst);
  EXPECT_EQ(read_model_with(R"({"legacy": null})").space_prefix, Prefix::kDoubled);
  const auto bare = read_model_with(R"({"add_prefix_space": false})");
  EXPECT_EQ(bare.space_prefix, Prefix::kNever);
  EXPECT_FALSE(bare.decoder_strips);
}

TEST(SentencePieceFolder, TokensMayBeAddedBehindTheModel) {
  const auto spec = read_model_with(
      R"({"added_tokens_decoder": {"16": {"content": "[INST]", "special": true}}})");
  EXPECT_TRUE(std::ranges::any_of(
      spec.added, [](const auto& token) { return token.content == "[INST]" && token.id == 16; }));
}

TEST(SentencePieceFolder, AnotherClassAndAnUnknownBeginningAreRefused) {
  EXPECT_NE(refused_with(R"({"tokenizer_class": "GemmaTokenizer"})").find("`GemmaTokenizer`"),
            std::string::npos);
  EXPECT_NE(refused_with(R"({"bos_token": "<begin>"})").find("has no `<begin>`, the bos_token"),
            std::string::npos);
  EXPECT_EQ(around_text(read_model_with(R"({"bos_token": "<begin>", "add_bos_token": false})")),
            std::vector<int64_t>{-1});
}

}  // namespace
}  // namespace stretto::interchange
