#include "families/text/folders/model_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/base/failure.h"
#include "tests/interchange/model_folder.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::ModelFolder;

ModelConfig read(const nlohmann::json& config, bool encoder_only = false) {
  return read_model_config(config.dump(), "config.json", encoder_only);
}

void expect_refused(const nlohmann::json& config, const std::string& reason) {
  const auto error = failure(ExitCode::kBadData, [&] { read(config); });
  EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
}

nlohmann::json with(nlohmann::json config, const char* key, const nlohmann::json& value) {
  config[key] = value;
  return config;
}

const nlohmann::json kLabels = ModelFolder::bert("BertForSequenceClassification").config;

TEST(ModelConfig, SizesAndHeadOfBert) {
  auto config = ModelFolder::bert("BertForMaskedLM").config;
  config["hidden_act"] = "gelu_new";
  const auto found = read(config);
  EXPECT_EQ(found.architecture, &kBert);
  EXPECT_EQ(found.description.head, Head::kMaskedTokens);
  const auto& model = found.description.model;
  EXPECT_EQ(model.d_model, 4);
  EXPECT_EQ(model.ffn_dim, 8);
  EXPECT_EQ(model.max_positions, 16);
  EXPECT_EQ(model.num_segments, 2);
  EXPECT_EQ(model.activation, "gelu_tanh");
  EXPECT_TRUE(model.tie_embeddings);
}

TEST(ModelConfig, RobertaCountsPositionsFromPaddingOn) {
  EXPECT_EQ(read(ModelFolder::roberta("RobertaModel").config).description.model.max_positions, 16);
  const auto far = with(ModelFolder::roberta("RobertaModel").config, "pad_token_id", 3);
  EXPECT_EQ(read(far).description.model.max_positions, 14);
  expect_refused(with(far, "pad_token_id", 17), "max_position_embeddings");
}

TEST(ModelConfig, LabelsAndTheirKind) {
  auto config = kLabels;
  config["id2label"] = {{"0", "no"}, {"1", "yes"}};
  EXPECT_EQ(read(config).description.labels, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(read(config).description.label_kind, LabelKind::kOne);
  config["problem_type"] = "multi_label_classification";
  EXPECT_EQ(read(config).description.label_kind, LabelKind::kSeveral);
  config["id2label"] = {{"0", "score"}};
  config.erase("problem_type");
  EXPECT_EQ(read(config).description.label_kind, LabelKind::kNumber);
}

TEST(ModelConfig, WhatCannotBeEqualIsRefused) {
  const auto bert = ModelFolder::bert("BertModel").config;
  expect_refused(with(bert, "model_type", "gpt2"), "`model_type` is `gpt2`");
  expect_refused(with(bert, "position_embedding_type", "relative_key"), "relative_key");
  expect_refused(with(bert, "is_decoder", true), "decoder");
  expect_refused(with(bert, "hidden_act", "silu"), "silu");
  expect_refused(with(bert, "architectures", {"BertForTokenClassification"}), "head is not known");
  EXPECT_EQ(
      read(with(bert, "architectures", {"BertForTokenClassification"}), true).description.head,
      Head::kNone);
}

TEST(ModelConfig, DamagedFilesAreRefused) {
  const auto bert = ModelFolder::bert("BertModel").config;
  for (const auto& value :
       {nlohmann::json(-1), nlohmann::json(1e300), nlohmann::json("4"), nlohmann::json(nullptr),
        nlohmann::json(UINT64_MAX), nlohmann::json::array()}) {
    expect_refused(with(bert, "hidden_size", value), "`hidden_size`");
  }
  expect_refused(with(bert, "architectures", "BertModel"), "no list of names");
  expect_refused(with(bert, "layer_norm_eps", "small"), "`layer_norm_eps` is no number");
  expect_refused(with(kLabels, "id2label", {{"0", "a"}, {"2", "b"}}), "no name for label 1");
  expect_refused(with(kLabels, "id2label", {{"0", "a"}, {"1", "a"}}), "more than one label");
  for (const char* name : {"a\tb", "a\nb"}) {
    expect_refused(with(kLabels, "id2label", {{"0", "a"}, {"1", name}}), "a tab or a line end");
  }
  expect_refused(with(kLabels, "problem_type", "regression"), "regression");
  expect_refused(nlohmann::json::array(), "not a JSON object");
  failure(ExitCode::kBadData,
          [&] { read_model_config(std::string(100'000, '['), "config.json", false); });
}

TEST(ModelConfig, HeadsThatDoNotDivideTheWidthAreRefusedByTheirKey) {
  expect_refused(with(ModelFolder::bert("BertModel").config, "num_attention_heads", 7),
                 "config.json: `num_attention_heads` is 7, which does not divide hidden_size 4");
  expect_refused(with(ModelFolder::roberta("RobertaModel").config, "num_attention_heads", 3),
                 "`num_attention_heads` is 3");
  expect_refused(with(ModelFolder::distilbert("DistilBertModel").config, "n_heads", 3),
                 "`n_heads` is 3, which does not divide dim 4");
}

TEST(ModelConfig, WhatIsWrittenReadsBack) {
  for (const auto& folder : {ModelFolder::bert("BertForSequenceClassification"),
                             ModelFolder::roberta("RobertaForMaskedLM"),
                             ModelFolder::distilbert("DistilBertForQuestionAnswering")}) {
    const auto first = read(folder.config);
    const auto text = write_model_config(*first.architecture, first.description);
    const auto again = read_model_config(text, "again", false);
    EXPECT_EQ(again.architecture, first.architecture);
    EXPECT_EQ(again.model_class, first.model_class);
    EXPECT_EQ(again.description.labels, first.description.labels);
    EXPECT_EQ(again.description.model.max_positions, first.description.model.max_positions);
    EXPECT_EQ(write_model_config(*again.architecture, again.description), text);
  }
}

TEST(ModelConfig, ArchitecturesSayWhatTheyCannotExpress) {
  auto description = read(ModelFolder::bert("BertForMaskedLM").config).description;
  EXPECT_EQ(kBert.incompatibility(description), "");
  EXPECT_NE(kDistilBert.incompatibility(description).find("num_segments"), std::string::npos);
  for (const auto& change : std::vector<std::pair<std::string models::BertOptions::*, const char*>>{
           {&models::BertOptions::norm, "pre"},
           {&models::BertOptions::norm_layer, "rms_norm"},
           {&models::BertOptions::positions, "rotary"},
           {&models::BertOptions::activation, "geglu"}}) {
    auto other = description;
    other.model.*change.first = change.second;
    EXPECT_NE(kBert.incompatibility(other).find(change.second), std::string::npos);
  }
  description.head = Head::kLabels;
  description.model.pooling = "mean";
  EXPECT_NE(kRoberta.incompatibility(description).find("pooling"), std::string::npos);
}

}  // namespace
}  // namespace stretto::interchange
