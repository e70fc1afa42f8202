#include "image/image_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "image/transform.h"
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
                           .width = 1,
                           .color_type = PNG_COLOR_TYPE_RGB,
                           .bits = 16,
                           .bytes = {0x12, 0xFF, 0x80, 0x00, 0x00, 0x7F}}))
                .pixels,
            (Bytes{0x12, 0x80, 0x00}))
      << "the upper bits stay";
  const std::vector<bool> both{false, true};
  for (const bool is_interlaced : both) {
    EXPECT_EQ(decode(png_of({.height = 1,
                             .width = 3,
                             .color_type = PNG_COLOR_TYPE_GRAY,
                             .bits = 16,
                             .bytes = {0x00, 0xFE, 0x01, 0x00, 0x00, 0x07},
                             .is_interlaced = is_interlaced}))
                  .pixels,
              (Bytes{0xFE, 255, 7, 0xFE, 255, 7, 0xFE, 255, 7}))
        << "grey of 16 bits is cut at 255, as Pillow does";
  }
  EXPECT_EQ(decode(png_of({.height = 1,
                           .width = 1,
                           .color_type = PNG_COLOR_TYPE_GRAY_ALPHA,
                           .bits = 16,
                           .bytes = {0x12, 0xFF, 0x80, 0x00}}))
                .pixels,
            Bytes(3, 0x12));
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

  const std::string exif = test::exif_of(3, false);
  const auto png = png_of(test::PngPicture{
      .height = 20, .width = 30, .bytes = test::interleaved(stored), .exif = exif.substr(6)});
  EXPECT_EQ(image_info(png, "").orientation, 3);
  EXPECT_EQ(decode(png, {.applies_orientation = true}).pixels, seen.pixels);
  EXPECT_EQ(decode(png).pixels, stored.pixels);

  constexpr int kExif = 8;
  for (const std::string& chunk : {exif, exif.substr(6)}) {
    const auto webp = test::extended_webp(
        20, 30, kExif,
        test::chunks_of_webp(test::webp_of(stored)) + test::riff_chunk("EXIF", chunk));
    EXPECT_EQ(image_info(webp, "").orientation, 3);
    EXPECT_EQ(decode(webp, {.applies_orientation = true}).pixels, seen.pixels);
    EXPECT_EQ(decode(webp).pixels, stored.pixels);
  }
}

TEST(ImageFile, ReadsAWebp) {
  const Image image = test::speckled(13, 7);
  EXPECT_EQ(decode(test::webp_of(image)).pixels, image.pixels);
  const Image smooth = test::gradient(40, 30);
  EXPECT_LE(distance(decode(test::webp_of(smooth, 95)), smooth), 12);
  const auto info = image_info(test::webp_of(image), "a.jpg");
  EXPECT_EQ(info.format, ImageFormat::kWebp) << "the name says nothing";
  EXPECT_EQ(info.height, 13);
  EXPECT_EQ(info.width, 7);
  EXPECT_EQ(info.channels, 3);
}

TEST(ImageFile, TheFirstPictureOfAnAnimationIsTaken) {
  const Image first = test::speckled(5, 4), second = test::gradient(5, 4);
  EXPECT_EQ(decode(test::animated_webp(5, 4, 0, {first, second})).pixels, first.pixels);
  const Image canvas = decode(test::animated_webp(9, 8, 1, {first, second}));
  EXPECT_EQ(canvas.height, 9);
  EXPECT_EQ(canvas.width, 8);
  EXPECT_EQ(cropped(canvas, {.top = 2, .left = 2, .height = 5, .width = 4}).pixels, first.pixels);
  EXPECT_EQ(canvas.plane(1)[2 * 8 + 1], 0) << "what a frame leaves free is black";
  EXPECT_EQ(canvas.plane(1)[7 * 8 + 3], 0);
}

