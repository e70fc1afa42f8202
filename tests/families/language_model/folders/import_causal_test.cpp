#include "families/language_model/folders/import_causal.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/taken_values.h"
#include "experiment/task_rules.h"
#include "families/language_model/folders/export_causal.h"
#include "interchange/folder_tensors.h"
#include "interchange/initial_model.h"
#include "store/weight_files.h"
#include "tests/base/failure.h"
#include "tests/families/language_model/folders/causal_config.h"
#include "tests/fuzz/small_sentencepiece.h"
#include "tests/interchange/model_folder.h"
#include "tests/text/llama_spec.h"
#include "text/sequence_template.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::gpt2_config;
using stretto::testing::llama_config;
using stretto::testing::ModelFolder;

constexpr const char* kGpt2Vocabulary =
    R"({"<|endoftext|>":0,"a":1,"b":2,"c":3,"d":4,"Ġ":5,"ab":6,"Ġa":7,"Ġab":8,"cd":9,"e":10,"f":11})";
constexpr const char* kGpt2Merges = "#version: 0.2\na b\nĠ ab\nĠ a\nc d\n";

ModelFolder gpt2_folder() {
  ModelFolder folder;
  folder.config = gpt2_config();
  auto& shapes = folder.shapes;
  shapes["transformer.wte.weight"] = {12, 8};
  shapes["transformer.wpe.weight"] = {16, 8};
  const auto norm = [&](const std::string& name) {
    shapes[name + ".weight"] = shapes[name + ".bias"] = {8};
  };
  const auto map = [&](const std::string& name, int64_t in, int64_t out) {
    shapes[name + ".weight"] = {in, out};
    shapes[name + ".bias"] = {out};
  };
  norm("transformer.ln_f");
  for (const char* number : {"0", "1"}) {
    const std::string layer = std::string("transformer.h.") + number + ".";
    norm(layer + "ln_1");
    map(layer + "attn.c_attn", 8, 24);
    map(layer + "attn.c_proj", 8, 8);
    norm(layer + "ln_2");
    map(layer + "mlp.c_fc", 8, 32);
    map(layer + "mlp.c_proj", 32, 8);
  }
  folder.dir->write("vocab.json", kGpt2Vocabulary);
  folder.dir->write("merges.txt", kGpt2Merges);
  return folder;
}

std::string llama_tokenizer() {
  return text::write_tokenizer_json(stretto::testing::llama_spec());
}

ModelFolder llama_folder(const nlohmann::json& config = llama_config()) {
  ModelFolder folder;
  folder.config = config;
  auto& shapes = folder.shapes;
  shapes["model.embed_tokens.weight"] = shapes["lm_head.weight"] = {12, 8};
  shapes["model.norm.weight"] = {8};
  for (const char* number : {"0", "1"}) {
    const std::string layer = std::string("model.layers.") + number + ".";
    shapes[layer + "input_layernorm.weight"] = {8};
    shapes[layer + "post_attention_layernorm.weight"] = {8};
    shapes[layer + "self_attn.q_proj.weight"] = {8, 8};
    shapes[layer + "self_attn.k_proj.weight"] = {4, 8};
    shapes[layer + "self_attn.v_proj.weight"] = {4, 8};
    shapes[layer + "self_attn.o_proj.weight"] = {8, 8};
    shapes[layer + "mlp.gate_proj.weight"] = {16, 8};
    shapes[layer + "mlp.up_proj.weight"] = {16, 8};
    shapes[layer + "mlp.down_proj.weight"] = {8, 16};
  }
  folder.dir->write("tokenizer.json", llama_tokenizer());
  return folder;
}

ModelFolder qwen2_folder() {
  auto folder = llama_folder(llama_config("qwen2", "Qwen2ForCausalLM"));
  for (const char* number : {"0", "1"}) {
    const std::string attention = std::string("model.layers.") + number + ".self_attn.";
    folder.shapes[attention + "q_proj.bias"] = {8};
    folder.shapes[attention + "k_proj.bias"] = {4};
    folder.shapes[attention + "v_proj.bias"] = {4};
  }
  return folder;
}

const store::TensorView& causal_tensor(const ImportedCausal& model, const std::string& name) {
  const auto found = std::find_if(model.tensors.begin(), model.tensors.end(),
                                  [&](const auto& tensor) { return tensor.name == name; });
  if (found == model.tensors.end()) throw std::runtime_error("no tensor " + name);
  return *found;
}

