#include "data/images/image_inputs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "data/images/image_files.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/images/archives.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;
using test::png;
using Paths = std::vector<std::string>;

class ImageInputsTest : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) const {
    return folder_.write(name, bytes);
  }
  std::string below(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<ImageInput> resolve(const Paths& paths, const std::string& format = "auto",
                                  const std::string& key = "data.train") const {
    ImageDataOptions options;
    options.format = format;
    return image_inputs(options, key, paths);
  }
  ImageFormat format_of(const std::string& path) const { return resolve({path}).at(0).format; }
  std::string refusal(const Paths& paths, const std::string& format = "auto") const {
    return failure(ExitCode::kUsage, [&] { resolve(paths, format); }).what();
  }

  testing::TempDir folder_;
};

TEST_F(ImageInputsTest, ContentTellsTheFormatAndNotTheName) {
  put("tree/cat/1.png", png(1));
  EXPECT_EQ(format_of(below("tree")), ImageFormat::kFolder);
  EXPECT_EQ(format_of(put("a.bin", test::tar_of({{"cat/1.png", png(1)}}))), ImageFormat::kTar);
  EXPECT_EQ(format_of(put("b.bin", test::tar_of({{"cat/1.png", png(1)}}, test::TarForm::kGnu,
                                                /*is_packed=*/true))),
            ImageFormat::kTar);
  EXPECT_EQ(format_of(put("c.tar", test::tar_of({{"1.png", png(1)}, {"1.cls", "3"}}))),
            ImageFormat::kWebDataset);
  EXPECT_EQ(format_of(put("d.csv", "path,label\n1.png,cat\n")), ImageFormat::kManifest);
  EXPECT_EQ(format_of(put("e.dat", test::cifar10_record(1, 2, 3, 4))), ImageFormat::kCifar10);
  EXPECT_EQ(format_of(put("f.dat", "\x13" + test::cifar10_record(99, 2, 3, 4))),
            ImageFormat::kCifar100);
}

TEST_F(ImageInputsTest, LabelsOfAnIdxFileAreBesideOrTheNextPath) {
  const auto images = put("train-images-idx3-ubyte", test::idx_images(1, 1, 1, "a"));
  const auto labels = put("train-labels-idx1-ubyte", test::idx_labels("a"));
  const auto others = put("others", test::idx_labels("b"));
  auto inputs = resolve({images});
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_EQ(inputs[0].format, ImageFormat::kIdx);
  EXPECT_EQ(inputs[0].beside, labels);
  inputs = resolve({images, others});
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_EQ(inputs[0].beside, others);
  EXPECT_EQ(refusal({labels}),
            labels + ": is an idx file of labels, and stands behind no file of pictures");
  fs::remove(labels);
  EXPECT_EQ(refusal({images}), images + ": there is no file of labels for this idx file");
  EXPECT_EQ(refusal({images, images}),
            images + ": there is no file of labels for this idx file: " + images +
                ", the path behind it, does not begin with the bytes 0 0 8 1 of labels");
}

TEST_F(ImageInputsTest, AFolderOfArchivesStandsForThem) {
  put("shards/b.tar", test::tar_of({{"1.png", png(1)}, {"1.cls", "3"}}));
  put("shards/a.tar.gz", test::tar_of({{"1.png", png(1)}, {"1.cls", "3"}}, test::TarForm::kPax,
                                      /*is_packed=*/true));
  const auto inputs = resolve({below("shards")});
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs[0].path, below("shards/a.tar.gz"));
  EXPECT_EQ(inputs[1].format, ImageFormat::kWebDataset);
  EXPECT_EQ(resolve({below("shards")}, "tar")[1].format, ImageFormat::kTar);
}

TEST_F(ImageInputsTest, AFolderOfCifarHasASetForEachKey) {
  for (const char* name : {"data_batch_2.bin", "data_batch_1.bin", "test_batch.bin"}) {
    put(std::string("c/") + name, test::cifar10_record(1, 2, 3, 4));
  }
  put("c/batches.meta.txt", "airplane\n");
  const auto train = resolve({below("c")});
  ASSERT_EQ(train.size(), 2U);
  EXPECT_EQ(train[0].path, below("c/data_batch_1.bin"));
  EXPECT_EQ(train[0].beside, below("c/batches.meta.txt"));
  const auto test = resolve({below("c")}, "cifar10", "data.valid");
  ASSERT_EQ(test.size(), 1U);
  EXPECT_EQ(test[0].path, below("c/test_batch.bin"));
}

