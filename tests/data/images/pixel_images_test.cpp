#include "data/images/pixel_images.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/images/archives.h"
#include "tests/data/memory_stream.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using stretto::testing::MemoryStream;
using test::cifar10_record;

std::string idx_refusal(const std::string& bytes) {
  return failure(ExitCode::kBadData,
                 [&] {
                   MemoryStream stream(bytes);
                   read_idx_images(stream, "idx");
                 })
      .what();
}

TEST(IdxFiles, GreyPixelsBecomeThreeEqualPlanes) {
  const testing::TempDir folder;
  const auto source =
      open_idx(folder.write("images", test::idx_images(2, 2, 3, "abcdefABCDEF")),
               folder.write("labels", test::idx_labels(std::string("\x07\x0A", 2))));
  ASSERT_EQ(source->size(), 2);
  EXPECT_TRUE(source->is_raw());
  EXPECT_EQ(source->label(0), "7");
  EXPECT_EQ(source->label(1), "10");
  EXPECT_EQ(source->facts(1).width, 3);
  EXPECT_EQ(source->place(1), (folder / "images").string() + ": picture 1");
  const auto image = source->load(1, {});
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(std::string(image.pixels.begin(), image.pixels.end()), "ABCDEFABCDEFABCDEF");
}

TEST(IdxFiles, HeadersAreChecked) {
  const auto is = [](const std::string& bytes, const std::string& fault) {
    EXPECT_EQ(idx_refusal(bytes), "idx: " + fault);
  };
  is("", "is too short for the header of an idx file");
  is(test::idx_images(1, 1, 1, "").substr(0, 15), "is too short for the header of an idx file");
  is(test::idx_labels("123456789"), "is an idx file of labels, pictures are needed here");
  is(std::string(20, 'x'), "has another header than an idx file of pictures");
  is(test::idx_images(0, 2, 2, ""), "its header says 0 x 2 x 2: there are no pictures");
  is(test::idx_images(2, 2, 2, "1234567"), "its header says 8 bytes of data, and it has 7");
  is(test::idx_images(2, 2, 2, "123456789"),
     "has more bytes than the 8 of data that its header says");
  is(test::idx_images(0xFFFFFFFF, 60'000, 60'000, "x"),
     "its header says 4294967295 x 60000 x 60000, and such a file may have sides of 65,500 and 4.0 "
     "GiB");
  is(test::idx_images(1, 70'000, 1, "x"),
     "its header says 1 x 70000 x 1, and such a file may have sides of 65,500 and 4.0 GiB");
  is(test::idx_images(1, 60'000, 60'000, "x"),
     "its header says 1 x 60000 x 60000, and a picture may have 89,478,485 pixels");
}

TEST(IdxFiles, LabelsHaveABound) {
  for (const auto& [count, fault] : std::vector<std::pair<uint32_t, std::string>>{
           {0, "its header says 0 labels"},
           {uint32_t{1} << 28, "its header says 268,435,456 bytes of data, and it has 1"},
           {0xFFFFFFFF,
            "its header says 4,294,967,295 labels, and such a file may have 268,435,456"}}) {
    MemoryStream stream(test::big_endian(0x801) + test::big_endian(count) + "x");
    const auto error = failure(ExitCode::kBadData, [&] { read_idx_labels(stream, "idx"); });
    EXPECT_EQ(std::string(error.what()), "idx: " + fault);
  }
}

TEST(IdxFiles, PicturesAndLabelsHaveToBeEquallyMany) {
  const testing::TempDir folder;
  const std::string images = folder.write("images", test::idx_images(2, 1, 1, "ab"));
  const std::string labels = folder.write("labels", test::idx_labels("abc"));
  EXPECT_EQ(std::string(failure(ExitCode::kBadData, [&] { open_idx(images, labels); }).what()),
            labels + ": has 3 labels, and " + images + " 2 pictures");
}

TEST(CifarFiles, ARecordHasALabelAndThreePlanes) {
  const testing::TempDir folder;
  const std::string path =
      folder.write("test_batch.bin", cifar10_record(9, 1, 2, 3) + cifar10_record(0, 4, 5, 6));
  const std::string names = folder.write("names.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nship\n\n");
  const auto source = open_cifar(path, CifarKind::kCifar10, names, {});
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(source->label(0), "ship");
  EXPECT_EQ(source->label(1), "a");
  const auto image = source->load(0, {});
  EXPECT_EQ(image.height, 32);
  EXPECT_EQ(image.plane(0)[1023], 1);
  EXPECT_EQ(image.plane(1)[0], 2);
  EXPECT_EQ(image.plane(2)[1023], 3);
  EXPECT_EQ(open_cifar(path, CifarKind::kCifar10, "", {})->label(0), "9");
}

TEST(CifarFiles, TheFineLabelOfCifar100Counts) {
  const testing::TempDir folder;
  const std::string path = folder.write("train.bin", "\x13" + cifar10_record(99, 1, 2, 3));
  const auto source = open_cifar(path, CifarKind::kCifar100, "", {});
  ASSERT_EQ(source->size(), 1);
  EXPECT_EQ(source->label(0), "99");
  EXPECT_EQ(source->load(0, {}).plane(0)[0], 1);
}

TEST(CifarFiles, LabelsBeyondTheLastAreBadSamples) {
  const std::string bytes =
      cifar10_record(1, 0, 0, 0) + cifar10_record(10, 0, 0, 0) + cifar10_record(2, 9, 0, 0);
  MemoryStream stream(bytes);
  BadSamples bad({.skips = true});
  const auto array = read_cifar(stream, "c", CifarKind::kCifar10, bad);
  EXPECT_EQ(array.labels, (std::vector<int>{1, 2}));
  EXPECT_EQ(bad.left_out().first.at(0).fault, ": picture 1 has label 10, the last one is 9");
  const auto source = make_pixel_images("c", array, {}, bad.left_out());
  EXPECT_EQ(source->place(1), "c: picture 2");
  failure(ExitCode::kBadData, [&] {
    MemoryStream again(bytes);
    BadSamples stops;
    read_cifar(again, "c", CifarKind::kCifar10, stops);
  });
}

TEST(CifarFiles, AFileEndsWithARecord) {
  const std::string bytes = cifar10_record(1, 0, 0, 0) + "xyz";
  MemoryStream stream(bytes);
  BadSamples bad;
  const auto error =
      failure(ExitCode::kBadData, [&] { read_cifar(stream, "c", CifarKind::kCifar10, bad); });
  EXPECT_STREQ(error.what(), "c: its last record has 3 bytes, one has 3073");
}

TEST(CifarFiles, EachClassHasANameOfItsOwn) {
  const testing::TempDir folder;
  const std::string path = folder.write("c.bin", cifar10_record(3, 1, 2, 3));
  for (const auto& [text, fault] : std::vector<std::pair<std::string, std::string>>{
           {"a\nb\nc\nb\n", ":4: `b` occurs twice"}, {"a\n\nc\nd\n", ":2: an empty line"}}) {
    const std::string names = folder.write("names.txt", text);
    const auto error =
        failure(ExitCode::kBadData, [&] { open_cifar(path, CifarKind::kCifar10, names, {}); });
    EXPECT_EQ(std::string(error.what()), names + fault);
  }
}

TEST(CifarFiles, EachLabelNeedsAName) {
  const testing::TempDir folder;
  const std::string path = folder.write("c.bin", cifar10_record(3, 1, 2, 3));
  const std::string names = folder.write("names.txt", "a\nb\n");
  EXPECT_EQ(std::string(failure(ExitCode::kBadData,
                                [&] { open_cifar(path, CifarKind::kCifar10, names, {}); })
                            .what()),
            path + ": has label 3, and the file of names beside it 2 names");
}

}  // namespace
}  // namespace stretto::data