TEST(ImageFile, RefusesDamagedWebps) {
  const auto whole = test::webp_of(test::speckled(64, 64));
  for (const size_t size : {size_t{13}, size_t{40}, whole.size() / 2, whole.size() - 1}) {
    const auto said = refusal_of_image(whole.substr(0, size));
    EXPECT_NE(said.find("a.jpg: is "), std::string::npos) << said;
  }
  EXPECT_NE(refusal_of_image(whole.substr(0, whole.size() / 2)).find("is cut off"),
            std::string::npos);
  const auto large = test::animated_webp(16383, 16383, 0, {test::speckled(4, 4)});
  EXPECT_NE(refusal_of_image(large).find("has 16,383 x 16,383 pixels by its header"),
            std::string::npos)
      << refusal_of_image(large);
  EXPECT_NE(refusal_of_image(test::extended_webp(64, 64, 2, "")).find("a.jpg: is "),
            std::string::npos)
      << "an animation without pictures";
}

/// The rows that a part asks for, and what is left black.
TEST(ImageFile, APartOfAJpegHasThePixelsOfTheWhole) {
  const Image image = test::gradient(75, 61);
  for (const bool is_progressive : {false, true}) {
    for (const int space : {0, 1}) {
      auto picture = test::jpeg_picture(image);
      picture.is_progressive = is_progressive;
      if (space == 1) {
        picture.components = 1;
        picture.space = JCS_GRAYSCALE;
        picture.bytes.assign(image.plane(0).begin(), image.plane(0).end());
      }
      const auto bytes = jpeg_of(picture);
      const Image whole = decode(bytes);
      for (const auto& [top, height] :
           std::vector<std::pair<int64_t, int64_t>>{{0, 75}, {0, 9}, {17, 20}, {33, 42}, {74, 1}}) {
        const Region region{.top = top, .left = 3, .height = height, .width = 40};
        DecodeOptions options;
        int64_t seen_height = 0, seen_width = 0;
        options.part = [&](int64_t h, int64_t w) {
          seen_height = h, seen_width = w;
          return DecodePart{.region = region};
        };
        const Image part = decode(bytes, options);
        EXPECT_EQ(seen_height, 75);
        EXPECT_EQ(seen_width, 61);
        ASSERT_EQ(part.height, 75);
        for (int64_t c = 0; c < kChannels; ++c) {
          for (int64_t y = 0; y < 75; ++y) {
            // All scans of a progressive file are read from the first row on.
            const bool is_wanted = (is_progressive || y >= top) && y < top + height;
            for (int64_t x = 0; x < 61; ++x) {
              const auto at = static_cast<size_t>(y * 61 + x);
              ASSERT_EQ(part.plane(c)[at], is_wanted ? whole.plane(c)[at] : 0)
                  << top << ", " << height << ": " << y << ", " << x;
            }
          }
        }
      }
    }
  }
}

TEST(ImageFile, APartMayBeDecodedSmaller) {
  const auto bytes = jpeg_of(test::jpeg_picture(test::gradient(64, 80)));
  DecodeOptions options;
  options.part = [](int64_t, int64_t) {
    return DecodePart{.region = {.top = 16, .left = 0, .height = 32, .width = 80}, .shrink = 4};
  };
  const Image part = decode(bytes, options), small = decode(bytes, {.shrink = 4});
  ASSERT_EQ(part.height, 16);
  ASSERT_EQ(part.width, 20);
  for (int64_t y = 0; y < 16; ++y) {
    const auto at = static_cast<size_t>(y * 20 + 7);
    EXPECT_EQ(part.plane(1)[at], y >= 4 && y < 12 ? small.plane(1)[at] : 0) << y;
  }
}

