#include "interchange/import_folder.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"
#include "tests/interchange/marian_folder.h"
#include "tests/interchange/model_folder.h"

namespace stretto::interchange {
namespace {

using stretto::testing::failure;
using stretto::testing::marian_folder;
using stretto::testing::ModelFolder;
using stretto::testing::TempDir;

TEST(ImportFolder, ConfigJsonSaysWhichReaderItIs) {
  auto text = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  text.write();
  const auto encoder = import_folder(text.dir->path());
  EXPECT_EQ(encoder.model_class, "BertForMaskedLM");
  EXPECT_EQ(encoder.experiment.task.name(), "masked_lm");
  EXPECT_EQ(encoder.num_pieces, 8);
  EXPECT_TRUE(encoder.assets.contains("tokenizer.json"));

  auto pair = marian_folder();
  pair.write();
  const auto translation = import_folder(pair.dir->path());
  EXPECT_EQ(translation.model_class, "MarianMTModel");
  EXPECT_EQ(translation.experiment.task.name(), "translation");
  EXPECT_EQ(translation.num_pieces, 24);
  EXPECT_TRUE(translation.vectors.options.empty());
  EXPECT_TRUE(translation.vectors.problem.empty());
}

// The bytes of tensors outlive their reader.
TEST(ImportFolder, TensorsHaveTheirBytes) {
  auto folder = marian_folder();
  folder.write();
  const auto model = import_folder(folder.dir->path());
  ASSERT_FALSE(model.tensors.empty());
  for (const auto& tensor : model.tensors) {
    EXPECT_EQ(tensor.bytes.size(), static_cast<size_t>(tensor.num_elements()) * sizeof(float));
    if (tensor.name != "embedding.weight") continue;
    EXPECT_EQ(tensor.bytes, folder.values_of("model.shared.weight"));
  }
}

TEST(ImportFolder, OptionsReachTheReader) {
  auto folder = ModelFolder::bert("BertForMaskedLM").with_bert_masked_tokens();
  folder.shapes["adapter.weight"] = {2};
  folder.write();
  failure(ExitCode::kBadData, [&] { import_folder(folder.dir->path()); });
  const auto model = import_folder(folder.dir->path(), {.ignore_extra = true});
  EXPECT_EQ(model.left_out, std::vector<std::string>{"adapter.weight"});
}

TEST(ImportFolder, NeedsAFolderWithAConfigJson) {
  const TempDir empty;
  failure(ExitCode::kUsage, [&] { import_folder(empty.path()); });
  const Error error = failure(ExitCode::kUsage, [&] { import_folder(empty / "elsewhere"); });
  EXPECT_NE(error.message().find("no folder at"), std::string::npos) << error.message();
}

}  // namespace
}  // namespace stretto::interchange
