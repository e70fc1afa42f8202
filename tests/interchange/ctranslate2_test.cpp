#include "interchange/ctranslate2.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::TempDir;

/// A model.bin as CTranslate2 reads it.
struct ReadModel {
  struct Variable {
    std::vector<uint32_t> shape;
    int type = -1;
    std::string bytes;
  };
  std::string spec;
  uint32_t version = 0, revision = 0;
  std::map<std::string, Variable> variables;
  std::map<std::string, std::string> aliases;
};

class ModelReader {
 public:
  explicit ModelReader(std::string bytes) : bytes_(std::move(bytes)) {}

  ReadModel read() {
    ReadModel model;
    model.version = number<uint32_t>();
    model.spec = text();
    model.revision = number<uint32_t>();
    const auto variables = number<uint32_t>();
    for (uint32_t i = 0; i < variables; ++i) {
      auto& variable = model.variables[text()];
      const auto rank = number<uint8_t>();
      for (int k = 0; k < rank; ++k) variable.shape.push_back(number<uint32_t>());
      variable.type = number<uint8_t>();
      const auto size = number<uint32_t>();
      variable.bytes = bytes_.substr(place_, size);
      place_ += size;
    }
    const auto aliases = number<uint32_t>();
    for (uint32_t i = 0; i < aliases; ++i) {
      const std::string name = text();
      model.aliases[name] = text();
    }
    EXPECT_EQ(place_, bytes_.size());
    return model;
  }

 private:
  template <class Value>
  Value number() {
    Value value{};
    std::memcpy(&value, bytes_.data() + place_, sizeof(Value));
    place_ += sizeof(Value);
    return value;
  }
  std::string text() {
    const auto length = number<uint16_t>();
    const std::string read = bytes_.substr(place_, length - 1u);
    EXPECT_EQ(bytes_[place_ + length - 1u], '\0');
    place_ += length;
    return read;
  }

  std::string bytes_;
  size_t place_ = 0;
};

ReadModel written_model(const CTranslate2Model& model) {
  const TempDir folder;
  model.write(folder / "model.bin");
  return ModelReader(read_file(folder / "model.bin")).read();
}

/// Tensors with numbers of their own.
class OwnTensors {
 public:
  void add(const std::string& name, const std::vector<int64_t>& shape) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(next_++) / 8 - 3);
    bytes_.push_back(bytes_of_floats(values));
    views_.push_back({name, store::DType::kF32, shape, bytes_.back()});
  }
  void add_linear(const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", {4});
    add(name + ".bias", {4});
  }
  const std::vector<store::TensorView>& views() const { return views_; }

 private:
  std::deque<std::string> bytes_;
  std::vector<store::TensorView> views_;
  int next_ = 0;
};

