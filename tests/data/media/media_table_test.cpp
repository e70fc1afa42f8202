#include "data/media/media_table.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tests/audio/sounds.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/image/pictures.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;

class MediaTableTest : public ::testing::Test {
 protected:
  static std::string picture(int64_t height, int64_t width) {
    return image::test::png_of(image::test::speckled(height, width));
  }
  static std::string sound(int64_t samples, int rate = 8000) {
    return audio::test::wave(rate, 1, 16, 1, std::string(static_cast<size_t>(2 * samples), 'a'));
  }
  void put(const std::string& name, const std::string& bytes) const { folder_.write(name, bytes); }
  std::string below(const std::string& name) const { return (folder_ / name).string(); }

  MediaInput folder(BadSampleRule rule = {}) const {
    return {.kind = MediaKind::kPicture,
            .sources = {{"data.train", below("pictures"), DataKind::kTree, {}}},
            .bad_samples = rule};
  }
  MediaInput manifest(const std::string& text, BadSampleRule rule = {}) const {
    const MediaColumns columns{.text = "text", .offset = "offset", .duration = "duration"};
    return {.kind = MediaKind::kSound,
            .sources = {media_manifest("data.train", folder_.write("m.csv", text), columns, rule)},
            .columns = columns,
            .bad_samples = rule};
  }
  std::shared_ptr<const MediaTable> open(const MediaInput& input) const {
    return open_media(input, {.dir = below("cache"), .threads = 2});
  }
  std::string refusal(const MediaInput& input) const {
    return failure(ExitCode::kBadData, [&] { open(input); }).message();
  }

  testing::TempDir folder_;
};

TEST_F(MediaTableTest, AFolderOfClassesHasAPictureEach) {
  put("pictures/dogs/deep/2.png", picture(4, 6));
  put("pictures/cats/1.png", picture(3, 5));
  put("pictures/.thumbnails/1.png", "no picture");
  put("pictures/cats/.DS_Store", "no picture");
  const auto table = open(folder());
  ASSERT_EQ(table->size(), 2);
  EXPECT_EQ(table->path(0), below("pictures/cats/1.png"));
  EXPECT_EQ(table->text(0), "cats");
  EXPECT_EQ(table->text(1), "dogs");
  EXPECT_EQ(table->place(1), below("pictures/dogs/deep/2.png"));
  const auto& facts = table->facts(1);
  EXPECT_EQ(facts.height, 4);
  EXPECT_EQ(facts.width, 6);
  EXPECT_EQ(facts.bytes, picture(4, 6).size());
  EXPECT_EQ(facts.hash, xxh3_64(picture(4, 6)));
  EXPECT_EQ(table->read(1), picture(4, 6));
}

TEST_F(MediaTableTest, AManifestHasASoundOrAPartOfOneInEachRow) {
  put("clips/a.wav", sound(8000));
  const auto table =
      open(manifest("path,text,offset,duration\nclips/a.wav,hello,0.25,0.5\n"
                    "clips/a.wav,whole,,\n"));
  ASSERT_EQ(table->size(), 2);
  EXPECT_EQ(table->path(0), below("clips/a.wav"));
  EXPECT_EQ(table->text(0), "hello");
  EXPECT_EQ(table->place(1), below("m.csv") + ":3");
  EXPECT_EQ(table->facts(0).begin, 2000);
  EXPECT_EQ(table->facts(0).end, 6000);
  EXPECT_EQ(table->facts(0).rate, 8000);
  EXPECT_EQ(table->facts(0).seconds(), 0.5);
  EXPECT_EQ(table->facts(1).seconds(), 1);
}

TEST_F(MediaTableTest, IsFoundInTheCacheAsLongAsNothingChanges) {
  put("pictures/cats/1.png", picture(3, 5));
  EXPECT_FALSE(open(folder())->from_cache());
  EXPECT_TRUE(open(folder())->from_cache());
  EXPECT_FALSE(open(folder({.skips = true}))->from_cache());
  put("pictures/cats/2.png", picture(3, 6));
  EXPECT_FALSE(open(folder())->from_cache());
  EXPECT_EQ(open(folder())->size(), 2);
  put("pictures/cats/2.png", picture(3, 7));
  EXPECT_EQ(open(folder())->facts(1).width, 7);

  put("clips/a.wav", sound(8000));
  EXPECT_FALSE(open(manifest("path,text,offset,duration\nclips/a.wav,x,,\n"))->from_cache());
  EXPECT_EQ(open(manifest("path,text,offset,duration\nclips/a.wav,y,,\n"))->text(0), "y");
}

TEST_F(MediaTableTest, WithoutACacheItIsInMemory) {
  put("pictures/cats/1.png", picture(3, 5));
  const auto table = open_media(folder(), {.dir = folder_.write("file", "") + "/cache"});
  EXPECT_FALSE(table->from_cache());
  EXPECT_FALSE(table->refusal().empty());
  EXPECT_EQ(table->facts(0).width, 5);
}

