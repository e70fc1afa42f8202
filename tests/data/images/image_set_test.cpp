#include "data/images/image_set.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "data/labelled/labelled_set.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/images/archives.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;
using test::png;
using Names = std::vector<std::string>;

class ImageSetTest : public ::testing::Test {
 protected:
  ImageSetTest() { options_.cache_dir = below("cache"); }

  std::string put(const std::string& name, const std::string& bytes) const {
    return folder_.write(name, bytes);
  }
  std::string below(const std::string& name) const { return (folder_ / name).string(); }
  std::shared_ptr<const ImageTable> open(const std::string& name,
                                         const std::string& key = "data.train") const {
    return open_images(options_, key, {below(name)});
  }
  static Names classes_of(const ImageTable& table) {
    Names names;
    for (int64_t i = 0; i < table.size(); ++i) names.push_back(table.class_name(i));
    return names;
  }
  ImageSet set_of(const std::string& name, const Labels& classes) const {
    return {open(name, "data.valid"), classes, bad_sample_rule(options_)};
  }

  testing::TempDir folder_;
  ImageDataOptions options_;
};

TEST_F(ImageSetTest, FoldersArchivesAndManifestsOfTheSamePicturesAreTheSame) {
  const std::vector<test::Member> members{
      {"cat/1.png", png(1)}, {"cat/sub/2.png", png(2)}, {"dog/3.png", png(3)}};
  for (const auto& member : members) put("tree/" + member.name, member.bytes);
  for (const auto& member : members) put("deep/train/" + member.name, member.bytes);
  put("a.tar", test::tar_of(members));
  put("b.tgz", test::tar_of(members, test::TarForm::kGnu, /*is_packed=*/true));
  put("list.tsv",
      "label\tpath\ncat\ttree/cat/1.png\ncat\ttree/cat/sub/2.png\ndog\ttree/dog/3.png\n");
  const uint64_t hash = open("tree")->hash();
  for (const char* name : {"tree", "deep", "a.tar", "b.tgz", "list.tsv"}) {
    const auto table = open(name);
    EXPECT_EQ(classes_of(*table), (Names{"cat", "cat", "dog"})) << name;
    EXPECT_EQ(table->hash(), hash) << name;
    EXPECT_EQ(table->read(1), png(2));
    EXPECT_EQ(table->load(2).width, 6);
    EXPECT_FALSE(table->is_raw(0));
  }
}

TEST_F(ImageSetTest, SeveralArchivesAreOneFolder) {
  put("a.tar", test::tar_of({{"train/cat/1.png", png(1)}}));
  put("b.tar", test::tar_of({{"train/dog/2.png", png(2)}}));
  const auto table = open_images(options_, "data.train", {below("a.tar"), below("b.tar")});
  EXPECT_EQ(classes_of(*table), (Names{"cat", "dog"}));
  EXPECT_EQ(table->read(1), png(2));
}

TEST_F(ImageSetTest, ClassesAreInTheOrderOfTheirBytesAndKeepTheirNames) {
  for (const char* name : {"2", "10", "1"})
    put(std::string("train/") + name + "/a.png", png(name[0]));
  put("valid/10/a.png", png(77));
  const auto table = open("train");
  const Labels classes = image_classes(options_, *table);
  EXPECT_EQ(classes.names(), (Names{"1", "10", "2"}));
  const auto valid = set_of("valid", classes);
  EXPECT_EQ(valid.label(0), 1) << "a set that lacks classes has the numbers of the run";
  const auto stored = labels_from_json(labels_to_json(&classes), "classes.json");
  EXPECT_EQ(stored->names(), classes.names());
}

TEST_F(ImageSetTest, AListDecidesTheNumbers) {
  put("train/cat/a.png", png(1));
  put("train/dog/a.png", png(2));
  options_.classes = {"dog", "lion", "cat"};
  const auto table = open("train");
  const Labels classes = image_classes(options_, *table);
  EXPECT_EQ(ImageSet(table, classes, {}).labels(), (std::vector<int32_t>{2, 0}));
}

