// Models of pictures from a file of weights alone, and the formats in which they are written.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "store/safetensors.h"
#include "tests/cli/program.h"
#include "tests/families/image_classification/folders/image_weights.h"
#include "tests/interchange/model_folder.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;
using stretto::testing::has;
using stretto::testing::ModelFolder;
using stretto::testing::Program;
using stretto::testing::TempDir;

class ImportOfImages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Program::has_engine()) GTEST_SKIP() << "a build without libtorch";
    // Eight layers for CIFAR.
    weights_.shapes =
        stretto::testing::ResNetShapes(models::shape_of(stretto::testing::resnet_of_depth(8, 2)),
                                       stretto::testing::cifar_names(), 3)
            .shapes;
    weights_.config = nlohmann::json::object();
    weights_.write("resnet8.safetensors");
    file_ = (*weights_.dir / "resnet8.safetensors").string();
    run_ = (folder_ / "run").string();
  }

  Program program_;
  ModelFolder weights_;
  TempDir folder_;
  std::string file_, run_;
};

TEST_F(ImportOfImages, AFileOfWeightsIsARun) {
  const auto labels = folder_.write("labels.txt", "cat\ndog\nfish\n");
  const auto result = program_.run({"import", file_, "--run", run_, "--labels", labels});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "ResNet")) << result.out;
  EXPECT_TRUE(has(stretto::testing::text_of(run_ + "/tokenizer/labels.json"), "fish"));
  const auto exported =
      program_.run({"export", run_, "--format", "torchvision", folder_ / "torchvision"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const store::SafetensorsFile written(folder_ / "torchvision/model.safetensors");
  for (const auto& [name, shape] : weights_.shapes) {
    ASSERT_NE(written.find(name), nullptr) << name;
    EXPECT_EQ(written.find(name)->bytes, weights_.values_of(name)) << name;
  }
}

TEST_F(ImportOfImages, ClassesWithoutNamesAreNumbersAndTheLogSaysSo) {
  const auto result = program_.run({"import", file_, "--run", run_});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "--labels FILE names them")) << result.err;
}

TEST_F(ImportOfImages, AFormatThatCannotExpressAModelIsRefusedWithTheReason) {
  ASSERT_EQ(program_.run({"import", file_, "--run", run_}).code, 0);
  for (const char* format : {"hf", "timm"}) {
    const auto result = program_.run({"export", run_, "--format", format, folder_ / "out"});
    EXPECT_EQ(result.code, 2) << format;
    EXPECT_FALSE(fs::exists(folder_ / "out"));
  }
  auto text = ModelFolder::bert("BertForSequenceClassification").with_bert_labels(2);
  text.write();
  const auto bert = (folder_ / "bert").string();
  ASSERT_EQ(program_.run({"import", text.dir->path(), "--run", bert}).code, 0);
  const auto result = program_.run({"export", bert, "--format", "timm", folder_ / "out"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "formats for it: hf")) << result.err;
}

TEST_F(ImportOfImages, OtherWeightsAreRefusedAndNothingIsLeft) {
  auto folder = ModelFolder::bert("BertModel");
  folder.write("bert.safetensors");
  const auto file = (*folder.dir / "bert.safetensors").string();
  const auto result = program_.run({"import", file, "--run", run_});
  EXPECT_EQ(result.code, 65) << result.err;
  EXPECT_TRUE(has(result.err, "a file of weights alone")) << result.err;
  EXPECT_FALSE(fs::exists(run_));
}

}  // namespace
}  // namespace stretto::cli
