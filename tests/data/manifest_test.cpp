#include "data/manifest.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

using testing::failure;
using NamedLines = std::vector<std::string>;

class ManifestTest : public ::testing::Test {
 protected:
  NamedLines named(const std::string& text, const PathColumn& column,
                   const std::string& name = "lists/m.tsv") const {
    const DataFile manifest{"data.train", folder_.write(name, text), DataKind::kManifest,
                            rows_with(column)};
    NamedLines lines;
    for (const auto& file : files_named_by(manifest)) {
      lines.push_back(std::to_string(file.line) + " " + file.path);
    }
    return lines;
  }
  std::string refusal(const std::string& text, const PathColumn& column) const {
    return failure(ExitCode::kBadData, [&] { named(text, column); }).message();
  }
  std::string below(const std::string& path) const { return (folder_ / path).string(); }

  testing::TempDir folder_;
};

TEST_F(ManifestTest, NamesFilesByAColumnRelativeToItsFolder) {
  EXPECT_EQ(named("a.wav\n/x/b.wav\n../c d.wav", {}),
            (NamedLines{"1 " + below("lists/a.wav"), "2 /x/b.wav", "3 " + below("c d.wav")}));
  EXPECT_EQ(named("id\tpath\n1\ta.wav\n2\tb.wav\n", {.name = "path"}),
            (NamedLines{"2 " + below("lists/a.wav"), "3 " + below("lists/b.wav")}));
  EXPECT_EQ(named("1|a.wav|hello\n", {.number = 2, .separator = '|'}),
            NamedLines{"1 " + below("lists/a.wav")});
  EXPECT_EQ(named("text,path\n\"two\nlines\",\"a, b.wav\"\nx,c.wav\n",
                  {.name = "path", .format = SeparatedRecords::Kind::kCsv}),
            (NamedLines{"2 " + below("lists/a, b.wav"), "4 " + below("lists/c.wav")}));
  EXPECT_EQ(named("", {}), NamedLines{});
  const std::string odd = "a\xFF";
  EXPECT_EQ(named(odd + "b\n", {}), NamedLines{"1 " + below("lists/") + odd + "b"});
}

TEST_F(ManifestTest, SaysWhichRowNamesNoFile) {
  const std::string path = below("lists/m.tsv");
  EXPECT_NE(refusal("a.wav\n\nb.wav\n", {}).find(path + ":2: names no file"), std::string::npos);
  EXPECT_NE(refusal("1\ta\n2\n", {.number = 2})
                .find(path + ":2: the row has 1 column, and column 2 names the file"),
            std::string::npos);
  EXPECT_NE(refusal("id\tfile\n", {.name = "path"})
                .find(path + ":1: the header has no column `path`\n  it has id, file"),
            std::string::npos);
  EXPECT_NE(refusal(std::string("a\0b\n", 4), {}).find(path + ":1"), std::string::npos);
}

TEST(PathBesideAManifest, IsAsTheConfigurationHasItsOwn) {
  EXPECT_EQ(path_beside("/d/m.tsv", "a/b.wav"), "/d/a/b.wav");
  EXPECT_EQ(path_beside("/d/m.zip:in/m.tsv", "b.wav"), "/d/b.wav");
  EXPECT_EQ(path_beside("/d/m.tsv", "./a/../b.wav"), "/d/b.wav");
  EXPECT_EQ(path_beside("/d/m.tsv", "/e/b.wav"), "/e/b.wav");
  EXPECT_EQ(path_beside("/d/m.tsv", "a.zip:x/../y"), "/d/a.zip:x/../y");
}

}  // namespace
}  // namespace stretto::data
