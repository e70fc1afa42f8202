#include "families/translation/folders/ctranslate2_seq2seq.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "families/translation/folders/import_seq2seq.h"
#include "tests/base/failure.h"
#include "tests/interchange/marian_folder.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::marian_folder;
using stretto::testing::TempDir;

/// The model of a folder of MarianMTModel with tables of positions.
class MarianModel {
 public:
  MarianModel() : folder_(marian_folder()) {
    folder_.write();
    imported_ = import_seq2seq(folder_.dir->path());
    model.model = imported_.description.model;
    model.tokenizers = imported_.tokenizers;
    model.tensors = imported_.tensors;
    for (const char* name : {"encoder.positions.weight", "decoder.positions.weight"}) {
      model.tensors.push_back({name, store::DType::kF32, {16, 4}, positions_});
    }
  }

  ExportedSeq2Seq model;

 private:
  stretto::testing::ModelFolder folder_;
  ImportedSeq2Seq imported_;
  std::string positions_ = std::string(16 * 4 * sizeof(float), '\0');
};

TEST(CTranslate2Seq2Seq, AFolderHasModelConfigAndVocabulary) {
  const MarianModel marian;
  const TempDir place;
  export_ctranslate2_seq2seq(marian.model, StoredWeights::kFloat32, place / "out");
  const auto config = nlohmann::json::parse(read_file(place / "out/config.json"));
  EXPECT_EQ(config.at("decoder_start_token"), "<pad>");
  EXPECT_EQ(config.at("eos_token"), "</s>");
  EXPECT_EQ(config.at("add_source_eos"), true);
  EXPECT_FLOAT_EQ(config.at("layer_norm_epsilon").get<float>(), 1e-5F);
  const auto pieces = nlohmann::json::parse(read_file(place / "out/shared_vocabulary.json"));
  ASSERT_EQ(pieces.size(), 24u);
  EXPECT_EQ(pieces[0], "</s>");
  EXPECT_EQ(pieces[23], "<pad>");
  for (const auto& [name, bytes] : marian.model.tokenizers.assets) {
    EXPECT_EQ(read_file(place / "out" / name), bytes) << name;
  }
  const std::string model = read_file(place / "out/model.bin");
  for (const char* name :
       {"TransformerSpec", "encoder/embeddings_0/weight", "decoder/projection/bias",
        "encoder/position_encodings/encodings", "decoder/layer_0/attention/linear_2/weight"}) {
    EXPECT_NE(model.find(name), std::string::npos) << name;
  }
  EXPECT_EQ(model.find("weight_scale"), std::string::npos);
}

TEST(CTranslate2Seq2Seq, Int8IsSmaller) {
  const MarianModel marian;
  const TempDir place;
  export_ctranslate2_seq2seq(marian.model, StoredWeights::kInt8, place / "out");
  EXPECT_NE(read_file(place / "out/model.bin").find("decoder/embeddings/weight_scale"),
            std::string::npos);
}

TEST(CTranslate2Seq2Seq, WhatItCannotExpressIsRefused) {
  const MarianModel marian;
  const auto problem = [&](const auto& change) {
    auto options = marian.model.model;
    change(options);
    return ctranslate2_incompatibility(options);
  };
  EXPECT_EQ(problem([](auto&) {}), "");
  EXPECT_EQ(problem([](auto& o) { o.norm = "pre"; }), "");
  EXPECT_EQ(problem([](auto& o) { o.positions = "rotary"; }), "");
  EXPECT_NE(problem([](auto& o) { o.norm = "res_post"; }).find("model.norm"), std::string::npos);
  EXPECT_NE(problem([](auto& o) { o.positions = "t5"; }).find("model.positions"),
            std::string::npos);
  EXPECT_NE(problem([](auto& o) { o.norm_layer = "batch_norm"; }).find("model.norm_layer"),
            std::string::npos);
  EXPECT_NE(problem([](auto& o) { o.encoder = models::LstmEncoderOptions{}; }).find("lstm"),
            std::string::npos);
  EXPECT_NE(problem([](auto& o) { o.encoders.resize(2); }).find("model.encoders"),
            std::string::npos);
}

TEST(CTranslate2Seq2Seq, TensorsOfAnotherModelLeaveNothingBehind) {
  MarianModel marian;
  marian.model.tensors.push_back(marian.model.tensors.front());
  marian.model.tensors.back().name = "decoder.layers.7.ffn.up.weight";
  const TempDir place;
  const auto error = failure(ExitCode::kBadData, [&] {
    export_ctranslate2_seq2seq(marian.model, StoredWeights::kFloat32, place / "out");
  });
  EXPECT_NE(error.message().find("decoder.layers.7.ffn.up.weight"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(place.path()));
}

}  // namespace
}  // namespace stretto::interchange