TEST_F(ImageSetTest, AnUnknownClassIsNamed) {
  put("train/cat/a.png", png(1));
  put("train/dog/a.png", png(2));
  put("valid/cat/a.png", png(3));
  put("valid/dogs/a.png", png(4));
  put("valid/emu/a.png", png(5));
  const Labels classes = image_classes(options_, *open("train"));
  const auto error = failure(ExitCode::kBadData, [&] { set_of("valid", classes); });
  EXPECT_EQ(std::string(error.what()),
            below("valid/dogs/a.png") +
                ": is of class `dogs`, which the run does not know; nor does it know emu");
  EXPECT_EQ(error.advice(), "did you mean `dog`? known: cat, dog");
}

TEST_F(ImageSetTest, AClassWithoutPicturesIsAnErrorInTraining) {
  put("train/cat/a.png", png(1));
  put("train/dog/a.png", png(2));
  fs::create_directories(below("train/emu"));
  fs::create_directories(below("train/.git"));
  const auto table = open("train");
  EXPECT_EQ(table->empty_classes(), Names{"emu"});
  const auto error = failure(ExitCode::kBadData, [&] { image_classes(options_, *table); });
  EXPECT_STREQ(error.what(), "data.train: no picture is in the folder of class emu");
  const Labels classes = Labels::given({"cat", "dog", "emu"});
  EXPECT_EQ(set_of("train", classes).size(), 2) << "other sets may lack it";
}

TEST_F(ImageSetTest, OneClassIsNone) {
  put("train/cat/a.png", png(1));
  const auto error = failure(ExitCode::kUsage, [&] { image_classes(options_, *open("train")); });
  EXPECT_STREQ(error.what(), "the pictures for training have one class, `cat`");
}

TEST_F(ImageSetTest, NamesOfClassesAreTextOfOneLine) {
  for (const auto& [name, fault] : std::vector<std::pair<std::string, std::string>>{
           {"caf\xE9", "has a name that is not UTF-8"}, {"a\tb", "has a tab or a line end"}}) {
    options_.classes = {"cat", name};
    put("train/cat/a.png", png(1));
    const auto error =
        failure(ExitCode::kBadData, [&] { image_classes(options_, *open("train")); });
    EXPECT_NE(std::string(error.what()).find(fault), std::string::npos) << error.what();
  }
  options_.classes.clear();
  put("a.tar",
      test::tar_of({{"cat/1.png", png(1)}, {"caf\xE9/2.png", png(2)}}, test::TarForm::kGnu));
  failure(ExitCode::kBadData, [&] { image_classes(options_, *open("a.tar")); });
}

TEST_F(ImageSetTest, SetsAreNotTakenForClasses) {
  put("set/train/cat/a.png", png(1));
  put("set/test/cat/a.png", png(2));
  failure(ExitCode::kUsage, [&] { open("set"); });
}

TEST_F(ImageSetTest, WithoutAnyPictureThereIsNothingToOpen) {
  fs::create_directories(below("train/cat"));
  failure(ExitCode::kBadData, [&] { open("train"); });
  put("train/cat/1.png", "");
  const auto error = failure(ExitCode::kBadData, [&] { open("train"); });
  EXPECT_NE(std::string(error.what()).find("1 bad sample"), std::string::npos) << error.what();
}

TEST_F(ImageSetTest, LinksInAFolderAreRefused) {
  put("train/cat/a.png", png(1));
  fs::create_symlink("/etc/passwd", below("train/cat/b.png"));
  failure(ExitCode::kUsage, [&] { open("train"); });
}

TEST_F(ImageSetTest, BadSamplesOfAllPathsTogetherHaveABound) {
  options_.bad_samples = "skip";
  put("a/cat/1.png", png(1));
  put("a/cat/2.png", "");
  put("b/dog/1.png", png(2));
  put("b/dog/2.png", "none");
  const auto both = [&] { return open_images(options_, "data.train", {below("a"), below("b")}); };
  EXPECT_EQ(both()->left_out().count, 2);
  EXPECT_EQ(both()->size(), 2);
  options_.max_bad_samples = 1;
  failure(ExitCode::kBadData, both);
}

