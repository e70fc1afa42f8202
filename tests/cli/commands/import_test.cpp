#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/program.h"
#include "tests/interchange/model_folder.h"
#include "tests/store/pickle_writer.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;
using stretto::testing::has;
using stretto::testing::ModelFolder;
using stretto::testing::PickleWriter;
using stretto::testing::Program;
using stretto::testing::TempDir;

class ImportCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Program::has_engine()) GTEST_SKIP() << "a build without libtorch";
  }

  stretto::testing::ProgramResult import(const ModelFolder& folder,
                                         const std::string& option = "") const {
    std::vector<std::string> words{"import", folder.dir->path(), "--run", run_.path() / "model"};
    if (!option.empty()) words.push_back(option);
    return program_.run(words);
  }

  /// Refused with these words, and nothing is left behind.
  void refuses(const ModelFolder& folder, const std::string& said, int code = 65) const {
    const auto result = import(folder);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_TRUE(has(result.err, said)) << result.err;
    EXPECT_TRUE(fs::is_empty(run_.path()));
  }

  Program program_;
  TempDir run_;
};

TEST_F(ImportCommand, MakesARunThatIsExportedAgain) {
  auto folder = ModelFolder::bert("BertForSequenceClassification").with_bert_labels(2);
  folder.config["id2label"] = {{"0", "no"}, {"1", "yes"}};
  folder.write();
  const auto result = import(folder);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "BertForSequenceClassification")) << result.out;
  const auto again = import(folder);
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "is there already")) << again.err;
  const auto answers = program_.run({"infer", run_.path() / "model"}, "red houses\n");
  EXPECT_EQ(answers.code, 0) << answers.err;
  EXPECT_TRUE(has(answers.out, "yes") || has(answers.out, "no")) << answers.out;
  const auto exported =
      program_.run({"export", run_.path() / "model", "--format", "hf", run_.path() / "out"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const store::SafetensorsFile file(run_.path() / "out/model.safetensors");
  for (const auto& [name, shape] : folder.shapes) {
    ASSERT_NE(file.find(name), nullptr) << name;
    EXPECT_EQ(file.find(name)->bytes, folder.values_of(name)) << name;
  }
}

TEST_F(ImportCommand, AnEncoderEmbedsAndNothingElse) {
  auto folder = ModelFolder::bert("BertModel", "");
  folder.write();
  ASSERT_EQ(import(folder).code, 0);
  const auto result = program_.run({"infer", run_.path() / "model"}, "red [MASK]\n");
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "without a head")) << result.err;
  const auto eval = program_.run({"eval", run_.path() / "model"});
  EXPECT_EQ(eval.code, 2);
  EXPECT_TRUE(has(eval.err, "without a head")) << eval.err;
  const auto vectors = program_.run({"embed", run_.path() / "model"}, "red\n");
  EXPECT_EQ(vectors.code, 0) << vectors.err;
}

TEST_F(ImportCommand, MissingTensorsGetTheirFirstWeightsIfAsked) {
  auto folder = ModelFolder::bert("BertForQuestionAnswering");
  folder.write();
  refuses(folder, "missing: qa_outputs.weight, qa_outputs.bias");
  const auto result = import(folder, "--allow-missing");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "head.output.weight")) << result.err;
}

TEST_F(ImportCommand, NamesThatTheErrorHasNoRoomForStandAboveIt) {
  auto folder = ModelFolder::bert("BertModel", "");
  for (int i = 10; i < 35; ++i) folder.shapes["adapter." + std::to_string(i) + ".weight"] = {2};
  folder.write();
  const auto result = import(folder);
  EXPECT_EQ(result.code, 65) << result.err;
  const size_t error = result.err.find("error: ");
  ASSERT_NE(error, std::string::npos) << result.err;
  EXPECT_TRUE(has(result.err, "adapter.29.weight, and 5 more")) << result.err;
  for (int i = 10; i < 35; ++i) {
    const std::string line = "  `adapter." + std::to_string(i) + ".weight` is not in the model\n";
    EXPECT_LT(result.err.find(line), error) << line << result.err;
  }
  EXPECT_TRUE(fs::is_empty(run_.path()));
}

