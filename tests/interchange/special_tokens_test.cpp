#include "interchange/special_tokens.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "interchange/tokenizer_folder.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::TempDir;

constexpr const char* kNameFiles[] = {"tokenizer_config.json", "special_tokens_map.json"};
constexpr const char* kPiecesOfBert = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\nhouse\n##s\n";

/// A folder with a tokenizer, and what read_tokenizer_folder() says of it.
class NamedSpecialTokens : public ::testing::Test {
 protected:
  text::TokenizerSpec read() const { return read_tokenizer_folder(dir_.path(), *kind_); }

  void write_bert(const std::string& pieces = kPiecesOfBert) { dir_.write("vocab.txt", pieces); }
  void write_roberta() {
    kind_ = &text::kRobertaKind;
    dir_.write("vocab.json",
               R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "a": 5, "b": 6})");
    dir_.write("merges.txt", "#version: 0.2\n");
  }
  /// tokenizer.json of the files that are there, beside them.
  void add_json() const { dir_.write("tokenizer.json", text::write_tokenizer_json(read())); }

  /// The error of the folder in which `file` alone names tokens.
  std::string refused(const char* file, const std::string& names) const {
    dir_.write(file, names);
    const auto error = failure(ExitCode::kBadData, [&] { read(); });
    dir_.write(file, "{}");
    EXPECT_NE(error.message().find(dir_.path().string() + "/" + file), std::string::npos);
    EXPECT_LT(error.message().size(), 500U);
    return error.what();
  }
  void accepted(const char* file, const std::string& names) const {
    dir_.write(file, names);
    EXPECT_NO_THROW(read()) << names;
    dir_.write(file, "{}");
  }

  TempDir dir_;
  const text::PretrainedKind* kind_ = &text::kBertKind;
};

/// What a name of a key says.
std::string names_json(const std::string& key, const std::string& token) {
  return nlohmann::json{{key, token}}.dump();
}

// As the folders of MiniLM-L6 and of BERT have them; bos_token and eos_token mean nothing to BERT.
TEST_F(NamedSpecialTokens, OfBertAgree) {
  write_bert();
  for (const bool has_json : {false, true}) {
    if (has_json) add_json();
    for (const char* file : kNameFiles) {
      accepted(file,
               R"({"do_lower_case": true, "unk_token": "[UNK]", "sep_token": "[SEP]",
                   "pad_token": "[PAD]", "cls_token": "[CLS]", "mask_token": "[MASK]",
                   "strip_accents": null, "never_split": null, "model_max_length": 512})");
      accepted(file,
               R"({"cls_token": {"content": "[CLS]", "lstrip": false, "normalized": false,
                                 "rstrip": false, "single_word": false},
                   "sep_token": null, "pad_token": "", "bos_token": "<s>", "eos_token": 5,
                   "additional_special_tokens": ["[X]"]})");
    }
  }
}

TEST_F(NamedSpecialTokens, OfRobertaAgree) {
  write_roberta();
  for (const bool has_json : {false, true}) {
    if (has_json) add_json();
    for (const char* file : kNameFiles) {
      accepted(file,
               R"({"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>",
                   "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>",
                   "mask_token": {"__type": "AddedToken", "content": "<mask>", "lstrip": true}})");
      accepted(file, names_json("unk_token", "<oov>"));  // bytes spell every text
    }
  }
}

TEST_F(NamedSpecialTokens, ThatAreOthersAreRefused) {
  write_bert();
  for (const bool has_json : {false, true}) {
    if (has_json) add_json();
    const std::string source = has_json ? "tokenizer.json" : "vocab.txt";
    for (const char* file : kNameFiles) {
      EXPECT_NE(refused(file, names_json("cls_token", "[FIRST]"))
                    .find("`cls_token` is `[FIRST]`, which is not in the vocabulary; " + source +
                          " has `[CLS]` for it"),
                std::string::npos);
      EXPECT_NE(refused(file, names_json("sep_token", "house"))
                    .find("`sep_token` is `house`, and " + source + " has `[SEP]` for it"),
                std::string::npos);
      EXPECT_NE(refused(file, names_json("pad_token", "[UNK]")).find("`[PAD]`"), std::string::npos);
      EXPECT_NE(refused(file, names_json("unk_token", "[PAD]")).find("`[UNK]`"), std::string::npos);
      EXPECT_NE(refused(file, R"({"mask_token": {"content": "red"}})").find("`[MASK]`"),
                std::string::npos);
    }
  }
}