TEST_F(ImageInputsTest, WhatCannotBeReadIsRefused) {
  EXPECT_EQ(refusal({below("gone")}), below("gone") + ": no such file or folder");
  EXPECT_EQ(refusal({put("empty", "")}), below("empty") + ": is empty");
  EXPECT_EQ(refusal({put("text", "hello")}),
            below("text") + ": its content is of no format for pictures and their classes");
  put("tree/cat/1.png", png(1));
  EXPECT_EQ(refusal({below("tree")}, "idx"),
            below("tree") + ": is a folder, and data.format = \"idx\"");
  EXPECT_EQ(refusal({below("text")}, "folder"),
            below("text") + ": is a file, and data.format = \"folder\"");
  EXPECT_EQ(refusal({below("tree"), below("tree") + "/"}),
            below("tree") + "/: is named twice in data.train");
}

TEST_F(ImageInputsTest, DataFilesHaveTheKindsThatTellWhatChanged) {
  put("tree/cat/1.png", png(1));
  const auto list = put("list.csv", "path,label\ntree/cat/1.png,cat\n");
  const auto tar = put("a.tar", test::tar_of({{"cat/1.png", png(1)}}));
  const auto images = put("images-idx3", test::idx_images(1, 1, 1, "a"));
  const auto labels = put("labels-idx1", test::idx_labels("a"));
  std::vector<DataFile> files;
  for (const auto& path : {below("tree"), list, tar, images}) files.push_back({"data.train", path});
  files.push_back({"data.valid", below("gone")});
  files.push_back({"data.valid", below("tree")});
  const auto kinds = image_data_files({}, files);
  ASSERT_EQ(kinds.size(), 7U);
  EXPECT_EQ(kinds[0], (DataFile{"data.train", below("tree"), DataKind::kTree, {}}));
  EXPECT_EQ(kinds[1].kind, DataKind::kManifest);
  std::vector<std::string> named;
  kinds[1].rows(list, [&](const NamedFile& file) { named.push_back(file.path); });
  EXPECT_EQ(named, Paths{"tree/cat/1.png"});
  EXPECT_EQ(kinds[2].kind, DataKind::kBytes);
  EXPECT_EQ(kinds[3].kind, DataKind::kBytes);
  EXPECT_EQ(kinds[4], (DataFile{"data.train", labels, DataKind::kBytes, {}}));
  EXPECT_EQ(kinds[5].kind, DataKind::kText) << "nothing is known of what is not there";
  EXPECT_EQ(kinds[6].kind, DataKind::kTree);
}

TEST_F(ImageInputsTest, PicturesAreCountedWithoutReadingThem) {
  put("tree/train/cat/1.png", "");
  put("tree/train/cat/deep/2.png", "");
  put("tree/train/dog/3.png", "");
  put("tree/train/.hidden/4.png", "");
  const auto count = [](const Paths& paths) { return count_images({}, paths); };
  EXPECT_EQ(count({below("tree")})->pictures, 3);
  EXPECT_EQ(count({below("tree")})->classes, 2);
  const auto list = put("list.csv", "path,label\na.png,cat\nb.png,lion\n");
  EXPECT_EQ(count({below("tree"), list})->pictures, 5);
  EXPECT_EQ(count({below("tree"), list})->classes, 3);
  const auto images = put("images-idx3", test::idx_images(3, 1, 1, "abc"));
  put("labels-idx1", test::idx_labels("aab"));
  EXPECT_EQ(count({images})->pictures, 3);
  EXPECT_EQ(count({images})->classes, 2);
  const auto tar = put("a.tar", test::tar_of({{"cat/1.png", png(1)}}));
  EXPECT_FALSE(count({tar}).has_value());
}

TEST_F(ImageInputsTest, LoadingTakesTheCoresUnlessItIsTold) {
  ImageDataOptions options;
  EXPECT_EQ(image_loading(options, 3).threads, 3);
  EXPECT_EQ(image_loading(options, 3).depth, options.prefetch);
  options.threads = 2;
  EXPECT_EQ(image_loading(options, 3).threads, 2);
}

}  // namespace
}  // namespace stretto::data