TEST_F(ImportCommand, WarnsOfValuesThatAreNotFinite) {
  auto folder = ModelFolder::bert("BertForSequenceClassification").with_bert_labels(2);
  const auto err_of = [&] {
    folder.write();
    fs::remove_all(run_.path() / "model");
    const auto result = import(folder);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.err;
  };
  EXPECT_FALSE(has(err_of(), "not finite"));
  folder.last_values = {{"classifier.weight", std::nanf("")}};
  std::string err = err_of();
  EXPECT_TRUE(has(err,
                  "warning: `classifier.weight` has values that are not finite; answers of this "
                  "model will be refused"))
      << err;
  folder.last_values["bert.embeddings.LayerNorm.bias"] = std::nanf("");
  err = err_of();
  EXPECT_TRUE(has(err, "`bert.embeddings.LayerNorm.bias` and 1 other tensor have values that"))
      << err;
}

TEST_F(ImportCommand, TellsTheOptionsOfEmbedThatTheFolderAsksFor) {
  auto folder = ModelFolder::bert("BertModel", "");
  folder.write();
  folder.dir->write("modules.json", R"([{"type": "sentence_transformers.models.Transformer"},
    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  folder.dir->write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  const std::string run = run_.path() / "model";
  auto result = import(folder);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "modules.json asks for the vectors of `stretto embed " + run +
                                  " --pooling mean --normalize`"))
      << result.err;
  const auto vectors = program_.run({"embed", run, "--pooling", "mean", "--normalize"}, "red\n");
  EXPECT_EQ(vectors.code, 0) << vectors.err;

  fs::remove_all(run);
  folder.dir->write("1_Pooling/config.json", "{\n]");
  result = import(folder);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "warning: ")) << result.err;
  EXPECT_TRUE(has(result.err, "1_Pooling/config.json:2:1: ")) << result.err;
  EXPECT_FALSE(has(result.err, "asks for")) << result.err;
}

TEST_F(ImportCommand, HostileFoldersLeaveNothing) {
  auto folder = ModelFolder::bert("BertModel", "");
  folder.write();
  fs::remove(*folder.dir / "model.safetensors");
  folder.dir->write("pytorch_model.bin",
                    PickleWriter().global("os", "system").text("touch owned").raw("\x85R.").bytes);
  refuses(folder, "os.system");
  EXPECT_FALSE(fs::exists(program_.folder / "owned"));
  fs::remove(*folder.dir / "pytorch_model.bin");
  folder.dir->write("model.safetensors", std::string("\0\0\0\x80\0\0\0\0{}", 10));
  refuses(folder, "a header of 2.0 GiB");
  folder.dir->write("config.json", std::string(100'000, '['));
  refuses(folder, "nested deeper");
  fs::remove(*folder.dir / "model.safetensors");
  folder.shapes["embeddings.LayerNorm.weight"] = {5};
  folder.write();
  refuses(folder,
          "`embeddings.LayerNorm.weight` (`encoder.embedding_norm.weight`) is [5], the model has "
          "[4]");
}

TEST_F(ImportCommand, ShapesThatDoNotFitHaveTheNamesOfTheFolder) {
  auto folder = ModelFolder::bert("BertForSequenceClassification").with_bert_labels(2);
  folder.shapes["classifier.bias"] = {7};
  const std::string self = "bert.encoder.layer.0.attention.self.";
  for (const char* part : {"query.bias", "key.bias", "value.bias"}) {
    folder.shapes[self + part] = {3};
  }
  folder.write();
  refuses(folder, "`classifier.bias` (`head.output.bias`) is [7], the model has [2]");
  refuses(folder, "`" + self + "query.bias` + `" + self + "key.bias` + `" + self +
                      "value.bias` (`encoder.layers.0.self_attention.qkv.bias`) is [9], the model "
                      "has [12]");
}

TEST_F(ImportCommand, AModelThatCannotBeIsBlamedOnItsConfigJson) {
  auto folder = ModelFolder::bert("BertModel", "");
  folder.config["num_attention_heads"] = 7;
  folder.write();
  refuses(folder, "config.json: `num_attention_heads` is 7");
  fs::remove(*folder.dir / "model.safetensors");
  folder.config["num_attention_heads"] = 2;
  folder.config["hidden_dropout_prob"] = 2.0;
  folder.write();
  refuses(folder,
          "config.json describes a model that Stretto refuses: `model.dropout` must be in [0, 1)");
}

TEST_F(ImportCommand, ExportWantsARunAndAFormat) {
  const auto result = program_.run({"export", "nowhere", "--format", "hf", "out"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "no run folder at nowhere")) << result.err;
  EXPECT_EQ(program_.run({"export", "nowhere", "out"}).code, 2);  // --format is not given
}

}  // namespace
}  // namespace stretto::cli