// The one file does not make up for the other.
TEST_F(NamedSpecialTokens, OfBothFilesAreCompared) {
  write_bert();
  dir_.write("special_tokens_map.json", names_json("cls_token", "[CLS]"));
  refused("tokenizer_config.json", names_json("cls_token", "[SEP]"));
}

TEST_F(NamedSpecialTokens, BeginAndEndOfBytesCountWhereNothingElseIsNamed) {
  write_roberta();
  add_json();
  for (const char* file : kNameFiles) {
    EXPECT_NE(refused(file, names_json("bos_token", "a")).find("`bos_token` is `a`"),
              std::string::npos);
    EXPECT_NE(refused(file, names_json("eos_token", "<end>")).find("not in the vocabulary"),
              std::string::npos);
    accepted(file, R"({"cls_token": "<s>", "bos_token": "<|endoftext|>", "sep_token": "</s>",
                       "eos_token": "<|endoftext|>"})");
  }
}

// transformers names its own ones whether a vocabulary has them or not, and adds them to old files.
TEST_F(NamedSpecialTokens, ThatNoTextHasMayBeMissingInOldFiles) {
  write_bert("[UNK]\n[CLS]\n[SEP]\nred\n");
  const std::string names = R"({"pad_token": "[PAD]", "mask_token": "[MASK]"})";
  accepted(kNameFiles[0], names);
  add_json();
  EXPECT_NE(refused(kNameFiles[0], names).find("tokenizer.json has no token for it"),
            std::string::npos);
}

TEST_F(NamedSpecialTokens, OfOldFilesHaveTheNamesOfBert) {
  write_bert("[PAD]\n[UNK]\n[FIRST]\n[LAST]\nred\n");
  const auto what = refused(kNameFiles[0], names_json("cls_token", "[FIRST]"));
  EXPECT_NE(what.find("`[FIRST]`, and vocab.txt has no token for it"), std::string::npos) << what;
}

TEST_F(NamedSpecialTokens, MayStandBesideOthersAroundAText) {
  write_bert();
  auto spec = read();
  auto& single = spec.sequences.single;
  ASSERT_EQ(single.size(), 3U);
  single.insert(single.begin() + 1,
                {.part = text::SequenceTemplate::Part::kSpecial, .id = 5, .segment = 0});
  dir_.write("tokenizer.json", text::write_tokenizer_json(spec));
  accepted(kNameFiles[0], names_json("cls_token", "[CLS]"));
  accepted(kNameFiles[0], names_json("cls_token", "red"));
  EXPECT_NE(refused(kNameFiles[0], names_json("cls_token", "house")).find("has `[CLS]`, `red`"),
            std::string::npos);
}

TEST_F(NamedSpecialTokens, FilesThatAreBrokenAreRefused) {
  write_bert();
  for (const char* file : kNameFiles) {
    for (const char* broken : {"[]", "5", "\"[CLS]\"", "null", "{", "", R"({"cls_token": 5})",
                               R"({"cls_token": ["[CLS]"]})", R"({"cls_token": {"content": 5}})",
                               R"({"cls_token": {}})", R"({"mask_token": true})"}) {
      refused(file, broken);
    }
    refused(file, R"({"cls_token": {"content": )" + std::string(100, '[') + "]}");
    EXPECT_EQ(refused(file, names_json("cls_token", "\x1b[2J")).find('\x1b'), std::string::npos);
    EXPECT_LT(refused(file, names_json("cls_token", std::string(100'000, 'a'))).size(), 500U);
  }
}

}  // namespace
}  // namespace stretto::interchange
