// Real pictures with classes: their number, their classes, some of their pixels.
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "data/images/image_set.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

class RealImages : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("STRETTO_SHARED");
    if (shared == nullptr) GTEST_SKIP() << "STRETTO_SHARED names no folder with data";
    folder_ = std::filesystem::path(shared) / "data";
    if (!std::filesystem::exists(folder_ / "cifar10_jpg")) {
      GTEST_SKIP() << folder_ << " has no cifar10_jpg";
    }
    options_.cache_dir = (cache_ / "cache").string();
  }
  std::shared_ptr<const ImageTable> open(const std::vector<std::string>& names) const {
    std::vector<std::string> paths;
    for (const auto& name : names) paths.push_back((folder_ / name).string());
    return open_images(options_, "data.train", paths);
  }

  testing::TempDir cache_;
  std::filesystem::path folder_;
  ImageDataOptions options_;
};

std::map<std::string, int> class_counts(const ImageTable& table) {
  std::map<std::string, int> counts;
  for (int64_t i = 0; i < table.size(); ++i) ++counts[table.class_name(i)];
  return counts;
}

TEST_F(RealImages, CifarIsReadFromItsArchives) {
  const auto test = open({"cifar10_jpg/test_2000.tar.gz", "cifar10_jpg/test_more_3000.tar.gz"});
  ASSERT_EQ(test->size(), 5000);
  const auto counts = class_counts(*test);
  EXPECT_EQ(counts.size(), 10U);
  EXPECT_EQ(counts.at("airplane"), 500);
  EXPECT_EQ(counts.at("truck"), 500);
  for (int64_t i = 0; i < test->size(); i += 500) {
    const auto image = test->load(i);
    EXPECT_EQ(image.height, 32);
    EXPECT_EQ(image.width, 32);
  }
  const auto again = open({"cifar10_jpg/test_2000.tar.gz", "cifar10_jpg/test_more_3000.tar.gz"});
  EXPECT_EQ(again->hash(), test->hash());
  EXPECT_EQ(again->read(4999), test->read(4999));
}

TEST_F(RealImages, MnistIsReadFromItsIdxFiles) {
  const auto digits = open({"mnist_t10k_8000/images-idx3-ubyte.gz"});
  ASSERT_EQ(digits->size(), 8000);
  EXPECT_EQ(digits->class_names().size(), 10U);
  EXPECT_EQ(digits->class_names().front(), "0");
  EXPECT_EQ(digits->facts(0).height, 28);
  EXPECT_TRUE(digits->is_raw(0));
  // A digit is white strokes on black.
  const auto image = digits->load(0);
  EXPECT_EQ(image.plane(0)[0], 0);
  EXPECT_EQ(*std::max_element(image.pixels.begin(), image.pixels.end()), 255);
}

TEST_F(RealImages, FashionMnistHasNinetyPicturesAClass) {
  const auto clothes = open({"fashion_mnist_sprite/derived-images-idx3-ubyte.gz"});
  ASSERT_EQ(clothes->size(), 900);
  for (const auto& [name, count] : class_counts(*clothes)) EXPECT_EQ(count, 90) << name;
}

/// Unpacks the files of a zip archive.
void unzip(const std::filesystem::path& zip, const std::filesystem::path& folder) {
  archive* in = archive_read_new();
  archive_read_support_format_zip(in);
  ASSERT_EQ(archive_read_open_filename(in, zip.c_str(), 1 << 16), ARCHIVE_OK);
  for (archive_entry* entry = nullptr; archive_read_next_header(in, &entry) == ARCHIVE_OK;) {
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    std::string bytes(static_cast<size_t>(archive_entry_size(entry)), '\0');
    archive_read_data(in, bytes.data(), bytes.size());
    const auto path = folder / archive_entry_pathname(entry);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  archive_read_free(in);
}

TEST_F(RealImages, OmniglotIsAFolderOfAlphabets) {
  unzip(folder_ / "omniglot_small/images_background_small1.zip", cache_ / "omniglot");
  const auto table = open_images(options_, "data.train", {(cache_ / "omniglot").string()});
  EXPECT_EQ(table->size(), 2720);
  const Labels classes = image_classes(options_, *table);
  EXPECT_EQ(classes.size(), 5) << "the folder above is shared, those of characters lie below";
  EXPECT_EQ(classes.name(0), "Balinese");
  const ImageSet set(table, classes, {});
  const auto image = set.load(0);
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(image->height, 105);
}

TEST_F(RealImages, PicturesWithoutFoldersHaveNoClasses) {
  EXPECT_THROW(open({"photographs/photographs.tar"}), Error);
  options_.bad_samples = "skip";
  EXPECT_THROW(open({"photographs/photographs.tar"}), Error);
}

}  // namespace
}  // namespace stretto::data