TEST(CTranslate2Model, HasItsHeaderVariablesAndAliases) {
  OwnTensors own;
  own.add("w", {2, 3});
  NamedTensors tensors(own.views());
  CTranslate2Model model("TransformerSpec", 7, StoredWeights::kFloat32, tensors);
  model.add_matrix("b/weight", tensors.take("w"));
  model.add_int16("a/num_heads", 8);
  model.add_flag("a/pre_norm", true);
  model.add_alias("c/weight", "b/weight");
  const auto read = written_model(model);
  EXPECT_EQ(read.version, 6u);
  EXPECT_EQ(read.spec, "TransformerSpec");
  EXPECT_EQ(read.revision, 7u);
  ASSERT_EQ(read.variables.size(), 3u);
  EXPECT_EQ(read.variables.at("b/weight").shape, (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(read.variables.at("b/weight").type, 0);
  EXPECT_EQ(read.variables.at("b/weight").bytes, own.views()[0].bytes);
  EXPECT_EQ(read.variables.at("a/num_heads").type, 2);
  EXPECT_EQ(read.variables.at("a/num_heads").bytes, std::string("\x08\x00", 2));
  EXPECT_TRUE(read.variables.at("a/pre_norm").shape.empty());
  EXPECT_EQ(read.aliases, (std::map<std::string, std::string>{{"c/weight", "b/weight"}}));
}

TEST(CTranslate2Model, RowsOfInt8HaveAScaleEach) {
  const std::string bytes = bytes_of_floats({1, -2, 0.5F, 0, 0, 0});
  NamedTensors tensors({{"w", store::DType::kF32, {2, 3}, bytes}});
  CTranslate2Model model("TransformerSpec", 7, StoredWeights::kInt8, tensors);
  model.add_matrix("b/weight", tensors.take("w"));
  const auto read = written_model(model);
  const auto& codes = read.variables.at("b/weight");
  EXPECT_EQ(codes.type, 1);
  // 127 / 2 = 63.5: 63.5 is a tie, and goes to the even 64; 31.75 to 32.
  EXPECT_EQ(codes.bytes, std::string("\x40\x81\x20\x00\x00\x00", 6));
  const auto& scales = read.variables.at("b/weight_scale");
  EXPECT_EQ(scales.shape, std::vector<uint32_t>{2});
  EXPECT_EQ(scales.bytes, bytes_of_floats({63.5F, 1})) << "a row of zeros has the scale 1";
}

TEST(CTranslate2Model, NamesAllOfAStack) {
  OwnTensors own;
  own.add("decoder.positions.weight", {5, 4});
  own.add_linear("decoder.layers.0.self_attention.qkv", 12, 4);
  own.add_linear("decoder.layers.0.self_attention.out", 4, 4);
  own.add_norm("decoder.layers.0.self_residual.norm");
  own.add_linear("decoder.layers.0.cross_attention.q", 4, 4);
  own.add_linear("decoder.layers.0.cross_attention.kv", 8, 4);
  own.add_linear("decoder.layers.0.cross_attention.out", 4, 4);
  own.add_norm("decoder.layers.0.cross_residual.norm");
  own.add_linear("decoder.layers.0.ffn.up", 6, 4);
  own.add_linear("decoder.layers.0.ffn.down", 4, 6);
  own.add_norm("decoder.layers.0.ffn_residual.norm");
  own.add_norm("decoder.final_norm");
  NamedTensors tensors(own.views());
  CTranslate2Model model("TransformerSpec", 7, StoredWeights::kFloat32, tensors);
  model.add_layers({.scope = "decoder",
                    .num_layers = 1,
                    .num_heads = 2,
                    .pre_norm = true,
                    .activation = "gelu_tanh",
                    .reads_memory = true,
                    .scales_embeddings = true});
  tensors.require_all_taken("CTranslate2");
  const auto read = written_model(model);
  const auto shape_of = [&](const std::string& name) {
    const auto found = read.variables.find(name);
    return found == read.variables.end() ? std::vector<uint32_t>{99} : found->second.shape;
  };
  using Shape = std::vector<uint32_t>;
  EXPECT_EQ(shape_of("decoder/position_encodings/encodings"), (Shape{5, 4}));
  EXPECT_EQ(shape_of("decoder/layer_0/self_attention/linear_0/weight"), (Shape{12, 4}));
  EXPECT_EQ(shape_of("decoder/layer_0/self_attention/linear_1/bias"), (Shape{4}));
  EXPECT_EQ(shape_of("decoder/layer_0/attention/linear_1/weight"), (Shape{8, 4}));
  EXPECT_EQ(shape_of("decoder/layer_0/attention/linear_2/weight"), (Shape{4, 4}));
  EXPECT_EQ(shape_of("decoder/layer_0/attention/layer_norm/gamma"), (Shape{4}));
  EXPECT_EQ(shape_of("decoder/layer_0/ffn/linear_0/weight"), (Shape{6, 4}));
  EXPECT_EQ(shape_of("decoder/layer_0/ffn/layer_norm/beta"), (Shape{4}));
  EXPECT_EQ(shape_of("decoder/layer_norm/gamma"), (Shape{4}));
  EXPECT_EQ(read.variables.at("decoder/activation").bytes, "\x01") << "GELU by tanh";
}

TEST(CTranslate2Model, AGateIsAMapOfItsOwn) {
  OwnTensors own;
  own.add("decoder.layers.0.self_attention.qkv.weight", {8, 4});
  own.add("decoder.layers.0.self_attention.out.weight", {4, 4});
  own.add("decoder.layers.0.self_residual.norm.weight", {4});
  own.add("decoder.layers.0.ffn.up.weight", {6, 4});
  own.add("decoder.layers.0.ffn.down.weight", {4, 3});
  own.add("decoder.layers.0.ffn_residual.norm.weight", {4});
  own.add("decoder.final_norm.weight", {4});
  NamedTensors tensors(own.views());
  CTranslate2Model model("TransformerDecoderSpec", 8, StoredWeights::kFloat32, tensors);
  const nn::RotaryOptions rope{.base = 500, .scaling = "linear", .factor = 2};
  model.add_layers({.scope = "decoder",
                    .num_layers = 1,
                    .num_heads = 2,
                    .num_kv_heads = 1,
                    .pre_norm = true,
                    .rms_norm = true,
                    .activation = "swiglu",
                    .rope = &rope});
  tensors.require_all_taken("CTranslate2");
  const auto read = written_model(model);
  const std::string_view up = own.views()[3].bytes;
  EXPECT_EQ(read.variables.at("decoder/layer_0/ffn/linear_0/weight").bytes,
            up.substr(0, up.size() / 2));
  EXPECT_EQ(read.variables.at("decoder/layer_0/ffn/linear_0_noact/weight").bytes,
            up.substr(up.size() / 2));
  EXPECT_FALSE(read.variables.contains("decoder/layer_0/ffn/layer_norm/beta"));
  const std::string attention = "decoder/layer_0/self_attention/";
  EXPECT_EQ(read.variables.at(attention + "num_heads_kv").bytes,
            std::string("\x01\x00\x00\x00", 4));
  EXPECT_EQ(read.variables.at(attention + "rotary_interleave").bytes, std::string(1, '\0'));
  EXPECT_EQ(read.variables.at(attention + "rotary_base").bytes, bytes_of_floats({500}));
  EXPECT_EQ(read.variables.at(attention + "rotary_scaling_factor").bytes, bytes_of_floats({2}));
}

TEST(CTranslate2Model, AnglesOfLlama3HaveTheirFactors) {
  OwnTensors own;
  own.add("decoder.layers.0.self_attention.qkv.weight", {12, 4});
  own.add("decoder.layers.0.self_attention.out.weight", {4, 4});
  own.add("decoder.layers.0.self_residual.norm.weight", {4});
  own.add("decoder.layers.0.ffn.up.weight", {6, 4});
  own.add("decoder.layers.0.ffn.down.weight", {4, 3});
  own.add("decoder.layers.0.ffn_residual.norm.weight", {4});
  NamedTensors tensors(own.views());
  CTranslate2Model model("TransformerDecoderSpec", 8, StoredWeights::kFloat32, tensors);
  const nn::RotaryOptions rope{
      .scaling = "llama3", .factor = 8, .original_positions = 64, .high_frequency_factor = 3};
  model.add_layers({.scope = "decoder",
                    .num_layers = 1,
                    .num_heads = 2,
                    .rms_norm = true,
                    .activation = "swiglu",
                    .rope = &rope});
  const auto read = written_model(model);
  const std::string attention = "decoder/layer_0/self_attention/";
  EXPECT_EQ(read.variables.at(attention + "rotary_scaling_type").bytes, "\x02");
  EXPECT_EQ(read.variables.at(attention + "rotary_low_freq_factor").bytes, bytes_of_floats({1}));
  EXPECT_EQ(read.variables.at(attention + "rotary_high_freq_factor").bytes, bytes_of_floats({3}));
  EXPECT_EQ(read.variables.at(attention + "original_max_position_embeddings").bytes,
            std::string("\x40\x00\x00\x00", 4));
}

TEST(CTranslate2Model, ARowOfTheSmallestNumbersHasAScale) {
  const std::string bytes = bytes_of_floats({1e-40F, 0});
  NamedTensors tensors({{"w", store::DType::kF32, {1, 2}, bytes}});
  CTranslate2Model model("TransformerSpec", 7, StoredWeights::kInt8, tensors);
  model.add_matrix("w/weight", tensors.take("w"));
  const auto read = written_model(model);
  float scale = 0;
  std::memcpy(&scale, read.variables.at("w/weight_scale").bytes.data(), sizeof(scale));
  EXPECT_TRUE(std::isfinite(scale)) << scale;
}

TEST(CTranslate2Layers, WhatItLacksIsSaid) {
  CTranslate2Layers layers{
      .scope = "decoder", .num_layers = 1, .num_heads = 4, .activation = "relu"};
  EXPECT_EQ(ctranslate2_layers_problem(layers), "");
  layers.activation = "relu_squared";
  EXPECT_NE(ctranslate2_layers_problem(layers).find("relu_squared"), std::string::npos);
  layers.activation = "silu";
  layers.reads_memory = true;
  layers.num_kv_heads = 2;
  EXPECT_NE(ctranslate2_layers_problem(layers).find("num_kv_heads = 2"), std::string::npos);
  layers.reads_memory = false;
  const nn::RotaryOptions yarn{.scaling = "yarn"};
  layers.rope = &yarn;
  EXPECT_NE(ctranslate2_layers_problem(layers).find("yarn"), std::string::npos);
}

TEST(CTranslate2Vocabulary, PiecesAreToldApartByTheirText) {
  EXPECT_EQ(nlohmann::json::parse(ctranslate2_vocabulary({"<s>", "▁a"})),
            (nlohmann::json{"<s>", "▁a"}));
  const auto twice = failure(ExitCode::kUsage, [] { ctranslate2_vocabulary({"a", "b", "a"}); });
  EXPECT_NE(twice.message().find("`a` twice"), std::string::npos);
  failure(ExitCode::kUsage, [] { ctranslate2_vocabulary({"\xff"}); });
}

}  // namespace
}  // namespace stretto::interchange