float element(std::string_view bytes, size_t index) {
  float value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof(float), sizeof(float));
  return value;
}

std::string refused_causal(const ModelFolder& folder, const ImportOptions& options = {}) {
  return failure(ExitCode::kBadData, [&] { import_causal(folder.dir->path(), options); }).message();
}

/// Imports, exports, and compares every tensor with the bytes of the folder.
void expect_round_trip(const ModelFolder& folder) {
  folder.write();
  const auto model = import_causal(folder.dir->path());
  const auto json = model.assets.at("tokenizer.json");
  const auto spec = text::parse_tokenizer_json(json, "tokenizer.json");
  auto description = model.description;
  description.vocab_size = model.num_pieces;
  const auto place = *folder.dir / "exported";
  export_causal({.description = description,
                 .tokenizer = spec,
                 .tensors = model.tensors,
                 .end_tokens = model.end_tokens},
                place);
  const store::WeightFiles files(place);
  std::map<std::string, const store::TensorView*> written;
  for (const auto& tensor : files.tensors()) written[tensor.name] = &tensor;
  EXPECT_EQ(written.size(), folder.shapes.size());
  for (const auto& [name, shape] : folder.shapes) {
    ASSERT_TRUE(written.contains(name)) << name;
    EXPECT_EQ(written[name]->shape, shape) << name;
    EXPECT_EQ(written[name]->bytes, folder.values_of(name)) << name;
  }
  const auto again = import_causal(place);
  EXPECT_EQ(again.assets, model.assets);
  EXPECT_EQ(again.end_tokens, model.end_tokens);
  EXPECT_EQ(again.description.model.rope, model.description.model.rope);
  ASSERT_EQ(again.tensors.size(), model.tensors.size());
  for (size_t i = 0; i < again.tensors.size(); ++i) {
    EXPECT_EQ(again.tensors[i].name, model.tensors[i].name);
    EXPECT_EQ(again.tensors[i].bytes, model.tensors[i].bytes) << model.tensors[i].name;
  }
}

TEST(ImportCausal, Gpt2sMapsAreTurnedAround) {
  const auto folder = gpt2_folder();
  folder.write();
  const auto model = import_causal(folder.dir->path());
  EXPECT_EQ(model.model_class, "GPT2LMHeadModel");
  EXPECT_EQ(model.num_pieces, 12);
  const auto& qkv = causal_tensor(model, "decoder.layers.1.self_attention.qkv.weight");
  EXPECT_EQ(qkv.shape, (std::vector<int64_t>{24, 8}));
  const auto theirs = folder.values_of("transformer.h.1.attn.c_attn.weight");
  EXPECT_EQ(element(qkv.bytes, 5 * 8 + 3), element(theirs, 3 * 24 + 5));
  const auto& table = causal_tensor(model, "decoder.embedding.weight");
  EXPECT_EQ(table.shape, (std::vector<int64_t>{16, 8})) << "a round number of rows";
  EXPECT_EQ(table.bytes.substr(0, 12 * 8 * sizeof(float)),
            folder.values_of("transformer.wte.weight"));
}

TEST(ImportCausal, Gpt2sTokenizerEndsTextsWithItsOneSpecialToken) {
  const auto folder = gpt2_folder();
  folder.write();
  const auto model = import_causal(folder.dir->path());
  EXPECT_EQ(model.tokenizer->specials().eos, 0);
  std::vector<int64_t> ids;
  model.tokenizer->encode("ab ab<|endoftext|>cd", ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{6, 8, 0, 9}));
}

TEST(ImportCausal, AClassifierOfTextsBeginsWithItsLayers) {
  const auto folder = gpt2_folder();
  folder.write();
  experiment::Experiment own;
  own.task.select("text_classification");
  const auto model = import_initial_model(folder.dir->path(), own);
  EXPECT_EQ(model.model_class, "GPT2LMHeadModel");
  const auto described = describe_initial_model(folder.dir->path(), own);
  ASSERT_TRUE(described.has_value());
  const auto values = experiment::find_task_rules(own)->values_of_other_model(*described, own, {});
  EXPECT_EQ(std::ranges::count(values, std::string("model.name"), &experiment::TakenValue::key), 1);
  own.task.select("masked_lm");
  const auto refused =
      failure(ExitCode::kUsage, [&] { import_initial_model(folder.dir->path(), own); });
  EXPECT_NE(refused.message().find("a language model, and task.name is \"masked_lm\""),
            std::string::npos)
      << refused.message();
}

