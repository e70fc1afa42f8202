#include "experiment/folder_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "families/translation/translation_options.h"
#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

class FolderFilesTest : public ::testing::Test {
 protected:
  FolderFilesTest() {
    loaded_.options.task.select("translation");
    list() = "/elsewhere/run/list.tsv";
  }
  std::string& list() { return translation_of(loaded_.options).decode.shortlist; }
  std::string own(const std::string& name) const {
    return (std::filesystem::absolute(folder_.path()) / name).string();
  }

  testing::TempDir folder_;
  LoadedExperiment loaded_;
};

TEST_F(FolderFilesTest, OneInTheFolderIsMeantWhereverItWas) {
  take_files_of_folder(loaded_, folder_.path());
  EXPECT_EQ(list(), "/elsewhere/run/list.tsv");
  folder_.write("list.tsv", "a b\n");
  take_files_of_folder(loaded_, folder_.path());
  EXPECT_EQ(list(), own("list.tsv"));
}

TEST_F(FolderFilesTest, ThatOfTheCommandLineStays) {
  folder_.write("list.tsv", "a b\n");
  loaded_.origins.set("decode.shortlist",
                      {.order = {.source = config::Order::kCommandLine},
                       .override_text = "decode.shortlist=/elsewhere/run/list.tsv"});
  take_files_of_folder(loaded_, folder_.path());
  EXPECT_EQ(list(), "/elsewhere/run/list.tsv");
}

TEST_F(FolderFilesTest, ALinkAndDataAreNoSuchFiles) {
  folder_.write("other.tsv", "a b\n");
  std::filesystem::create_symlink(folder_.path() / "other.tsv", folder_.path() / "list.tsv");
  auto& texts = translation_of(loaded_.options).data.train_src;
  texts = {"/elsewhere/run/other.tsv"};
  take_files_of_folder(loaded_, folder_.path());
  EXPECT_EQ(list(), "/elsewhere/run/list.tsv");
  EXPECT_EQ(texts, std::vector<std::string>{"/elsewhere/run/other.tsv"});
}

TEST_F(FolderFilesTest, ACopyOfTheRunNeedsThoseInTheFolderAlone) {
  EXPECT_TRUE(files_of_folder(loaded_.options, folder_.path()).empty());
  folder_.write("list.tsv", "a b\n");
  EXPECT_TRUE(files_of_folder(loaded_.options, folder_.path()).empty());
  take_files_of_folder(loaded_, folder_.path());
  EXPECT_EQ(files_of_folder(loaded_.options, folder_.path()),
            std::vector<std::filesystem::path>{own("list.tsv")});
}

}  // namespace
}  // namespace stretto::experiment
