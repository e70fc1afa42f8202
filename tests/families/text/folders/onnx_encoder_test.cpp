#include "families/text/folders/onnx_encoder.h"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "interchange/stored_weights.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::TempDir;

/// An encoder with 1 layer, D = 4, 2 heads, a feed-forward part of 6, 16 positions and 8 ids.
class SmallEncoder {
 public:
  SmallEncoder() {
    auto& options = model.description.model;
    options.preset = "none";
    options.num_layers = 1;
    options.d_model = 4;
    options.num_heads = 2;
    options.ffn_dim = 6;
    options.max_positions = 16;
    model.description.vocab_size = 8;
    model.max_text_tokens = 16;
    model.tokenizer = text::parse_vocab_txt("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nred\nhouse\n##s\n",
                                            "vocab.txt", true);
    add("encoder.embedding.weight", {8, 4});
    add("encoder.positions.weight", {16, 4});
    add("encoder.segments.weight", {2, 4});
    add_linear("encoder.layers.0.self_attention.qkv", 12, 4);
    add_linear("encoder.layers.0.self_attention.out", 4, 4);
    add_linear("encoder.layers.0.ffn.up", 6, 4);
    add_linear("encoder.layers.0.ffn.down", 4, 6);
    for (const char* norm : {"encoder.embedding_norm", "encoder.layers.0.self_residual.norm",
                             "encoder.layers.0.ffn_residual.norm"}) {
      add(std::string(norm) + ".weight", {4});
      add(std::string(norm) + ".bias", {4});
    }
  }

  void add(const std::string& name, const std::vector<int64_t>& shape) {
    size_t count = sizeof(float);
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    bytes_.emplace_back(count, '\0');
    model.tensors.push_back({name, store::DType::kF32, shape, bytes_.back()});
  }
  void add_linear(const std::string& name, int64_t out, int64_t in) {
    add(name + ".weight", {out, in});
    add(name + ".bias", {out});
  }

  /// What model.onnx has.
  std::string exported(StoredWeights weights = StoredWeights::kFloat32) const {
    const TempDir place;
    export_onnx_encoder(model, weights, place / "out");
    EXPECT_TRUE(std::filesystem::exists(place / "out/tokenizer.json"));
    EXPECT_TRUE(std::filesystem::exists(place / "out/model.onnx_data"));
    return read_file(place / "out/model.onnx");
  }

  ExportedModel model;

 private:
  std::deque<std::string> bytes_;
};

bool names(const std::string& bytes, const char* word) {
  return bytes.find(word) != std::string::npos;
}

TEST(OnnxEncoder, WithoutAHeadHasRowsAndThePooler) {
  SmallEncoder encoder;
  encoder.add_linear("head.pooler", 4, 4);
  const std::string bytes = encoder.exported();
  for (const char* word : {"input_ids", "attention_mask", "token_type_ids", "last_hidden_state",
                           "pooler_output", "LayerNormalization", "Erf"}) {
    EXPECT_TRUE(names(bytes, word)) << word;
  }
}

TEST(OnnxEncoder, HeadsHaveTheirOutputs) {
  SmallEncoder labels;
  labels.model.description.head = Head::kLabels;
  labels.model.description.model.pooling = "mean";
  labels.model.description.labels = {"bad", "good"};
  labels.add_linear("head.output", 2, 4);
  const std::string of_labels = labels.exported();
  EXPECT_TRUE(names(of_labels, "logits"));
  EXPECT_TRUE(names(of_labels, R"(["bad","good"])"));
  SmallEncoder spans;
  spans.model.description.head = Head::kSpans;
  spans.add_linear("head.output", 2, 4);
  const std::string of_spans = spans.exported();
  EXPECT_TRUE(names(of_spans, "start_logits"));
  EXPECT_TRUE(names(of_spans, "end_logits"));
}

TEST(OnnxEncoder, OtherFormsHaveTablesOfTheirOwn) {
  SmallEncoder encoder;
  auto& options = encoder.model.description.model;
  options.pooling = "cls";
  options.positions = "rotary";
  std::erase_if(encoder.model.tensors,
                [](const auto& tensor) { return tensor.name == "encoder.positions.weight"; });
  const std::string bytes = encoder.exported();
  EXPECT_TRUE(names(bytes, "rotary.cos"));
  EXPECT_TRUE(names(bytes, "rotary.sin"));
}

TEST(OnnxEncoder, RowsOfInt8HaveAFactorEach) {
  SmallEncoder encoder;
  encoder.model.description.head = Head::kMaskedTokens;
  encoder.add_linear("head.dense", 4, 4);
  encoder.add("head.norm.weight", {4});
  encoder.add("head.norm.bias", {4});
  encoder.add("head.bias", {8});
  const std::string bytes = encoder.exported(StoredWeights::kInt8);
  for (const char* word :
       {"DequantizeLinear", "encoder.embedding.codes", "encoder.embedding.scales",
        "encoder.layers.0.self_attention.qkv.q.codes_t"}) {
    EXPECT_TRUE(names(bytes, word)) << word;
  }
  EXPECT_FALSE(names(bytes, "weight_t")) << "no matrix is fp32";
  EXPECT_FALSE(names(encoder.exported(), "DequantizeLinear"));
}

TEST(OnnxEncoder, ATensorThatIsNotTheModelsIsRefused) {
  SmallEncoder encoder;
  encoder.model.description.model.pooling = "cls";
  encoder.add("head.other.weight", {2});
  const TempDir place;
  const auto error = failure(ExitCode::kBadData, [&] {
    export_onnx_encoder(encoder.model, StoredWeights::kFloat32, place / "out");
  });
  EXPECT_NE(error.message().find("head.other.weight"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(place.path()));
}

TEST(OnnxEncoder, AdaptersAreRefused) {
  SmallEncoder encoder;
  encoder.model.description.model.adapter.dim = 2;
  EXPECT_NE(onnx_incompatibility(encoder.model.description.model), "");
}

}  // namespace
}  // namespace stretto::interchange
