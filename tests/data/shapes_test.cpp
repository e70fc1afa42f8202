// What the generated pictures of shapes promise.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "examples/shapes/drawing.h"
#include "image/encode_png.h"
#include "image/image_file.h"

namespace stretto::shapes {
namespace {

constexpr Sizes kFew{.train = 5, .valid = 2, .test = 1};

TEST(Shapes, HaveEachShapeEquallyOften) {
  std::map<size_t, size_t> counts;
  for (const Picture& picture : generate(1, kFew).train) ++counts[picture.shape];
  ASSERT_EQ(counts.size(), kShapes.size());
  for (const auto& [shape, count] : counts) EXPECT_EQ(count, kFew.train) << kShapes[shape];
}

TEST(Shapes, AreAllDifferent) {
  std::set<std::vector<uint8_t>> seen;
  const Pictures pictures = generate(1, kFew);
  for (const auto* part : {&pictures.train, &pictures.valid, &pictures.test}) {
    for (const Picture& picture : *part) EXPECT_TRUE(seen.insert(picture.image.pixels).second);
  }
}

TEST(Shapes, AreTheSameForTheSameSeed) {
  EXPECT_EQ(generate(3, kFew).train[7].image.pixels, generate(3, kFew).train[7].image.pixels);
  EXPECT_NE(generate(3, kFew).train[7].image.pixels, generate(4, kFew).train[7].image.pixels);
}

TEST(Shapes, ArePngFilesInTheFolderOfTheirShape) {
  const Picture picture = generate(1, kFew).valid.back();
  EXPECT_EQ(name_of(picture, 17), "triangle/0017.png");
  const auto decoded = image::decode_image(image::encode_png(picture.image), "a picture");
  EXPECT_EQ(decoded.pixels, picture.image.pixels);
}

TEST(Shapes, ATarHasHeadersOfBlocksAndAChecksum) {
  const std::string tar = tar_of({{"ring/0000.png", "abc"}});
  ASSERT_EQ(tar.size(), 4u * 512);
  EXPECT_STREQ(tar.c_str(), "ring/0000.png");
  EXPECT_EQ(tar.substr(124, 11), "00000000003");
  EXPECT_EQ(tar.substr(257, 6), std::string("ustar\0", 6));
  EXPECT_EQ(tar.substr(512, 4), std::string("abc\0", 4));
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[i]);
  }
  EXPECT_EQ(std::stoul(tar.substr(148, 6), nullptr, 8), sum);
}

}  // namespace
}  // namespace stretto::shapes