TEST(ImportCausal, FoldersComeBackToTheBit) {
  expect_round_trip(gpt2_folder());
  expect_round_trip(llama_folder());
}

TEST(ImportCausal, OtherClassesOfLlamasFormComeBackToo) {
  auto qwen3 = llama_folder(llama_config("qwen3", "Qwen3ForCausalLM"));
  for (const char* number : {"0", "1"}) {
    const std::string attention = std::string("model.layers.") + number + ".self_attn.";
    qwen3.shapes[attention + "q_norm.weight"] = {4};
    qwen3.shapes[attention + "k_norm.weight"] = {4};
  }
  qwen3.config["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 2.0}};
  expect_round_trip(qwen2_folder());
  expect_round_trip(qwen3);
  expect_round_trip(llama_folder(llama_config("mistral", "MistralForCausalLM")));
}

TEST(ImportCausal, WhatStandsInFrontOfATextComesBack) {
  const auto front_of = [](const ModelFolder& folder) {
    expect_round_trip(folder);
    return import_causal(folder.dir->path()).tokenizer->sequences().front();
  };
  EXPECT_EQ(front_of(llama_folder()), std::vector<int64_t>{1});
  const auto none = llama_folder();
  none.dir->write("tokenizer_config.json", R"({"add_bos_token": false, "bos_token": "<s>"})");
  EXPECT_TRUE(front_of(none).empty());
  EXPECT_TRUE(front_of(gpt2_folder()).empty());
}

TEST(ImportCausal, QueriesKeysAndValuesAndBothMapsOfAGateAreOne) {
  const auto folder = llama_folder();
  folder.write();
  const auto model = import_causal(folder.dir->path());
  const std::string layer = "model.layers.0.";
  const auto joined_of = [&](const std::vector<std::string>& names) {
    std::string bytes;
    for (const auto& name : names) bytes += folder.values_of(layer + name);
    return bytes;
  };
  const auto& qkv = causal_tensor(model, "decoder.layers.0.self_attention.qkv.weight");
  EXPECT_EQ(qkv.bytes, joined_of({"self_attn.q_proj.weight", "self_attn.k_proj.weight",
                                  "self_attn.v_proj.weight"}));
  const auto& up = causal_tensor(model, "decoder.layers.0.ffn.up.weight");
  EXPECT_EQ(up.bytes, joined_of({"mlp.gate_proj.weight", "mlp.up_proj.weight"}));
}

TEST(ImportCausal, ValuesThatAreNotFiniteAreThoseOfTheirTensor) {
  auto folder = qwen2_folder();
  folder.last_values["model.layers.0.self_attn.k_proj.weight"] = std::nanf("");
  folder.last_values["model.layers.1.self_attn.v_proj.bias"] = std::nanf("");
  folder.write();
  const auto model = import_causal(folder.dir->path());
  EXPECT_EQ(not_finite({.ours = model.tensors, .names = model.names}),
            (std::vector<std::string>{"model.layers.0.self_attn.k_proj.weight",
                                      "model.layers.1.self_attn.v_proj.bias"}));
}

TEST(ImportCausal, NamesMayLackGpt2sPrefix) {
  auto folder = gpt2_folder();
  std::map<std::string, std::vector<int64_t>> bare;
  for (const auto& [name, shape] : folder.shapes) bare[name.substr(12)] = shape;
  bare["h.0.attn.bias"] = {1, 1, 16, 16};  // the causal mask
  folder.shapes = bare;
  folder.write();
  const auto model = import_causal(folder.dir->path());
  EXPECT_EQ(model.left_out, std::vector<std::string>{"h.0.attn.bias"});
  EXPECT_TRUE(model.missing.empty());
}

TEST(ImportCausal, ACopyOfATiedTableMustBeEqual) {
  auto folder = llama_folder();
  folder.config["tie_word_embeddings"] = true;
  folder.write();
  EXPECT_NE(refused_causal(folder).find("`lm_head.weight` is not `model.embed_tokens.weight`"),
            std::string::npos);
}

TEST(ImportCausal, WhatDoesNotFitIsRefused) {
  auto missing = llama_folder();
  missing.shapes.erase("model.layers.1.mlp.up_proj.weight");
  missing.write();
  EXPECT_NE(refused_causal(missing).find("model.layers.1.mlp.up_proj.weight"), std::string::npos);
  auto rows = gpt2_folder();
  rows.shapes["transformer.wte.weight"] = {11, 8};
  rows.write();
  EXPECT_NE(refused_causal(rows).find("the vocabulary does not fit"), std::string::npos);
  auto extra = gpt2_folder();
  extra.shapes["transformer.h.2.ln_1.weight"] = {8};
  extra.write();
  EXPECT_NE(refused_causal(extra).find("transformer.h.2.ln_1.weight"), std::string::npos);
  const auto lenient = import_causal(extra.dir->path(), {.ignore_extra = true});
  EXPECT_EQ(lenient.left_out, std::vector<std::string>{"transformer.h.2.ln_1.weight"});
  const auto alone = llama_folder();
  alone.write();
  std::filesystem::remove(*alone.dir / "tokenizer.json");
  failure(ExitCode::kUsage, [&] { import_causal(alone.dir->path()); });
  failure(ExitCode::kUsage, [&] { import_causal(alone.dir->path(), {.encoder_only = true}); });
}

TEST(ImportCausal, ATokenizerModelAloneIsReadAndComesBackAsTokenizerJson) {
  auto folder = llama_folder();
  std::filesystem::remove(*folder.dir / "tokenizer.json");
  folder.dir->write("tokenizer.model", stretto::testing::small_sentencepiece());
  folder.config["vocab_size"] = 16;
  folder.shapes["model.embed_tokens.weight"] = folder.shapes["lm_head.weight"] = {16, 8};
  expect_round_trip(folder);
  const auto model = import_causal(folder.dir->path());
  EXPECT_EQ(model.num_pieces, 16);
  EXPECT_EQ(model.tokenizer->sequences().single.front().id, 1) << "<s> in front of each text";
  folder.dir->write("tokenizer_config.json", R"({"add_bos_token": false})");
  EXPECT_EQ(import_causal(folder.dir->path()).tokenizer->sequences().single.size(), 1U);
}

TEST(ImportCausal, QwensVocabularyAloneHasItsPatternAndIsComposed) {
  const auto folder = qwen2_folder();
  std::filesystem::remove(*folder.dir / "tokenizer.json");
  folder.dir->write("vocab.json", kGpt2Vocabulary);
  folder.dir->write("merges.txt", kGpt2Merges);
  folder.write();
  const auto json = import_causal(folder.dir->path()).assets.at("tokenizer.json");
  const auto spec = text::parse_tokenizer_json(json, "tokenizer.json");
  EXPECT_TRUE(spec.nfc);
  EXPECT_EQ(spec.pattern, text::TokenizerSpec::Pattern::kQwen2);
}

/// A folder whose tokenizer has this token in the place of `</s>`.
ModelFolder folder_that_ends_with(const std::string& token) {
  auto folder = llama_folder();
  auto json = nlohmann::json::parse(llama_tokenizer());
  json["model"]["vocab"].erase("</s>");
  json["model"]["vocab"][token] = 2;
  json["added_tokens"][2]["content"] = token;
  folder.dir->write("tokenizer.json", json.dump());
  folder.write();
  return folder;
}

TEST(ImportCausal, EveryTokenOfItsListEndsAText) {
  using Tokens = std::vector<std::string>;
  auto folder = llama_folder();
  const auto ends = [&] {
    folder.write();
    return import_causal(folder.dir->path()).end_tokens;
  };
  EXPECT_EQ(ends(), Tokens{});
  folder.config["eos_token_id"] = 10;
  EXPECT_EQ(ends(), Tokens{"c"});
  folder.dir->write("generation_config.json", R"({"eos_token_id": [11, 2, 6, 99, 11]})");
  EXPECT_EQ(ends(), (Tokens{"d", "a"})) << "</s> ends a text anyway, and there is no token 99";
  expect_round_trip(folder);
  folder.dir->write("generation_config.json", R"({"eos_token_id": "c"})");
  EXPECT_NE(refused_causal(folder).find("eos_token_id"), std::string::npos);
}

TEST(ImportCausal, ATurnsEndIsTheEndOfATextWhereThereIsNoOther) {
  const auto folder = folder_that_ends_with("<|im_end|>");
  EXPECT_EQ(import_causal(folder.dir->path()).tokenizer->specials().eos, 2);
}

TEST(ImportCausal, ATokenizerWithoutAnEndIsRefused) {
  const auto folder = folder_that_ends_with("</t>");
  EXPECT_NE(refused_causal(folder).find("no token of the tokenizer ends a text"),
            std::string::npos);
}

}  // namespace
}  // namespace stretto::interchange
