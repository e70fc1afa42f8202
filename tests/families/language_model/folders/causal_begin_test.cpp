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
Ids front_by(const std::string& config, const Ids& of_template = {}) {
  const TempDir folder;
  folder.write("tokenizer_config.json", config);
  folder.write("tokenizer.json", "{}");
  auto spec = small_spec(of_template);
  set_causal_begin(folder.path(), spec);
  return spec.sequences.front();
}

TEST(CausalBegin, IsThatOfTheTemplateUnlessTheConfigDecides) {
  EXPECT_EQ(front_by("{}"), Ids{});
  EXPECT_EQ(front_by("{}", {1}), Ids{1});
  EXPECT_EQ(front_by(R"({"add_bos_token": true, "bos_token": "<s>"})"), Ids{1});
  EXPECT_EQ(front_by(R"({"add_bos_token": true, "bos_token": {"content": "</s>"}})", {1}), Ids{2});
  EXPECT_EQ(front_by(R"({"add_bos_token": false, "bos_token": "<s>"})", {1}), Ids{});
  EXPECT_EQ(front_by(R"({"add_bos_token": null, "bos_token": "<s>"})"), Ids{});
}

TEST(CausalBegin, LlamasClassesBeginByThemselves) {
  EXPECT_EQ(front_by(R"({"tokenizer_class": "LlamaTokenizerFast"})"), Ids{1});
  EXPECT_EQ(front_by(R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "a"})"), Ids{3});
  EXPECT_EQ(front_by(R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false})"), Ids{});
  EXPECT_EQ(front_by(R"({"tokenizer_class": "GPT2Tokenizer", "bos_token": "</s>"})"), Ids{});
  const TempDir folder;
  auto spec = small_spec();
  set_causal_begin(folder.path(), spec);
  EXPECT_EQ(spec.sequences.front(), Ids{});
  folder.write("tokenizer.model", "");
  set_causal_begin(folder.path(), spec);
  EXPECT_EQ(spec.sequences.front(), Ids{1}) << "a tokenizer.model alone is one of Llama's";
}

TEST(CausalBegin, ATokenThatIsNotThereIsRefused) {
  const auto refused = [](const std::string& config) {
    return stretto::testing::failure(ExitCode::kBadData, [&] { front_by(config); }).message();
  };
  EXPECT_NE(refused(R"({"add_bos_token": true})").find("no bos_token is named"), std::string::npos);
  EXPECT_NE(refused(R"({"add_bos_token": true, "bos_token": "<b>"})").find("has no `<b>`"),
            std::string::npos);
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
