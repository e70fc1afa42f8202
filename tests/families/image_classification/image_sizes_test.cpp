#include "families/image_classification/image_sizes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace stretto::experiment {
namespace {

TEST(ImageSizes, AreThoseOfTheModelWhereNoneIsGiven) {
  ImageClassificationOptions options;
  options.model.select("resnet");
  EXPECT_EQ(image_size_of(options), 224);
  EXPECT_EQ(test_size_of(options), 224);
  options.augment.image_size = 160;
  EXPECT_EQ(image_size_of(options), 160);
  EXPECT_EQ(test_size_of(options), 160);
  options.augment.test_size = 224;
  EXPECT_EQ(test_size_of(options), 224);
}

TEST(ImageSizes, OfTrainingGoByTheEpoch) {
  ImageClassificationOptions options;
  options.augment.image_size = 96;
  options.augment.train_sizes = {"2 128", "5 192"};
  std::vector<int64_t> sizes;
  for (int64_t epoch = 0; epoch < 7; ++epoch) sizes.push_back(train_size_of(options, epoch));
  EXPECT_EQ(sizes, (std::vector<int64_t>{96, 96, 128, 128, 128, 192, 192}));
  EXPECT_EQ(train_sizes_of(options), (std::vector<int64_t>{96, 128, 192}));
  options.augment.train_sizes = {"0 128"};
  EXPECT_EQ(train_sizes_of(options), (std::vector<int64_t>{128}));
}

TEST(ImageSizes, EntriesThatAreNoneAreToldOf) {
  EXPECT_EQ(read_train_sizes({"0 128", "3 192"}).problem, "");
  EXPECT_EQ(read_train_sizes({"128"}).problem, "\"128\" is no epoch and size");
  EXPECT_EQ(read_train_sizes({"a 128"}).problem, "\"a 128\" is no epoch and size");
  EXPECT_EQ(read_train_sizes({"1 0"}).problem, "\"1 0\" is no epoch and size");
  EXPECT_EQ(read_train_sizes({"3 128", "3 192"}).problem, "epoch 3 stands behind epoch 3");
}

}  // namespace
}  // namespace stretto::experiment
