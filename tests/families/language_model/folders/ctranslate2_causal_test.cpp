#include "families/language_model/folders/ctranslate2_causal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/families/language_model/folders/small_llama.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::SmallLlama;
using stretto::testing::TempDir;

TEST(CTranslate2Causal, AFolderHasModelConfigVocabularyAndTokenizer) {
  const SmallLlama llama;
  const TempDir place;
  export_ctranslate2_causal(llama.model, StoredWeights::kFloat32, place / "out");
  const auto config = nlohmann::json::parse(read_file(place / "out/config.json"));
  EXPECT_EQ(config.at("bos_token"), "<s>");
  EXPECT_EQ(config.at("unk_token"), "<unk>");
  EXPECT_EQ(config.at("multi_query_attention"), true);
  const auto pieces = nlohmann::json::parse(read_file(place / "out/vocabulary.json"));
  ASSERT_EQ(pieces.size(), 12u);
  EXPECT_EQ(pieces[9], "▁ab");
  EXPECT_TRUE(std::filesystem::exists(place / "out/tokenizer.json"));
  const std::string model = read_file(place / "out/model.bin");
  for (const char* name :
       {"TransformerDecoderSpec", "decoder/layer_0/ffn/linear_0_noact/weight",
        "decoder/layer_0/self_attention/num_heads_kv", "decoder/projection/weight"}) {
    EXPECT_NE(model.find(name), std::string::npos) << name;
  }
}

TEST(CTranslate2Causal, WhatItCannotExpressIsRefused) {
  SmallLlama llama;
  auto& options = llama.model.description.model;
  EXPECT_EQ(ctranslate2_incompatibility(options), "");
  options.positions = "alibi";
  EXPECT_NE(ctranslate2_incompatibility(options).find("model.positions"), std::string::npos);
  const TempDir place;
  failure(ExitCode::kUsage,
          [&] { export_ctranslate2_causal(llama.model, StoredWeights::kFloat32, place / "out"); });
  EXPECT_TRUE(std::filesystem::is_empty(place.path()));
  options.positions = "rotary";
  options.activation = "relu_squared";
  EXPECT_NE(ctranslate2_incompatibility(options).find("relu_squared"), std::string::npos);
}

}  // namespace
}  // namespace stretto::interchange