TEST(ImageFile, APictureThatIsTurnedIsAskedForUpright) {
  auto picture = test::jpeg_picture(test::gradient(20, 30));
  picture.app1 = test::exif_of(6, true);
  int64_t height = 0;
  const DecodeOptions options{.applies_orientation = true, .part = [&](int64_t h, int64_t) {
                                height = h;
                                return DecodePart{.region = {.height = 1, .width = 1}};
                              }};
  const auto bytes = jpeg_of(picture);
  EXPECT_EQ(decode(bytes, options).pixels, decode(bytes, {.applies_orientation = true}).pixels);
  EXPECT_EQ(height, 30);
}

TEST(ImageFile, ACutOffJpegIsFoundInAnyPart) {
  const auto whole = jpeg_of(test::jpeg_picture(test::speckled(64, 64)));
  DecodeOptions options;
  options.part = [](int64_t, int64_t) { return DecodePart{.region = {.height = 4, .width = 64}}; };
  EXPECT_EQ(decode(whole + std::string(3, '\0'), options).plane(0)[5], decode(whole).plane(0)[5]);
  EXPECT_NE(refusal_of_image(whole.substr(0, whole.size() * 9 / 10), options).find("is cut off"),
            std::string::npos);
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
  EXPECT_NE(refusal_of_image("GIF89a").find("a.jpg: is no picture that can be read: it is a GIF"),
            std::string::npos);
  EXPECT_NE(refusal_of_image("RIFF\x10").find("its first bytes are those of no JPEG, PNG or WebP"),
            std::string::npos);
  EXPECT_NE(refusal_of_image("II*").find("a.jpg: is no picture that can be read"),
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

TEST(ImageFile, AShortJpegOfALargePictureTakesNoMemory) {
  for (const bool is_progressive : {false, true}) {
    auto picture = test::jpeg_picture(test::gradient(8, 8));
    picture.is_progressive = is_progressive;
    auto bytes = jpeg_of(picture);
    const size_t frame = bytes.find(is_progressive ? "\xFF\xC2" : "\xFF\xC0");
    ASSERT_NE(frame, std::string::npos);
    bytes.replace(frame + 5, 4, "\x20\x00\x20\x00", 4);  // 8,192 x 8,192
    EXPECT_EQ(image_info(bytes, "").width, 8192);
    const auto said = refusal_of_image(bytes);
    EXPECT_NE(said.find("a.jpg: is cut off: it is too short for the size"), std::string::npos)
        << said;
  }
  const Image plain = make_image(2000, 2000);
  EXPECT_EQ(decode(jpeg_of(test::jpeg_picture(plain))).pixels, plain.pixels)
      << "a picture of one colour is small";
}

/// The most memory that this process has had, in bytes.
int64_t peak_memory() {
  struct rusage usage {};
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  return int64_t{1024} * usage.ru_maxrss;
}

TEST(ImageFile, TextsOfAPngTakeNoMemory) {
  constexpr size_t kTextBytes = 7'000'000;
  const Image image = test::gradient(4, 4);
  std::string png = png_of(test::PngPicture{.height = 4,
                                            .width = 4,
                                            .bytes = test::interleaved(image),
                                            .text = std::string(kTextBytes, 'a')});
  const size_t begin = png.find("zTXt") - 4, end = png.find("IDAT") - 4;
  const std::string chunk = png.substr(begin, end - begin);
  for (int i = 0; i < 100; ++i) png.insert(begin, chunk);
  ASSERT_LT(png.size(), kTextBytes / 4);
  const int64_t before = peak_memory();
  EXPECT_EQ(decode(png).pixels, image.pixels);
  EXPECT_LT(peak_memory() - before, 16 * int64_t{kTextBytes});
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
  std::filesystem::resize_file(path, kMaxImageBytes + 1);
  const auto large = failure(ExitCode::kBadData, [&] { image_info(std::filesystem::path(path)); });
  EXPECT_NE(large.message().find("is larger than 256 MiB"), std::string::npos) << large.message();
  failure(ExitCode::kBadData, [&] { read_image(path); });
}

}  // namespace
}  // namespace stretto::image
