#include "experiment/data_files.h"

#include <gtest/gtest.h>

#include "experiment/experiment_schema.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

using Texts = std::vector<std::string>;

Texts texts_of(const Experiment& experiment) {
  Texts texts;
  for (const auto& file : data_files_of(experiment)) texts.push_back(file.key + " " + file.path);
  return texts;
}

TEST(DataFiles, AreThoseOfTrainingAndValidationInEveryFamily) {
  for (const char* family : {"masked_lm", "question_answering", "text_classification"}) {
    Experiment experiment;
    experiment.task.select(family);
    const auto schema = experiment_schema(experiment);
    const auto set = [&](const char* key, const Texts& paths) {
      *std::get<std::vector<std::string>*>(schema.find(key)->value) = paths;
    };
    set("data.test", {"/t"});
    set("data.valid", {"/v"});
    set("data.train", {"/b", "/a"});
    EXPECT_EQ(texts_of(experiment), (Texts{"data.train /b", "data.train /a", "data.valid /v"}))
        << family;
  }
}

TEST(DataFiles, AreThoseOfEachDecoderToo) {
  Experiment experiment;
  auto& data = translation_of(experiment).data;
  data.train_src = {"/s"};
  data.test_src = {"/t"};
  data.cache_dir = "/c";
  data.heads.resize(2);
  data.heads[0].train_tgt = {"/de"};
  data.heads[1].valid_tsv = {"/fr.zip:m"};
  EXPECT_EQ(texts_of(experiment), (Texts{"data.train_src /s", "data.heads.0.train_tgt /de",
                                         "data.heads.1.valid_tsv /fr.zip:m"}));
}

TEST(DataFiles, OfPathKeysAreTextAndHaveTestDataToo) {
  Experiment experiment;
  auto& data = translation_of(experiment).data;
  data.train_src = {"/s"};
  data.test_src = {"/t"};
  data.cache_dir = "/c";
  const std::vector<data::DataFile> wanted{{"data.train_src", "/s"}, {"data.test_src", "/t"}};
  EXPECT_EQ(files_of_path_keys(experiment), wanted);
  EXPECT_EQ(all_data_files_of(experiment), wanted);
}

TEST(DataFiles, AreRememberedBesideTheCacheOfTheirFamily) {
  Experiment experiment;
  translation_of(experiment).data.cache_dir = "/c";
  EXPECT_EQ(digest_setting_of(experiment).memory_dir, "/c/hashes");
  for (const char* family : {"masked_lm", "question_answering", "text_classification"}) {
    experiment.task.select(family);
    EXPECT_EQ(digest_setting_of(experiment).memory_dir.filename(), "hashes") << family;
  }
}

}  // namespace
}  // namespace stretto::experiment
