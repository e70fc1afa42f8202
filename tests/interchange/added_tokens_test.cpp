#include "interchange/added_tokens.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "interchange/tokenizer_folder.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "text/tokenizer.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::TempDir;

/// A folder without tokenizer.json: eight tokens of BERT, or seven of RoBERTa.
class AddedTokensOfAFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\nhouse\n##s\n");
  }
  void write_roberta() {
    std::filesystem::remove(dir_ / "vocab.txt");
    kind_ = &text::kRobertaKind;
    dir_.write("vocab.json",
               R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "Ġ": 6})");
    dir_.write("merges.txt", "#version: 0.2\n");
  }

  text::TokenizerSpec read() const { return read_tokenizer_folder(dir_.path(), *kind_); }
  std::vector<int64_t> ids(const std::string& line) const {
    std::vector<int64_t> found;
    text::make_spec_tokenizer(read(), "a folder", 0)->encode(line, found);
    return found;
  }

  std::string refused() const {
    const auto error = failure(ExitCode::kBadData, [&] { read(); });
    EXPECT_LT(error.message().size(), 500U);
    return error.what();
  }
  /// The error of a folder in which added_tokens.json, or the decoder, is this.
  std::string refused_list(const std::string& json) const {
    dir_.write("added_tokens.json", json);
    const auto what = refused();
    EXPECT_NE(what.find("added_tokens.json"), std::string::npos) << what;
    dir_.write("added_tokens.json", "{}");
    return what;
  }
  std::string refused_decoder(const std::string& json) const {
    dir_.write("tokenizer_config.json", R"({"added_tokens_decoder": )" + json + "}");
    const auto what = refused();
    EXPECT_NE(what.find("tokenizer_config.json: `added_tokens_decoder"), std::string::npos) << what;
    return what;
  }

  TempDir dir_;
  const text::PretrainedKind* kind_ = &text::kBertKind;
};

const text::AddedToken* added_token(const text::TokenizerSpec& spec, const std::string& content) {
  for (const auto& token : spec.added) {
    if (token.content == content) return &token;
  }
  return nullptr;
}

TEST_F(AddedTokensOfAFolder, OfTheListStandBehindTheVocabulary) {
  dir_.write("added_tokens.json", R"({"[E2]": 9, "[E1]": 8, "red": 5})");
  dir_.write("special_tokens_map.json",
             R"({"additional_special_tokens": ["[E1]", {"content": "[X]"}]})");
  EXPECT_EQ(ids("red[E1] House [e2]"), (std::vector<int64_t>{5, 8, 6, 9}));
  const auto spec = read();
  ASSERT_NE(added_token(spec, "[E1]"), nullptr);
  EXPECT_EQ(*added_token(spec, "[E1]"),
            (text::AddedToken{.content = "[E1]", .id = 8, .normalized = false, .special = true}));
  EXPECT_EQ(*added_token(spec, "[E2]"), (text::AddedToken{.content = "[E2]", .id = 9}));
  // The run's own tokenizer.json is made of them.
  const auto again = text::parse_tokenizer_json(text::write_tokenizer_json(spec), "again");
  EXPECT_EQ(again.added, spec.added);
}

TEST_F(AddedTokensOfAFolder, OfTheDecoderHaveTheFlagsThatStandThere) {
  dir_.write("tokenizer_config.json",
             R"({"added_tokens_decoder": {
                   "4": {"content": "[MASK]", "lstrip": true, "normalized": false, "special": true},
                   "9": {"__type": "AddedToken", "content": "ab", "single_word": true},
                   "8": {"content": "[E1]", "rstrip": true, "normalized": false}}})");
  dir_.write("added_tokens.json", R"({"ab": 9, "[E1]": 8})");
  const auto spec = read();
  EXPECT_EQ(
      *added_token(spec, "[MASK]"),
      (text::AddedToken{
          .content = "[MASK]", .id = 4, .lstrip = true, .normalized = false, .special = true}));
  EXPECT_EQ(*added_token(spec, "[E1]"),
            (text::AddedToken{.content = "[E1]", .id = 8, .rstrip = true, .normalized = false}));
  EXPECT_EQ(*added_token(spec, "ab"),
            (text::AddedToken{.content = "ab", .id = 9, .single_word = true}));
  EXPECT_EQ(ids("ab abred[E1] red"), (std::vector<int64_t>{9, 1, 8, 5}));
}

// Old vocabularies lack tokens that their class has.
TEST_F(AddedTokensOfAFolder, MayBeTheSpecialOnes) {
  dir_.write("vocab.txt", "[PAD]\n[UNK]\nred\n");
  dir_.write("added_tokens.json", R"({"[CLS]": 3, "[SEP]": 4, "[MASK]": 5})");
  dir_.write("tokenizer_config.json", R"({"cls_token": "[CLS]", "mask_token": "[MASK]"})");
  const auto tokenizer = text::make_spec_tokenizer(read(), "a folder", 0);
  EXPECT_EQ(tokenizer->specials().mask, 5);
  const auto sequences = tokenizer->sequences();
  ASSERT_EQ(sequences.single.size(), 3U);
  EXPECT_EQ(sequences.single.front().id, 3);
  EXPECT_EQ(sequences.single.back().id, 4);
  EXPECT_EQ(tokenizer->decode({3, 2, 5, 4}), "red");
}

