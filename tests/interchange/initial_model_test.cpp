#include "interchange/initial_model.h"

#include <gtest/gtest.h>

#include "families/text/encoder_sections.h"
#include "interchange/import_folder.h"
#include "tests/base/failure.h"
#include "tests/interchange/marian_folder.h"
#include "tests/interchange/model_folder.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::marian_folder;
using stretto::testing::ModelFolder;
using stretto::testing::TempDir;

experiment::Experiment own_task(const std::string& name) {
  experiment::Experiment own;
  own.task.select(name);
  return own;
}

ModelFolder written(ModelFolder folder) {
  folder.write();
  return folder;
}

const models::BertOptions& text_model_of(const experiment::OtherModel& other) {
  return *experiment::encoder_sections(other.options).model;
}

TEST(InitialModelFolder, IsAConfigJsonWithoutARun) {
  const TempDir dir;
  EXPECT_FALSE(is_model_folder(dir.path()));
  EXPECT_FALSE(is_model_folder(dir / "nothing"));
  dir.write("config.json", "{}");
  EXPECT_TRUE(is_model_folder(dir.path()));
  EXPECT_FALSE(is_model_folder(dir / "config.json"));
  for (const char* name : {"run.json", "manifest.json", "checkpoints/x"}) {
    const TempDir run;
    run.write("config.json", "{}");
    run.write(name, "{}");
    EXPECT_FALSE(is_model_folder(run.path())) << name;
  }
}

TEST(InitialModelFolder, DescribesTheHeadOfTheOwnTaskAlone) {
  const auto folder =
      written(ModelFolder::bert("BertForSequenceClassification").with_bert_labels(2));
  const auto same = describe_initial_model(folder.dir->path(), own_task("text_classification"));
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(same->options.task.name(), "text_classification");
  EXPECT_EQ(text_model_of(*same).head, "auto");
  EXPECT_EQ(text_model_of(*same).d_model, 4);
  EXPECT_EQ(same->name, folder.dir->path().string());
  EXPECT_NE(std::find(same->tensors.begin(), same->tensors.end(), "encoder.embedding.weight"),
            same->tensors.end());
  const auto other = describe_initial_model(folder.dir->path(), own_task("question_answering"));
  EXPECT_EQ(text_model_of(*other).head, "none");
  EXPECT_EQ(text_model_of(*other).pooling, "cls_tanh");
}

TEST(InitialModelFolder, OfDistilBertHasNoPooler) {
  const auto folder = written(ModelFolder::distilbert("DistilBertModel"));
  const auto other = describe_initial_model(folder.dir->path(), own_task("text_classification"));
  EXPECT_EQ(text_model_of(*other).pooling, "mean");
  EXPECT_EQ(text_model_of(*other).num_segments, 0);
}

// A head that nobody knows is none of this task.
TEST(InitialModelFolder, MayHaveAHeadThatIsNotKnown) {
  const auto folder = written(ModelFolder::bert("BertForTokenClassification"));
  failure(ExitCode::kBadData, [&] { import_folder(folder.dir->path()); });
  const auto model = import_initial_model(folder.dir->path(), own_task("text_classification"));
  EXPECT_EQ(model.model_class, "BertModel");
}

TEST(InitialModelFolder, KeepsThePoolerOfAnEncoder) {
  auto folder = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  folder.add_layer("bert.pooler.dense", 4, 4);
  folder.write();
  const auto has = [&](const std::string& task, const std::string& name) {
    const auto model = import_initial_model(folder.dir->path(), own_task(task));
    return std::any_of(model.tensors.begin(), model.tensors.end(),
                       [&](const auto& tensor) { return tensor.name == name; });
  };
  EXPECT_TRUE(has("text_classification", "head.pooler.weight"));
  EXPECT_FALSE(has("text_classification", "head.bias"));
  EXPECT_TRUE(has("masked_lm", "head.bias"));
}

TEST(InitialModelFolder, OfTranslationIsDescribedByItsWeightsToo) {
  auto folder = marian_folder();
  folder.write();
  const auto own = own_task("translation");
  const auto other = describe_initial_model(folder.dir->path(), own);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->options.task.name(), "translation");
  EXPECT_FALSE(other->tensors.empty());
  EXPECT_EQ(import_initial_model(folder.dir->path(), own).model_class, "MarianMTModel");
}

TEST(InitialModelFolder, OfAnotherKindOfTaskIsRefused) {
  const auto folder = written(ModelFolder::bert("BertModel"));
  auto own = own_task("translation");
  const auto error =
      failure(ExitCode::kUsage, [&] { import_initial_model(folder.dir->path(), own); });
  EXPECT_NE(std::string(error.what()).find("train.init_from: "), std::string::npos);
  EXPECT_NE(std::string(error.what()).find("an encoder of text"), std::string::npos)
      << error.what();
  own.train.init_only = {"encoder.*"};
  EXPECT_NO_THROW(import_initial_model(folder.dir->path(), own));
}

TEST(InitialModelFolder, IsRefusedAsItsImportIs) {
  auto folder = ModelFolder::bert("BertModel");
  folder.shapes["bert.extra.weight"] = {2, 2};
  folder.write();
  const auto own = own_task("masked_lm");
  const auto error =
      failure(ExitCode::kBadData, [&] { import_initial_model(folder.dir->path(), own); });
  EXPECT_NE(std::string(error.what()).find("bert.extra.weight"), std::string::npos) << error.what();
  EXPECT_NE(error.advice().find("`stretto import`"), std::string::npos) << error.advice();
  folder.config["num_hidden_layers"] = 5000;
  folder.write();
  failure(ExitCode::kBadData, [&] { describe_initial_model(folder.dir->path(), own); });
}

}  // namespace
}  // namespace stretto::interchange
