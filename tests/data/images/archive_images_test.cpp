#include "data/images/archive_images.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/hash.h"
#include "data/archives/unpacked_file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/images/archives.h"

namespace stretto::data {
namespace {

using stretto::testing::failure;
using test::Member;
using test::png;
using Texts = std::vector<std::string>;

class ArchiveImagesTest : public ::testing::Test {
 protected:
  ArchiveInput input(const std::string& bytes, ArchiveKind kind, BadSampleRule rule = {}) const {
    return {.path = folder_.write("a.tar", bytes),
            .kind = kind,
            .bad_samples = rule,
            .cache_dir = (folder_ / "cache").string()};
  }
  std::shared_ptr<const ImageSource> open(const std::vector<Member>& members, ArchiveKind kind,
                                          bool is_packed = false, BadSampleRule rule = {}) const {
    return open_archive(input(test::tar_of(members, test::TarForm::kPax, is_packed), kind, rule));
  }
  std::shared_ptr<const ImageSource> tar(const std::vector<Member>& members,
                                         BadSampleRule rule = {}) const {
    return open(members, ArchiveKind::kTar, false, rule);
  }
  std::shared_ptr<const ImageSource> shard(const std::vector<Member>& members,
                                           BadSampleRule rule = {}) const {
    return open(members, ArchiveKind::kShard, false, rule);
  }
  static Texts labels_of(const ImageSource& source) {
    Texts labels;
    for (int64_t i = 0; i < source.size(); ++i) labels.push_back(source.label(i));
    return labels;
  }
  /// The fault of the only bad sample.
  std::string fault_of(const ImageSource& source) const {
    EXPECT_EQ(source.left_out().count, 1);
    EXPECT_EQ(source.left_out().first.at(0).file, (folder_ / "a.tar").string());
    return source.left_out().first.at(0).fault;
  }

  static constexpr BadSampleRule kSkip{.skips = true};
  testing::TempDir folder_;
};

TEST_F(ArchiveImagesTest, PicturesStandInTheOrderOfTheirNamesPackedOrNot) {
  const std::vector<Member> members{{.name = "./train/", .is_folder = true},
                                    {"./train/dog/2.png", png(2, 3, 9)},
                                    {"./train/cat/1.png", png(1)},
                                    {"./train/cat/.hidden", "x"}};
  for (const bool is_packed : {false, true}) {
    for (const bool is_cached : {false, true}) {
      const auto source = open(members, ArchiveKind::kTar, is_packed);
      ASSERT_EQ(source->size(), 2) << is_packed << is_cached;
      EXPECT_EQ(labels_of(*source), (Texts{"train/cat", "train/dog"}));
      ASSERT_NE(source->folders(), nullptr);
      EXPECT_EQ(source->folders()->folders, Texts{"train"});
      EXPECT_EQ(source->place(1), (folder_ / "a.tar").string() + ": train/dog/2.png");
      EXPECT_EQ(source->facts(1).height, 3);
      EXPECT_EQ(source->facts(1).width, 9);
      EXPECT_EQ(source->facts(1).hash, xxh3_64(png(2, 3, 9)));
      EXPECT_EQ(source->read(0), png(1));
      EXPECT_EQ(source->read(1), png(2, 3, 9));
      EXPECT_EQ(source->load(1, {}).width, 9);
      EXPECT_EQ(source->left_out().count, 0);
    }
  }
}

TEST_F(ArchiveImagesTest, WithoutACacheNothingIsKept) {
  for (const bool is_packed : {false, true}) {
    auto in = input(test::tar_of({{"cat/1.png", png(1)}}, test::TarForm::kGnu, is_packed),
                    ArchiveKind::kTar);
    in.cache_dir = folder_.write("file", "") + "/cache";
    const auto source = open_archive(in);
    EXPECT_FALSE(source->refusal().empty());
    EXPECT_EQ(source->read(0), png(1));
  }
}

TEST_F(ArchiveImagesTest, MembersThatCannotBeUsedAreBadSamples) {
  const std::string good = "cat/1.png";
  for (const auto& [member, fault] : std::vector<std::pair<Member, std::string>>{
           {{"/cat/2.png", png(2)}, ": /cat/2.png: its name is absolute"},
           {{"../cat/2.png", png(2)}, ": ../cat/2.png: its name leads out of the archive"},
           {{.name = "cat/2.png", .link = "/etc/passwd"}, ": cat/2.png: is a link"},
           {{"2.png", png(2)}, ": 2.png: lies in no folder of a class"},
           {{"cat/2.png", ""}, ": cat/2.png: is empty"},
           {{good, png(2)}, ": cat/1.png: comes twice in the archive"}}) {
    const auto source = tar({{good, png(1)}, member}, kSkip);
    EXPECT_EQ(source->size(), 1);
    EXPECT_EQ(fault_of(*source), fault);
    EXPECT_EQ(source->read(0), png(1));
    const std::vector<Member> members{{good, png(1)}, member};  // Clang 14 captures no bindings
    const auto error = failure(ExitCode::kBadData, [&] { tar(members); });
    EXPECT_EQ(std::string(error.what()), (folder_ / "a.tar").string() + fault);
  }
}

TEST_F(ArchiveImagesTest, AnotherKindThanItsNameSaysIsNoFault) {
  EXPECT_EQ(tar({{"cat/1.jpg", png(1)}})->size(), 1);
  EXPECT_EQ(tar({{"cat/1.png", png(1)}, {"cat/2.png", "no picture"}}, kSkip)->left_out().count, 1);
}

TEST_F(ArchiveImagesTest, AnArchiveThatChangesGivesNoOtherPicture) {
  const std::vector<Member> members{{"cat/1.png", png(1)}, {"dog/2.png", png(2)}};
  const auto source = tar(members);
  const size_t place = test::tar_of(members).find(png(1));
  const std::string path = (folder_ / "a.tar").string();
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(place) + 20);
  file.put('!');
  file.close();
  const auto error = failure(ExitCode::kBadData, [&] { source->read(0); });
  EXPECT_EQ(std::string(error.what()),
            path + ": cat/1.png: the archive has changed since it was looked at");
  EXPECT_EQ(source->read(1), png(2));
  std::filesystem::resize_file(path, 600);
  failure(ExitCode::kBadData, [&] { source->read(1); });
}

TEST_F(ArchiveImagesTest, ADamagedStoreIsMadeAgain) {
  const std::vector<Member> members{{"cat/1.png", png(1)}};
  open(members, ArchiveKind::kTar, true);
  int damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ / "cache")) {
    if (entry.path().filename() != "4.bin") continue;
    std::filesystem::resize_file(entry.path(), 3);
    ++damaged;
  }
  EXPECT_EQ(damaged, 1);
  EXPECT_EQ(open(members, ArchiveKind::kTar, true)->read(0), png(1));
}

