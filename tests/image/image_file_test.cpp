#include "image/image_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/image/pictures.h"

namespace stretto::image {
namespace {

using stretto::testing::failure;
using test::jpeg_of, test::png_of;
using Bytes = std::vector<uint8_t>;

Image decode(const std::string& bytes, const DecodeOptions& options = {}) {
  return decode_image(bytes, "a.jpg", options);
}

std::string refusal_of_image(const std::string& bytes, const DecodeOptions& options = {}) {
  return failure(ExitCode::kBadData, [&] { decode(bytes, options); }).message();
}

/// The largest difference of two pictures of one size.
int distance(const Image& a, const Image& b) {
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.width, b.width);
  int largest = a.pixels.size() == b.pixels.size() ? 0 : 256;
  for (size_t i = 0; largest < 256 && i < a.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
  }
  return largest;
}

TEST(ImageFile, ReadsAPngToTheByte) {
  const Image image = test::speckled(13, 7);
  EXPECT_EQ(decode(png_of(image)).pixels, image.pixels);
  test::PngPicture interlaced{
      .height = 13, .width = 7, .bytes = test::interleaved(image), .is_interlaced = true};
  EXPECT_EQ(decode(png_of(interlaced)).pixels, image.pixels);
}

TEST(ImageFile, ReadsAJpegNearly) {
  const Image image = test::gradient(40, 30);
  EXPECT_LE(distance(decode(jpeg_of(test::jpeg_picture(image))), image), 8);
  auto progressive = test::jpeg_picture(image);
  progressive.is_progressive = true;
  EXPECT_EQ(decode(jpeg_of(progressive)).pixels, decode(jpeg_of(test::jpeg_picture(image))).pixels);
}

TEST(ImageFile, GreyBecomesThreeEqualPlanes) {
  const Image grey = decode(
      png_of({.height = 1, .width = 3, .color_type = PNG_COLOR_TYPE_GRAY, .bytes = {0, 100, 255}}));
  EXPECT_EQ(grey.pixels, (Bytes{0, 100, 255, 0, 100, 255, 0, 100, 255}));
  const Image jpeg = decode(jpeg_of(
      {.height = 8, .width = 8, .components = 1, .space = JCS_GRAYSCALE, .bytes = Bytes(64, 77)}));
  EXPECT_EQ(jpeg.pixels, Bytes(3 * 64, 77));
}

TEST(ImageFile, PngsOfOtherFormsBecomeRgb) {
  EXPECT_EQ(decode(png_of({.height = 1,
                           .width = 2,
                           .color_type = PNG_COLOR_TYPE_PALETTE,
                           .bytes = {1, 0},
                           .palette = {{1, 2, 3}, {40, 50, 60}}}))
                .pixels,
            (Bytes{40, 1, 50, 2, 60, 3}));
  EXPECT_EQ(decode(png_of({.height = 1,
                           .width = 2,
                           .color_type = PNG_COLOR_TYPE_RGB_ALPHA,
                           .bytes = {1, 2, 3, 0, 4, 5, 6, 255}}))
                .pixels,
            (Bytes{1, 4, 2, 5, 3, 6}))
      << "alpha is dropped";
  EXPECT_EQ(decode(png_of({.height = 1,
                           .width = 2,
                           .color_type = PNG_COLOR_TYPE_GRAY,
                           .bits = 16,
                           .bytes = {0x12, 0xFF, 0x80, 0x00}}))
                .pixels,
            (Bytes{0x12, 0x80, 0x12, 0x80, 0x12, 0x80}))
      << "the upper bits stay";
  EXPECT_EQ(decode(png_of({.height = 1,
                           .width = 4,
                           .color_type = PNG_COLOR_TYPE_GRAY,
                           .bits = 1,
                           .bytes = {0b01010000}}))
                .plane(1)[3],
            255);
}

TEST(ImageFile, CmykIsInvertedAsAdobeWritesIt) {
  Bytes ink;
  for (int i = 0; i < 64; ++i) ink.insert(ink.end(), {200, 100, 255, 250});
  const Image image = decode(jpeg_of(
      {.height = 8, .width = 8, .components = 4, .space = JCS_CMYK, .bytes = ink, .quality = 100}));
  // Pillow: of the inverted inks c' = 55, m' = 155, y' = 0 and the blackness 250, 250 - c' 250 /
  // 255.
  EXPECT_NEAR(image.plane(0)[0], 196, 2);
  EXPECT_NEAR(image.plane(1)[0], 98, 2);
  EXPECT_NEAR(image.plane(2)[0], 250, 2);
}

TEST(ImageFile, SaysWhatTheHeaderSays) {
  auto picture = test::jpeg_picture(test::gradient(20, 30));
  picture.app1 = test::exif_of(6, true);
  const auto jpeg = image_info(jpeg_of(picture), "a.png");
  EXPECT_EQ(jpeg.format, ImageFormat::kJpeg) << "the name says nothing";
  EXPECT_EQ(jpeg.height, 20);
  EXPECT_EQ(jpeg.width, 30);
  EXPECT_EQ(jpeg.channels, 3);
  EXPECT_EQ(jpeg.orientation, 6);
  const auto png = image_info(png_of({.height = 2,
                                      .width = 1,
                                      .color_type = PNG_COLOR_TYPE_GRAY_ALPHA,
                                      .bytes = {1, 2, 3, 4}}),
                              "a.jpg");
  EXPECT_EQ(png.format, ImageFormat::kPng);
  EXPECT_EQ(png.channels, 2);
  EXPECT_EQ(png.orientation, 1);
}

TEST(ImageFile, TurnsAPictureWhenAsked) {
  auto picture = test::jpeg_picture(test::gradient(20, 30));
  picture.app1 = test::exif_of(3, false);
  const auto bytes = jpeg_of(picture);
  const Image stored = decode(bytes), seen = decode(bytes, {.applies_orientation = true});
  EXPECT_EQ(seen.plane(0)[0], stored.plane(0).back());
  EXPECT_EQ(decode(png_of(stored), {.applies_orientation = true}).pixels, stored.pixels);
}

TEST(ImageFile, DecodesAJpegSmaller) {
  const auto bytes = jpeg_of(test::jpeg_picture(test::gradient(40, 64)));
  const Image half = decode(bytes, {.shrink = 2}), eighth = decode(bytes, {.shrink = 8});
  EXPECT_EQ(half.height, 20);
  EXPECT_EQ(half.width, 32);
  EXPECT_EQ(eighth.height, 5);
  EXPECT_LE(distance(half, test::gradient(20, 32)), 12);
  EXPECT_EQ(shrink_for(image_info(bytes, ""), 20), 2);
  EXPECT_EQ(shrink_for(image_info(bytes, ""), 21), 1);
  EXPECT_EQ(shrink_for(image_info(bytes, ""), 1), 8);
  EXPECT_EQ(shrink_for(image_info(png_of(test::gradient(40, 64)), ""), 10), 1);
}

TEST(ImageFile, RefusesPicturesThatAreCutOff) {
  for (const auto& bytes :
       {jpeg_of(test::jpeg_picture(test::speckled(64, 64))), png_of(test::speckled(64, 64))}) {
    for (const size_t size : {bytes.size() / 2, bytes.size() * 9 / 10}) {
      const auto said = refusal_of_image(bytes.substr(0, size));
      EXPECT_NE(said.find("a.jpg: is cut off"), std::string::npos) << said;
    }
    EXPECT_NE(refusal_of_image(bytes.substr(0, 10)).find("a.jpg: is "), std::string::npos);
  }
}

TEST(ImageFile, RefusesPixelsThatLibjpegWouldMakeUp) {
  auto bytes = jpeg_of(test::jpeg_picture(test::speckled(64, 64)));
  // A marker in the middle of the data ends it.
  bytes.replace(bytes.size() / 2, 2, "\xFF\xD9");
  const auto said = refusal_of_image(bytes);
  EXPECT_NE(said.find("a.jpg: is damaged"), std::string::npos) << said;
}

TEST(ImageFile, RefusesWhatIsNoPicture) {
  EXPECT_NE(refusal_of_image("").find("a.jpg: is empty"), std::string::npos);
  EXPECT_NE(refusal_of_image("GIF89a").find("a.jpg: is no picture that can be read"),
            std::string::npos);
  EXPECT_NE(refusal_of_image("\xFF\xD8\xFF").find("a.jpg: is "), std::string::npos);
}

TEST(ImageFile, RefusesBombsByTheirHeader) {
  auto png = png_of(test::gradient(4, 4));
  const auto said = refusal_of_image(png, {.max_pixels = 15});
  EXPECT_NE(said.find("a.jpg: has 4 x 4 pixels by its header; at most 15 are decoded"),
            std::string::npos)
      << said;
  auto jpeg = jpeg_of(test::jpeg_picture(test::gradient(8, 8)));
  const size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xFA\x00\xFA\x00", 4);
  EXPECT_NE(refusal_of_image(jpeg).find("has 64,000 x 64,000 pixels by its header"),
            std::string::npos)
      << refusal_of_image(jpeg);
}

TEST(ImageFile, AShortPngOfALargePictureTakesNoMemory) {
  const auto whole = png_of(test::PngPicture{.height = 4000,
                                             .width = 4000,
                                             .color_type = PNG_COLOR_TYPE_GRAY,
                                             .bytes = Bytes(size_t{4000} * 4000)});
  EXPECT_EQ(decode(whole).plane(0)[5], 0) << "a picture of one colour is small";
  const auto said = refusal_of_image(whole.substr(0, 1000));
  EXPECT_NE(said.find("a.jpg: is cut off: it is too short for the size"), std::string::npos)
      << said;
}

TEST(ImageFile, ReadsFiles) {
  const testing::TempDir folder;
  const Image image = test::speckled(5, 6);
  const auto path = folder.write("a.png", png_of(image));
  EXPECT_EQ(read_image(path).pixels, image.pixels);
  EXPECT_EQ(image_info(std::filesystem::path(path)).width, 6);
  const auto empty = folder.write("b.png", "");
  const auto error = failure(ExitCode::kBadData, [&] { image_info(std::filesystem::path(empty)); });
  EXPECT_NE(error.message().find(empty + ": is empty"), std::string::npos);
  failure(ExitCode::kUsage, [&] { read_image(folder / "none.png"); });
}

}  // namespace
}  // namespace stretto::image
