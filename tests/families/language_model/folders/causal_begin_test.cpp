#include "families/language_model/folders/causal_begin.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::interchange {
namespace {

using stretto::testing::TempDir;
using Ids = std::vector<int64_t>;

text::TokenizerSpec small_spec(const Ids& front = {}) {
  text::TokenizerSpec spec;
  spec.vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}, {"a", 3}};
  spec.sequences.set_front(front);
  return spec;
}

/// What stands in front of a text by a folder with this tokenizer_config.json.
Ids front_by(const std::string& config, const Ids& of_template = {},
             const CausalClass& its = kGpt2) {
  const TempDir folder;
  if (!config.empty()) folder.write("tokenizer_config.json", config);
  auto spec = small_spec(of_template);
  set_causal_begin(folder.path(), its, spec);
  return spec.sequences.front();
}

TEST(CausalBegin, IsThatOfTheTemplate) {
  for (const char* config : {"", "{}", R"({"tokenizer_class": "PreTrainedTokenizerFast"})",
                             R"({"tokenizer_class": "GPT2Tokenizer", "add_bos_token": false})"}) {
    EXPECT_EQ(front_by(config), Ids{}) << config;
    EXPECT_EQ(front_by(config, {1}), Ids{1}) << config;
  }
  EXPECT_EQ(front_by("{}", {}, kQwen2), Ids{});
  EXPECT_EQ(front_by(R"({"tokenizer_class": "PreTrainedTokenizerFast"})", {2}, kLlama), Ids{2});
}

TEST(CausalBegin, LlamasClassesBeginByThemselves) {
  EXPECT_EQ(front_by(R"({"tokenizer_class": "LlamaTokenizerFast"})"), Ids{1});
  EXPECT_EQ(front_by(R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "a"})", {1}), Ids{3});
  EXPECT_EQ(front_by(R"({"tokenizer_class": "LlamaTokenizer", "bos_token": {"content": "</s>"}})"),
            Ids{2});
  EXPECT_EQ(front_by(R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false})", {1}),
            Ids{});
  for (const CausalClass* its : {&kLlama, &kMistral}) {
    EXPECT_EQ(front_by("", {}, *its), Ids{1}) << "AutoTokenizer takes Llama's class";
    EXPECT_EQ(front_by(R"({"add_bos_token": false})", {1}, *its), Ids{});
  }
}

TEST(CausalBegin, ATokenThatIsNotThereIsRefused) {
  const auto refused = stretto::testing::failure(
      ExitCode::kBadData, [] { front_by(R"({"bos_token": "<b>"})", {}, kLlama); });
  EXPECT_NE(refused.message().find("`<b>`, which is not in the vocabulary"), std::string::npos);
}

TEST(CausalBegin, PairsBeginAsTextsDo) {
  auto spec = small_spec({1});
  ASSERT_EQ(spec.sequences.pair.size(), 3U);
  EXPECT_EQ(spec.sequences.pair.front().id, 1);
  spec.sequences.set_front({2, 1});
  EXPECT_EQ(spec.sequences.front(), (Ids{2, 1}));
  spec.sequences.set_front({});
  EXPECT_EQ(spec.sequences, text::SequenceTemplate{});
}

}  // namespace
}  // namespace stretto::interchange