TEST_F(ArchiveImagesTest, AShardHasItsLabelsBesideThePictures) {
  const auto source = shard({{"a.jpg", png(1)},
                             {"a.cls", "7\n"},
                             {"b.json", R"({"label": "dog", "caption": "x"})"},
                             {"b.png", png(2)},
                             {"b.seg.png", "ignored"},
                             {"in/c.png", png(3)},
                             {"in/c.txt", " a cat \n"},
                             {"d.json", "12"},
                             {"d.webp", png(4)},
                             {"README.txt", "about"}});
  EXPECT_EQ(labels_of(*source), (Texts{"7", "dog", "a cat", "12"}));
  EXPECT_EQ(source->folders(), nullptr);
  EXPECT_EQ(source->read(2), png(3));
  EXPECT_EQ(source->place(1), (folder_ / "a.tar").string() + ": b.png");
}

TEST_F(ArchiveImagesTest, SamplesOfAShardThatAreIncompleteAreBad) {
  const Member picture{"a.png", png(1)}, label{"a.cls", "1"};
  using Members = std::vector<Member>;
  for (const auto& [members, fault] : std::vector<std::pair<Members, std::string>>{
           {{{"b.png", png(2)}}, ": b: has a picture and no label"},
           {{{"b.cls", "2"}}, ": b: has a label and no picture"},
           {{{"b.cls", " \n"}, {"b.png", png(2)}}, ": b: has a picture and no label"},
           {{{"b.png", png(2)}, {"b.jpg", png(3)}, {"b.cls", "1"}},
            ": b.jpg: is a second picture of its key"},
           {{{"b.png", "none"}, {"b.cls", "1"}}, ": b.png: is "},
           {{{"b.png", png(2)}, {"b.txt", "two\nlines"}}, ": b: its label is no name on one line"},
           {{{"b.png", png(2)}, {"b.json", R"({"label": [1]})"}},
            ": b: its label in JSON is neither text nor a number"},
           {{{"b.png", png(2)}, {"b.json", "{"}}, ": b.json"},
           {{{"c.txt", "x"}, {"a.txt", "x"}}, ": a: this key comes back behind others"}}) {
    Members all{picture, label};
    all.insert(all.end(), members.begin(), members.end());
    const auto source = shard(all, kSkip);
    if (fault.find("comes back") == std::string::npos) {
      EXPECT_EQ(source->size(), 1) << fault;
    }
    EXPECT_EQ(fault_of(*source).find(fault), 0U) << fault_of(*source);
  }
}

TEST_F(ArchiveImagesTest, TheFirstMembersTellTheKind) {
  const auto kind = [&](const std::vector<Member>& members) {
    const std::string path = folder_.write("k.tar", test::tar_of(members));
    TarReader archive(open_unpacked(path).bytes, path);
    return kind_of_archive(archive);
  };
  EXPECT_EQ(kind({{"a.cls", "1"}, {"a.jpg", png(1)}}), ArchiveKind::kShard);
  EXPECT_EQ(kind({{"x/a.jpg", png(1)}, {"x/a.json", "1"}}), ArchiveKind::kShard);
  EXPECT_EQ(kind({{"cat/a.jpg", png(1)}, {"cat/b.txt", "1"}}), ArchiveKind::kTar);
}

}  // namespace
}  // namespace stretto::data
