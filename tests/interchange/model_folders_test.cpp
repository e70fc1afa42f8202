#include "interchange/model_folders.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "interchange/config_reader.h"
#include "tests/base/failure.h"
#include "tests/interchange/marian_folder.h"
#include "tests/interchange/model_folder.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::marian_folder;
using stretto::testing::ModelFolder;

/// The task of the family that reads such a folder.
std::string reader_for(const nlohmann::json& config, const ImportOptions& options = {}) {
  const ModelFolders& found = reader_of(ConfigReader(config, "config.json"), options);
  for (const auto& name : experiment::TaskChoice::names()) {
    experiment::Experiment e;
    e.task.select(name);
    if (find_folders(e) == &found) return name;
  }
  return "";
}

TEST(ModelFolders, AClassIsReadByTheFamilyOfItsHead) {
  EXPECT_EQ(reader_for(ModelFolder::bert("BertForMaskedLM").config), "masked_lm");
  EXPECT_EQ(reader_for(ModelFolder::roberta("RobertaForQuestionAnswering").config),
            "question_answering");
  EXPECT_EQ(reader_for(ModelFolder::distilbert("DistilBertForSequenceClassification").config),
            "text_classification");
  EXPECT_EQ(reader_for(marian_folder().config), "translation");
  EXPECT_EQ(reader_for({{"model_type", "gpt2"}}), "language_model");
}

TEST(ModelFolders, OneFamilyReadsEncodersAlone) {
  const auto spans = ModelFolder::bert("BertForQuestionAnswering").config;
  EXPECT_EQ(reader_for(spans, {.encoder_only = true}), "masked_lm");
  EXPECT_EQ(reader_for(ModelFolder::bert("BertModel").config), "masked_lm");
  // Its reader says that the head is not known.
  EXPECT_EQ(reader_for(ModelFolder::bert("BertForTokenClassification").config), "masked_lm");
}

TEST(ModelFolders, AnUnknownTypeIsRefusedWithTheKnownOnes) {
  for (const auto& [type, what] : {std::pair("gptj", "is `gptj`"), std::pair("", "is missing")}) {
    auto config = ModelFolder::bert("BertModel").config;
    config["model_type"] = type;
    const auto error = failure(ExitCode::kBadData, [&] { reader_for(config); });
    EXPECT_NE(error.message().find(what), std::string::npos) << error.message();
    for (const char* known :
         {"bert", "roberta", "distilbert", "marian", "pegasus", "gpt2", "llama"}) {
      EXPECT_NE(error.advice().find(known), std::string::npos) << error.advice();
    }
  }
}

TEST(ModelFolders, AnOldFolderIsOfTheTypeOfItsClass) {
  const auto type_of = [](const nlohmann::json& config) {
    return with_type_of_class(ConfigReader(config, "config.json")).text("model_type", "");
  };
  const auto of_class = [&](const std::string& name) {
    return type_of({{"architectures", nlohmann::json::array({name})}});
  };
  for (const auto& [name, type] : {std::pair("BertForMaskedLM", "bert"),
                                   {"BertModel", "bert"},
                                   {"DistilBertForSequenceClassification", "distilbert"},
                                   {"RobertaModel", "roberta"},
                                   {"GPT2LMHeadModel", "gpt2"},
                                   {"LlamaForCausalLM", "llama"},
                                   {"MarianMTModel", "marian"},
                                   {"PegasusForConditionalGeneration", "pegasus"},
                                   {"Qwen2ForCausalLM", "qwen2"},
                                   {"BertGenerationDecoder", ""},
                                   {"RobertaPreLayerNormForMaskedLM", ""},
                                   {"Qwen2MoeForCausalLM", ""},
                                   {"GPTJForCausalLM", ""},
                                   {"", ""}}) {
    EXPECT_EQ(of_class(name), type) << name;
  }
  EXPECT_EQ(type_of({{"model_type", "bert"}, {"architectures", {"GPT2Model"}}}), "bert");
  EXPECT_EQ(type_of(nlohmann::json::object()), "");
  EXPECT_EQ(type_of({{"model_type", nullptr}, {"architectures", {"BertModel"}}}), "bert");
}

TEST(ModelFolders, AFolderOfAnOldClassIsRead) {
  auto folder = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  folder.config.erase("model_type");
  folder.write();
  const auto& reader = reader_of(read_folder_config(folder.dir->path()), {});
  EXPECT_EQ(reader.read(folder.dir->path(), {}).model_class, "BertForMaskedLM");
}

TEST(ModelFolders, EveryTypeIsKnownOnce) {
  auto types = known_model_types();
  std::ranges::sort(types);
  EXPECT_EQ(types,
            (std::vector<std::string>{"bert", "distilbert", "gpt2", "llama", "marian", "mistral",
                                      "pegasus", "qwen2", "qwen3", "resnet", "roberta", "vit"}));
}

TEST(ModelFolders, AClassOfAnotherKindOfModelIsRefusedWithTheTask) {
  experiment::Experiment e;  // of translation
  const auto refusal = [&](const char* wanted) {
    return failure(ExitCode::kUsage, [&] { require_kind_of_class(e, wanted); });
  };
  for (const char* its : {"auto", "marian", "pegasus"}) require_kind_of_class(e, its);
  EXPECT_EQ(std::string(refusal("bert").what()),
            "--model-type bert is a class of encoders of text, and the task of the run is "
            "translation");
  e.task.select("masked_lm");
  for (const char* its : {"auto", "bert", "roberta", "distilbert"}) require_kind_of_class(e, its);
  for (const char* other : {"marian", "pegasus"}) {
    EXPECT_EQ(std::string(refusal(other).what()),
              "--model-type " + std::string(other) +
                  " is a class of translation models, and the task of the run is masked_lm");
  }
}

}  // namespace
}  // namespace stretto::interchange