TEST_F(ImageSetTest, ARowWithoutAClassIsABadSample) {
  put("1.png", png(1));
  put("list.csv", "path,label\n1.png,cat\n1.png,\n");
  options_.bad_samples = "stop";
  const auto error = failure(ExitCode::kBadData, [&] { open("list.csv"); });
  EXPECT_EQ(std::string(error.what()), below("list.csv") + ":3: names no class");
  options_.bad_samples = "skip";
  EXPECT_EQ(open("list.csv")->size(), 1);
  EXPECT_EQ(open("list.csv")->left_out().count, 1);
}

TEST_F(ImageSetTest, PicturesThatVanishOrBreakAreSkippedAndCountedOnce) {
  put("train/cat/a.png", png(1, 30, 30));
  const std::string whole = image::test::png_of(image::test::speckled(30, 30));
  put("train/cat/b.png", whole.substr(0, whole.size() / 2));  // its header is there
  put("train/dog/c.png", png(3, 30, 30));
  const auto table = open("train");
  ASSERT_EQ(table->size(), 3);
  const Labels classes = image_classes(options_, *table);
  fs::remove(below("train/dog/c.png"));

  const ImageSet stops(table, classes, {});
  EXPECT_TRUE(stops.load(0).has_value());
  const auto error = failure(ExitCode::kBadData, [&] { stops.load(1); });
  EXPECT_EQ(std::string(error.what()).find(below("train/cat/b.png")), 0U) << error.what();
  failure(ExitCode::kBadData, [&] { stops.load(2); });

  const ImageSet skips(table, classes, {.skips = true, .most = 2});
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(skips.load(0).has_value());
    EXPECT_FALSE(skips.load(1).has_value());
    EXPECT_FALSE(skips.load(2).has_value());
  }
  EXPECT_EQ(skips.left_out().count, 2);
  const ImageSet few(table, classes, {.skips = true, .most = 1});
  few.load(1);
  failure(ExitCode::kBadData, [&] { few.load(2); });
}

TEST_F(ImageSetTest, PicturesOfBothSetsAreFound) {
  put("train/cat/1.png", png(1));
  put("train/cat/2.png", png(2));
  put("train/dog/3.png", png(3));
  put("valid/cat/1.png", png(4));
  put("valid/cat/2.png", png(2));
  put("valid/dog/1.png", png(1));
  const auto train = open("train"), valid = open("valid", "data.valid");
  const SharedImages shared = shared_images(*train, *valid);
  EXPECT_EQ(shared.count, 2);
  EXPECT_EQ(shared.first, 1);
  EXPECT_EQ(shared.first_in_training, 1);
  EXPECT_EQ(shared_images_text(*train, *valid),
            "pictures with the bytes of one for training: 2 of 3, such as " +
                below("valid/cat/2.png") + ", as " + below("train/cat/2.png"));
  put("test/cat/1.png", png(5));
  EXPECT_EQ(shared_images_text(*train, *open("test", "data.test")), "");
}

TEST_F(ImageSetTest, WithoutTheCacheNothingIsWritten) {
  const std::vector<test::Member> members{{"cat/1.png", png(1)}, {"dog/2.png", png(2)}};
  for (const auto& member : members) put("tree/" + member.name, member.bytes);
  put("a.tar", test::tar_of(members));
  put("b.tgz", test::tar_of(members, test::TarForm::kGnu, /*is_packed=*/true));
  put("list.tsv", "label\tpath\ncat\ttree/cat/1.png\ndog\ttree/dog/2.png\n");
  for (const char* name : {"tree", "a.tar", "b.tgz", "list.tsv"}) {
    const auto table = open_images(options_, "data.train", {below(name)}, CacheUse::kNone);
    EXPECT_FALSE(fs::exists(below("cache"))) << name;
    EXPECT_EQ(classes_of(*table), (Names{"cat", "dog"})) << name;
    EXPECT_EQ(table->facts(1).width, 6) << name;
  }
}

TEST_F(ImageSetTest, EqualPicturesAreFound) {
  put("train/cat/1.png", png(1));
  put("train/cat/2.png", png(1));
  put("train/dog/3.png", png(3));
  put("train/dog/4.png", png(1));
  const EqualImages equal = equal_images(*open("train"));
  EXPECT_EQ(equal.copies, 2);
  EXPECT_EQ(equal.contradictions, 1);
  EXPECT_EQ(equal.first, 0);
  EXPECT_EQ(equal.second, 3);
}

}  // namespace
}  // namespace stretto::data