TEST_F(MediaTableTest, NamesFilesThatCannotBeRead) {
  put("pictures/cats/1.png", picture(3, 5));
  put("pictures/cats/2.png", picture(30, 50).substr(0, 40));
  put("pictures/3.png", picture(3, 5));
  EXPECT_NE(refusal(folder()).find(below("pictures") + ": 3.png: lies in no folder of a class"),
            std::string::npos)
      << refusal(folder());
  fs::remove(folder_ / "pictures/3.png");
  EXPECT_NE(refusal(folder()).find(below("pictures") + ": cats/2.png: is "), std::string::npos)
      << refusal(folder());
  put("clips/a.wav", sound(8000));
  put("clips/b.wav", "no sound");
  const auto input = manifest("path,text,offset,duration\nclips/a.wav,,,3\nclips/b.wav,,,\n");
  EXPECT_NE(refusal(input).find(below("m.csv") + ":2: clips/a.wav: has no 3.00 s from 0.00 s on"),
            std::string::npos)
      << refusal(input);
  EXPECT_NE(refusal(input).find("1 more: 3: clips/b.wav: is no sound"), std::string::npos)
      << refusal(input);
}

TEST_F(MediaTableTest, LeavesFilesOutThatCannotBeRead) {
  put("pictures/cats/1.png", "no picture");
  put("pictures/cats/2.png", picture(3, 5));
  put("pictures/cats/3.png", "");
  for (const bool found : {false, true}) {
    const auto table = open(folder({.skips = true}));
    EXPECT_EQ(table->from_cache(), found);
    ASSERT_EQ(table->size(), 1);
    EXPECT_EQ(table->path(0), below("pictures/cats/2.png"));
    EXPECT_EQ(table->left_out().count, 2);
    EXPECT_EQ(table->left_out().first[1].fault, ": cats/3.png: is empty");
  }
  EXPECT_NE(refusal(folder({.skips = true, .most = 1})).find("more than data.max_bad_samples = 1"),
            std::string::npos)
      << "a cache does not change the bound";
}

TEST_F(MediaTableTest, AFileThatVanishedOrChangedIsAFaultOfItsSample) {
  for (const char* name : {"1.png", "2.png", "3.png"})
    put(std::string("pictures/cats/") + name, picture(3, 5));
  const auto table = open(folder());
  fs::remove(folder_ / "pictures/cats/1.png");
  EXPECT_NE(failure(ExitCode::kBadData, [&] { table->read(0); })
                .message()
                .find(below("pictures/cats/1.png") + ": is not there any more"),
            std::string::npos);
  put("pictures/cats/2.png", picture(3, 6));
  EXPECT_NE(failure(ExitCode::kBadData, [&] { table->open(1); })
                .message()
                .find(below("pictures/cats/2.png") + ": has changed since it was looked at ("),
            std::string::npos);
  std::string same_size = picture(3, 5);
  same_size.back() ^= 1;
  put("pictures/cats/3.png", same_size);
  failure(ExitCode::kBadData, [&] { table->open(2); });
  put("pictures/cats/3.png", picture(3, 5));
  EXPECT_EQ(table->read(2), picture(3, 5)) << "the same content again is the same file";
}

TEST_F(MediaTableTest, AFileThatIsALinkNowIsReadIfItHoldsTheSame) {
  put("pictures/cats/1.png", picture(3, 5));
  const auto table = open(folder());
  fs::rename(folder_ / "pictures/cats/1.png", folder_ / "elsewhere.png");
  fs::create_symlink(folder_ / "elsewhere.png", folder_ / "pictures/cats/1.png");
  EXPECT_EQ(table->read(0), picture(3, 5));
  fs::remove(folder_ / "pictures/cats/1.png");
  ASSERT_EQ(::mkfifo((folder_ / "pictures/cats/1.png").c_str(), 0600), 0);
  failure(ExitCode::kBadData, [&] { table->read(0); });
}

TEST(MediaFaults, WithStopTheErrorIsThatOfTheSample) {
  MediaFaults faults({});
  EXPECT_TRUE(faults.take(3, "a.png", [] {}));
  const auto error = failure(ExitCode::kBadData, [&] {
    faults.take(3, "a.png", [] { throw SampleError("a.png", ": is cut off", "fetch it"); });
  });
  EXPECT_EQ(error.message(), "a.png: is cut off\n  fetch it");
  EXPECT_EQ(faults.left_out().count, 0);
}

TEST(MediaFaults, WithSkipASampleIsCountedOnce) {
  MediaFaults faults({.skips = true, .most = 3}, {.count = 1, .first = {}});
  const auto fails = [&](int64_t sample, ExitCode code = ExitCode::kBadData) {
    return !faults.take(sample, "a.png",
                        [&] { throw Error(code, "a.png: is cut off", "fetch it"); });
  };
  EXPECT_TRUE(fails(5));
  EXPECT_TRUE(fails(5));
  EXPECT_TRUE(fails(7));
  EXPECT_EQ(faults.left_out().count, 3);
  EXPECT_EQ(faults.left_out().first.front().fault, ": is cut off");
  EXPECT_NE(failure(ExitCode::kBadData, [&] { fails(8); })
                .message()
                .find("more than data.max_bad_samples = 3"),
            std::string::npos);
  failure(ExitCode::kIo, [&] { fails(9, ExitCode::kIo); });
}

}  // namespace
}  // namespace stretto::data
