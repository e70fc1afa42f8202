#include "data/file_list.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/text.h"
#include "data/manifest.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using Contents = std::map<std::string, std::string>;

FileList list_below(const Contents& contents) {
  const testing::TempDir folder;
  fs::create_directories(folder / "tree");
  for (const auto& [name, text] : contents) folder.write("tree/" + name, text);
  ListedFiles files({"k", (folder / "tree").string(), DataKind::kTree}, 1);
  files.hash({});
  return list_of(files, DataKind::kTree);
}

const Contents kFour{{"a/1.jpg", "one"}, {"a/2.jpg", "two"}, {"b/1.jpg", "three"}, {"b/2.jpg", ""}};

/// kFour with other contents, and without those that are "-".
Contents with(const Contents& changes) {
  Contents contents = kFour;
  for (const auto& [name, text] : changes) {
    if (text == "-") {
      contents.erase(name);
    } else {
      contents[name] = text;
    }
  }
  return contents;
}

TEST(FileListOfATree, NamesTheFirstFileThatIsAnotherOne) {
  struct Case {
    Contents changes;
    std::string said;
  };
  const std::vector<Case> cases{
      {{}, ""},
      {{{"a/2.jpg", "owt"}}, "a/2.jpg has changed"},
      {{{"a/2.jpg", "twofold"}}, "a/2.jpg has changed (7 bytes now, 3 then)"},
      {{{"b/2.jpg", "-"}}, "b/2.jpg is gone"},
      {{{"a/1.jpg", "-"}}, "a/1.jpg is gone"},
      {{{"a/3.jpg", "new"}}, "a/3.jpg is new"},
      {{{"c", "new"}}, "c is new"},
      {{{"a/1.jpg", "-"}, {"z/1.jpg", "one"}}, "a/1.jpg has the name z/1.jpg now"},
      {{{"b/1.jpg", "-"}, {"a/0.jpg", "three"}}, "b/1.jpg has the name a/0.jpg now"},
      {{{"a/2.jpg", "owt"}, {"b/1.jpg", "x"}}, "a/2.jpg has changed; in all 2 files changed"},
      {{{"a/2.jpg", "-"}, {"b/1.jpg", "x"}, {"c", "new"}},
       "a/2.jpg is gone; in all 1 file changed, 1 new, 1 gone"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(tree_difference(list_below(kFour), list_below(with(one.changes))), one.said);
  }
  const auto said = tree_difference(list_below({}), list_below({{"odd\xFF\nname", ""}}));
  EXPECT_EQ(said, printable("odd\xFF\nname") + " is new");
  EXPECT_EQ(said.find('\n'), std::string::npos);
}

TEST(FileListOfATree, ComparesBlocksOfSeveralFiles) {
  Contents many;
  for (int i = 10; i < 30; ++i) many[std::to_string(i)] = std::to_string(i);
  const FileList whole = list_below(many);
  const FileList before = coarsened(whole, 8);
  EXPECT_EQ(before.hashes.size(), 3u);
  EXPECT_EQ(before.hash, whole.hash);
  EXPECT_EQ(tree_difference(before, whole), "");
  auto now = many;
  now["19"] = "x";
  EXPECT_EQ(tree_difference(before, list_below(now)),
            "first differs in one of 8 files from 18 on (20 files now, 20 then)");
  now = many;
  for (int i = 26; i < 30; ++i) now.erase(std::to_string(i));
  EXPECT_EQ(tree_difference(before, list_below(now)),
            "has no file behind 25 any more (16 files now, 20 then)");
  EXPECT_EQ(tree_difference(before, list_below({})), "has no file any more (0 files now, 20 then)");
}

TEST(FileListOfATree, SurvivesJson) {
  Contents contents = kFour;
  contents["\xFE\xFF"] = std::string(300, 'x');
  contents[std::string(200, 'n')] = "";
  for (const uint64_t per_block : {1, 2, 8}) {
    const FileList list = coarsened(list_below(contents), per_block);
    const auto json = nlohmann::json::parse(list_to_json(list).dump());
    EXPECT_EQ(list_from_json(json, DataKind::kTree), list);
  }
  const FileList none = list_below({});
  EXPECT_EQ(list_from_json(list_to_json(none), DataKind::kTree), none);
  EXPECT_EQ(none.files, 0u);
}

TEST(FileListOfATree, IsRefusedWhereItIsNotWhole) {
  const auto json = list_to_json(list_below(kFour));
  const std::string blocks = *bytes_of_base64(json.at("blocks").get<std::string>());
  const auto refused = [&](const char* key, const nlohmann::json& value) {
    auto other = json;
    other[key] = value;
    EXPECT_ANY_THROW(list_from_json(other, DataKind::kTree)) << key << " " << value;
  };
  for (const char* key : {"files", "bytes", "hash", "files_per_block", "blocks"}) {
    refused(key, nullptr);
    auto other = json;
    other.erase(key);
    EXPECT_ANY_THROW(list_from_json(other, DataKind::kTree)) << key;
  }
  for (size_t size = 0; size < blocks.size(); ++size) {
    refused("blocks", base64(blocks.substr(0, size)));
  }
  refused("blocks", "*");
  refused("files", 5);
  refused("bytes", 12);
  refused("files_per_block", 0);
  refused("files_per_block", 3);
  // The second name has more of the first than there is; the names are not in order.
  auto other = blocks;
  other[1 + 1 + 7 + 1 + 8] = 9;
  refused("blocks", base64(other));
  EXPECT_ANY_THROW(list_from_json(json, DataKind::kManifest)) << "a manifest's list has no names";
}

TEST(FileListOfATree, TakesFewBytesForManyNeighbours) {
  Contents many;
  for (int i = 1000; i < 2000; ++i)
    many["n01440764/n01440764_" + std::to_string(i) + ".JPEG"] = "x";
  EXPECT_LT(encoded_bytes(list_below(many)), 1000 * 20u);
}

class FileListOfAManifest : public ::testing::Test {
 protected:
  ListedFiles files() const {
    ListedFiles found({"k", folder_.write("m", ""), DataKind::kManifest, rows_}, 1);
    found.hash({});
    return found;
  }
  FileList list() const { return list_of(files(), DataKind::kManifest); }

  testing::TempDir folder_;
  std::vector<std::pair<int64_t, std::string>> named_{{3, "a"}, {4, "b"}, {9, "c"}};
  const ManifestRows rows_ = [this](const std::string& /*manifest*/, const auto& take) {
    for (const auto& [line, path] : named_) take({.line = line, .path = path});
  };
};

TEST_F(FileListOfAManifest, NamesTheFirstFileThatHasChangedWithItsLine) {
  for (const char* name : {"a", "b", "c"}) folder_.write(name, name);
  const FileList before = list();
  const auto said = [&](uint64_t per_block = 1) {
    return manifest_difference(coarsened(before, per_block), list(), files());
  };
  const std::string root = folder_.path().string();
  EXPECT_EQ(said(), "");
  folder_.write("b", "x");
  EXPECT_EQ(said(), "line 4 names " + root + "/b, which has changed");
  folder_.write("c", "cc");
  EXPECT_EQ(said(), "line 4 names " + root + "/b, which has changed; in all 2 files changed");
  EXPECT_EQ(said(2), "one of the files that line 3 to line 4 name has changed");
  folder_.write("b", "b");
  EXPECT_EQ(said(), "line 9 names " + root + "/c, which has changed (2 bytes now, 1 then)");
  EXPECT_EQ(list_from_json(list_to_json(before), DataKind::kManifest), before);
  named_.pop_back();
  EXPECT_EQ(said(), "names 2 files, it named 3");
}

}  // namespace
}  // namespace stretto::data
