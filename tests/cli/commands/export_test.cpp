// An export looks at its target first: before the run, its checkpoint and its weights are read.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/program.h"
#include "tests/interchange/model_folder.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;
using stretto::testing::has;
using stretto::testing::ModelFolder;
using stretto::testing::Program;
using stretto::testing::ProgramResult;
using stretto::testing::TempDir;

class ExportCommand : public ::testing::Test {
 protected:
  ExportCommand() {
    folder_.write("taken/mine", "precious");
    folder_.write("file", "precious");
    fs::create_symlink("nowhere", folder_ / "link");
    fs::create_directory(folder_ / "empty");
  }

  ProgramResult exported(const std::string& run, const std::string& target) const {
    return program_.run({"export", run, "--format", "hf", folder_ / target});
  }
  /// Whether there is a remark on the target, and on nothing else.
  void expect_taken(const std::string& run, const std::string& target) const {
    const auto result = exported(run, target);
    EXPECT_EQ(result.code, 2) << target << ": " << result.err;
    EXPECT_TRUE(has(result.err, (folder_ / target).string() + " is there already")) << result.err;
    EXPECT_TRUE(has(result.err, "give the name of a new folder")) << result.err;
  }

  Program program_;
  TempDir folder_;
};

TEST_F(ExportCommand, LooksAtItsTargetBeforeTheRun) {
  for (const char* target : {"taken", "taken/", "file", "link"}) {
    expect_taken("/no/such/run", target);
  }
  for (const char* target : {"empty", "new", "below/new"}) {
    const auto result = exported("/no/such/run", target);
    EXPECT_EQ(result.code, 2) << target;
    EXPECT_TRUE(has(result.err, "no run folder at /no/such/run")) << result.err;
  }
  EXPECT_EQ(stretto::testing::text_of(folder_ / "taken/mine"), "precious");
  EXPECT_TRUE(fs::is_empty(folder_ / "empty"));
}

TEST_F(ExportCommand, RefusesAClassForAFormatWithoutClasses) {
  const auto result =
      program_.run({"export", "run", "--format", "onnx", "--model-type", "bert", folder_ / "new"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "--model-type bert: --format onnx has no such types")) << result.err;
}

TEST_F(ExportCommand, KnowsTheFormatsOfAllFamilies) {
  const auto result = program_.run({"export", "run", "--format", "gguv", folder_ / "new"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err,
                  "must be one of hf, timm, torchvision, ctranslate2, onnx, gguf, safetensors, got "
                  "`gguv`; did you mean `gguf`?"))
      << result.err;
}

TEST_F(ExportCommand, LooksAtItsTargetBeforeACheckpoint) {
  if (!Program::has_engine()) GTEST_SKIP() << "a build without libtorch";
  auto model = ModelFolder::bert("BertForSequenceClassification").with_bert_labels(2);
  model.write();
  const std::string run = folder_ / "run";
  const auto imported = program_.run({"import", model.dir->path(), "--run", run});
  ASSERT_EQ(imported.code, 0) << imported.err;
  for (const auto& entry : fs::recursive_directory_iterator(run)) {
    if (entry.path().filename() != "model.safetensors") continue;
    fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  }
  for (const char* target : {"taken", "file"}) expect_taken(run, target);
  const auto damaged = exported(run, "new");
  EXPECT_EQ(damaged.code, 65) << damaged.err;
  EXPECT_TRUE(has(damaged.err, "model.safetensors")) << damaged.err;
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(ExportCommand, WritesAnEncoderAsAGraphOfOnnx) {
  if (!Program::has_engine()) GTEST_SKIP() << "a build without libtorch";
  auto model = ModelFolder::bert("BertForSequenceClassification").with_bert_labels(2);
  model.write();
  const std::string run = folder_ / "run";
  ASSERT_EQ(program_.run({"import", model.dir->path(), "--run", run}).code, 0);
  const auto done = program_.run({"export", run, "--format", "onnx", folder_ / "onnx"});
  EXPECT_EQ(done.code, 0) << done.err;
  for (const char* file : {"onnx/model.onnx", "onnx/model.onnx_data", "onnx/tokenizer.json"}) {
    EXPECT_TRUE(fs::exists(folder_ / file)) << file;
  }
}

TEST_F(ExportCommand, WritesTheTensorsOfAnyModel) {
  if (!Program::has_engine()) GTEST_SKIP() << "a build without libtorch";
  auto model = ModelFolder::bert("BertForSequenceClassification").with_bert_labels(2);
  model.write();
  const std::string run = folder_ / "run";
  ASSERT_EQ(program_.run({"import", model.dir->path(), "--run", run}).code, 0);
  const auto done = program_.run({"export", run, "--format", "safetensors", folder_ / "tensors"});
  EXPECT_EQ(done.code, 0) << done.err;
  for (const char* file : {"model.safetensors", "config.toml", "tokenizer"}) {
    EXPECT_TRUE(fs::exists(folder_ / "tensors" / file)) << file;
  }
}

TEST_F(ExportCommand, NamesFormatsAndWeightsThatAModelHas) {
  if (!Program::has_engine()) GTEST_SKIP() << "a build without libtorch";
  auto model = ModelFolder::bert("BertForSequenceClassification").with_bert_labels(2);
  model.write();
  const std::string run = folder_ / "run";
  ASSERT_EQ(program_.run({"import", model.dir->path(), "--run", run}).code, 0);
  const auto gguf = program_.run({"export", run, "--format", "gguf", folder_ / "m.gguf"});
  EXPECT_EQ(gguf.code, 2);
  EXPECT_TRUE(has(gguf.err, "formats for it: hf, onnx")) << gguf.err;
  const std::vector<std::pair<std::string, std::string>> refused{{"hf", "int8"},
                                                                 {"onnx", "float16"}};
  for (const auto& [format, weights] : refused) {
    const auto other =
        program_.run({"export", run, "--format", format, "--weights", weights, folder_ / "other"});
    EXPECT_EQ(other.code, 2) << format;
    EXPECT_TRUE(has(other.err, "--weights " + weights)) << other.err;
    EXPECT_FALSE(fs::exists(folder_ / "other"));
  }
}

}  // namespace
}  // namespace stretto::cli
