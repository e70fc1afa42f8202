#include "families/language_model/folders/gguf_causal.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "families/language_model/folders/gguf_tokenizer.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/families/language_model/folders/small_llama.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::SmallLlama;
using stretto::testing::TempDir;

using Rows = std::vector<float>;

/// Row `row` of a matrix [rows, columns].
Rows row_of(const Rows& matrix, size_t row, size_t columns) {
  return {matrix.begin() + static_cast<std::ptrdiff_t>(row * columns),
          matrix.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns)};
}

Rows floats_at(const std::string& bytes, size_t place, size_t count) {
  Rows values(count);
  std::memcpy(values.data(), bytes.data() + place, count * sizeof(float));
  return values;
}

TEST(GgufCausal, PairsOfAHeadStandBesideEachOther) {
  const SmallLlama llama;
  const TempDir folder;
  export_gguf_causal(llama.model, StoredWeights::kFloat32, folder / "m.gguf");
  const std::string bytes = read_file(folder / "m.gguf");
  // Behind the tokens' table and the norm: queries [8, 8], keys [4, 8], values [4, 8], and so on.
  constexpr size_t kOther = 256 + 32 + 192 * 3 + 32, kTables = 384 + 32;
  const size_t queries = bytes.size() - kOther - 128 - 128 - 256;
  const size_t begin = queries - kTables;
  EXPECT_EQ(floats_at(bytes, begin, 96), llama.values_of("decoder.embedding.weight"));
  const Rows qkv = llama.values_of("decoder.layers.0.self_attention.qkv.weight");
  const Rows written = floats_at(bytes, queries, 64);
  // Head of 4: rows 0 and 2 are a pair, 1 and 3 the other.
  const std::vector<size_t> order{0, 2, 1, 3, 4, 6, 5, 7};
  for (size_t row = 0; row < order.size(); ++row) {
    EXPECT_EQ(row_of(written, row, 8), row_of(qkv, order[row], 8)) << row;
  }
  EXPECT_EQ(row_of(floats_at(bytes, queries + 256, 32), 1, 8), row_of(qkv, 8 + 2, 8)) << "a key";
  EXPECT_EQ(row_of(floats_at(bytes, queries + 384, 32), 1, 8), row_of(qkv, 12 + 1, 8))
      << "values are not turned";
}

TEST(GgufCausal, KeysNameModelAndTokenizer) {
  SmallLlama llama;
  llama.model.description.model.rope = {.base = 500, .scaling = "linear", .factor = 2};
  const TempDir folder;
  export_gguf_causal(llama.model, StoredWeights::kFloat16, folder / "m.gguf");
  const std::string bytes = read_file(folder / "m.gguf");
  for (const char* key :
       {"general.architecture", "llama.attention.head_count_kv", "llama.rope.scaling.factor",
        "tokenizer.ggml.scores", "tokenizer.ggml.bos_token_id", "blk.0.ffn_gate.weight"}) {
    EXPECT_NE(bytes.find(key), std::string::npos) << key;
  }
}

TEST(GgufCausal, TheArchitectureFollowsBiasesAndNorms) {
  models::CausalTransformerOptions model = SmallLlama().model.description.model;
  EXPECT_EQ(gguf_architecture(model), "llama");
  model.biases = "qkv";
  EXPECT_EQ(gguf_architecture(model), "qwen2");
  model.biases = "none";
  model.qk_norm = true;
  EXPECT_EQ(gguf_architecture(model), "qwen3");
  EXPECT_EQ(gguf_incompatibility(model), "");
  model.biases = "all";
  EXPECT_NE(gguf_incompatibility(model).find("model.qk_norm"), std::string::npos);
}

TEST(GgufCausal, WhatItCannotExpressIsRefused) {
  const auto problem = [](const auto& change) {
    auto model = SmallLlama().model.description.model;
    change(model);
    return gguf_incompatibility(model);
  };
  EXPECT_EQ(problem([](auto&) {}), "");
  const auto names = [](const std::string& text, const char* key) {
    return text.find(key) != std::string::npos;
  };
  EXPECT_TRUE(names(problem([](auto& o) { o.norm_layer = "layer_norm"; }), "model.norm_layer"));
  EXPECT_TRUE(names(problem([](auto& o) { o.positions = "learned"; }), "model.positions"));
  EXPECT_TRUE(names(problem([](auto& o) { o.activation = "geglu"; }), "model.activation"));
  EXPECT_TRUE(names(problem([](auto& o) { o.sliding_window = 4; }), "model.sliding_window"));
  EXPECT_TRUE(names(problem([](auto& o) { o.rope.scaling = "yarn"; }), "model.rope.scaling"));
  EXPECT_TRUE(names(problem([](auto& o) { o.output_bias = true; }), "model.output_bias"));
  EXPECT_EQ(problem([](auto& o) { o.rope.scaling = "llama3"; }), "");
  EXPECT_TRUE(names(problem([](auto& o) {
                      o.rope.scaling = "llama3";
                      o.biases = "qkv";
                    }),
                    "model.rope.scaling"));
}

TEST(GgufCausal, RowsMustFillTheBlocksOfInt8) {
  const SmallLlama llama;
  const TempDir folder;
  const auto error = failure(ExitCode::kUsage, [&] {
    export_gguf_causal(llama.model, StoredWeights::kInt8, folder / "m.gguf");
  });
  EXPECT_NE(error.message().find("blocks of 32"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(GgufTokenizer, WhatLlamaCppWouldCutOtherwiseIsRefused) {
  auto spec = stretto::testing::llama_spec();
  EXPECT_EQ(gguf_tokenizer_problem(spec), "");
  auto without_bytes = spec;
  without_bytes.byte_fallback = false;
  EXPECT_NE(gguf_tokenizer_problem(without_bytes), "");
  auto unmerged = spec;
  unmerged.vocab.emplace_back("cd", 12);
  EXPECT_NE(gguf_tokenizer_problem(unmerged).find("`c` and `d`"), std::string::npos);
  auto apart = spec;
  apart.vocab.emplace_back("ba", 12);
  apart.vocab.emplace_back("aba", 13);
  apart.merges = {{"a", "b"}, {"b", "a"}, {"ab", "a"}, {"▁", "ab"}, {"a", "ba"}};
  EXPECT_NE(gguf_tokenizer_problem(apart).find("do not follow each other"), std::string::npos);
  text::TokenizerSpec pieces;
  EXPECT_NE(gguf_tokenizer_problem(pieces).find("WordPiece"), std::string::npos);
}

}  // namespace
}  // namespace stretto::interchange