TEST_F(AddedTokensOfAFolder, OfBytesAreReadToo) {
  write_roberta();
  dir_.write("added_tokens.json", R"({"<mask>": 7})");
  EXPECT_EQ(ids("a<mask>b"), (std::vector<int64_t>{4, 7, 5}));
  EXPECT_EQ(text::make_spec_tokenizer(read(), "a folder", 0)->specials().mask, 7);
}

TEST_F(AddedTokensOfAFolder, ThatContradictTheVocabularyAreRefused) {
  EXPECT_NE(refused_list(R"({"red": 6})").find("`red` has the id 6, and 5 in vocab.txt"),
            std::string::npos);
  EXPECT_NE(refused_list(R"({"[E1]": 5})")
                .find("`[E1]` has the id 5, and 8 behind the vocabulary of vocab.txt"),
            std::string::npos);
  EXPECT_NE(refused_list(R"({"[E1]": 8, "[E2]": 10})").find("`[E2]` has the id 10, and 9"),
            std::string::npos);
  EXPECT_NE(refused_decoder(R"({"7": {"content": "house"}})")
                .find("`added_tokens_decoder.7` is `house`, which has the id 6 in vocab.txt"),
            std::string::npos);
  EXPECT_NE(refused_decoder(R"({"8": {"content": "[E1]"}, "9": {"content": "[E1]"}})")
                .find("`added_tokens_decoder.9` is `[E1]`, which has the id 8"),
            std::string::npos);
  dir_.write("tokenizer_config.json", R"({"added_tokens_decoder": {"8": {"content": "[E1]"}}})");
  EXPECT_NE(refused_list(R"({"[E1]": 9})")
                .find("`[E1]` has the id 9, and in tokenizer_config.json `added_tokens_decoder.8`"),
            std::string::npos);
}

// transformers reads added_tokens.json only where the other file has no such key.
TEST_F(AddedTokensOfAFolder, OfTheListAloneAreNoTokensBesideADecoder) {
  dir_.write("tokenizer_config.json", R"({"added_tokens_decoder": {}})");
  dir_.write("added_tokens.json", R"({"[E1]": 8})");
  EXPECT_EQ(added_token(read(), "[E1]"), nullptr);
}

TEST_F(AddedTokensOfAFolder, BesideATokenizerJsonAreItsOwn) {
  dir_.write("tokenizer.json", text::write_tokenizer_json(read()));
  dir_.write("added_tokens.json", R"({"[E1]": 5)");
  dir_.write("tokenizer_config.json", R"({"added_tokens_decoder": {"8": {"content": "[E1]"}}})");
  EXPECT_EQ(added_token(read(), "[E1]"), nullptr);
}

TEST_F(AddedTokensOfAFolder, ThatAreBrokenAreRefused) {
  for (const char* broken :
       {"[]", "5", "{", "", R"({"[E1]": -1})", R"({"[E1]": "8"})", R"({"[E1]": null})",
        R"({"[E1]": 8.5})", R"({"[E1]": 99999999999})", R"({"": 8})"}) {
    refused_list(broken);
  }
  for (const char* broken :
       {"[]", "5", R"("8")", R"({"x": {"content": "[E1]"}})", R"({"-8": {"content": "[E1]"}})",
        R"({"": {"content": "[E1]"}})", R"({"8": "[E1]"})", R"({"8": {}})",
        R"({"8": {"content": ""}})", R"({"8": {"content": 5}})",
        R"({"8": {"content": "[E1]", "lstrip": 1}})",
        R"({"99999999999999999999": {"content": "[E1]"}})"}) {
    refused_decoder(broken);
  }
  EXPECT_EQ(refused_decoder(R"({"\u001b[2J": {"content": "[E1]"}})").find('\x1b'),
            std::string::npos);
  dir_.write("tokenizer_config.json", "{}");
  refused_list("{\"" + std::string(100'000, 'a') + "\": 5}");
}

TEST_F(AddedTokensOfAFolder, AreReadInLinearTime) {
  nlohmann::json tokens;
  for (int i = 0; i < 100'000; ++i) tokens["[" + std::to_string(i) + "]"] = 8 + i;
  // Sorted by id, as the ids of a vocabulary are.
  dir_.write("added_tokens.json", tokens.dump());
  const auto begin = std::clock();
  EXPECT_EQ(read().added.size(), 100'005U);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 8.0);
}

TEST_F(AddedTokensOfAFolder, Have64KiBAtMost) {
  const std::string most(65536, 'x'), more(65537, 'x');
  dir_.write("added_tokens.json", "{\"" + most + "\": 8}");
  EXPECT_NO_THROW(read());
  EXPECT_NE(refused_list("{\"" + more + "\": 8}").find("at most 65,536"), std::string::npos);
}

}  // namespace
}  // namespace stretto::interchange
