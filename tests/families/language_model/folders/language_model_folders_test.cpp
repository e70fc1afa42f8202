#include "families/language_model/folders/language_model_folders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "families/language_model/language_model_options.h"
#include "interchange/model_folders.h"
#include "tests/base/temp_dir.h"
#include "tests/families/language_model/folders/causal_config.h"

namespace stretto::interchange {
namespace {

using stretto::testing::gpt2_config;
using stretto::testing::llama_config;
using stretto::testing::TempDir;

experiment::OtherModel described_causal(const nlohmann::json& config) {
  const TempDir folder;
  folder.write("config.json", config.dump());
  return language_model_folders().describe(folder.path(), {});
}

TEST(LanguageModelFolders, AFolderDescribesAModelByItsConfigAlone) {
  const auto found = described_causal(llama_config());
  ASSERT_TRUE(found.options.task.is<experiment::LanguageModelOptions>());
  const auto& sections = found.options.task.as<experiment::LanguageModelOptions>();
  const auto& model = sections.model.as<models::CausalTransformerOptions>();
  EXPECT_EQ(model.d_model, 8);
  EXPECT_EQ(model.num_kv_heads, 1);
  EXPECT_EQ(model.positions, "rotary");
  EXPECT_EQ(sections.data.max_text_tokens, 32) << "as many as there are positions";
  EXPECT_EQ(sections.decode.text_begin, "tokenizer");
  EXPECT_EQ(std::ranges::count(found.tensors, "output.weight"), 1);
  EXPECT_EQ(std::ranges::count(found.tensors, "decoder.layers.1.ffn.down.weight"), 1);
}

TEST(LanguageModelFolders, LongModelsReadTextsOfAUsualLength) {
  auto config = gpt2_config();
  config["n_positions"] = 100'000;
  const auto found = described_causal(config);
  const auto& sections = found.options.task.as<experiment::LanguageModelOptions>();
  EXPECT_EQ(sections.data.max_text_tokens, 1024);
  EXPECT_GE(sections.data.max_tokens, 1024);
}

}  // namespace
}  // namespace stretto::interchange
