#include "data/data_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "data/folder_data.h"
#include "data/manifest.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

class DataRecordTest : public ::testing::Test {
 protected:
  void SetUp() override { log::set_quiet(true); }
  void TearDown() override {
    log::set_quiet(false);
    set_failpoints("");
  }
  DataFile file(const std::string& key, const std::string& name, const std::string& text) {
    return {key, folder_.write(name, text)};
  }
  std::vector<std::string> changes(const DataRecord& record, const std::vector<DataFile>& files) {
    std::vector<std::string> texts;
    for (const auto& one : changes_since(record, files, {})) {
      texts.push_back(one.key + " " + fs::path(one.path).filename().string() + " " + one.what);
    }
    return texts;
  }
  using Texts = std::vector<std::string>;

  testing::TempDir folder_;
};

TEST_F(DataRecordTest, NamesEachFileThatHasChanged) {
  const std::vector<DataFile> files{file("data.train", "a", "1\n2\n3\n"),
                                    file("data.train", "b", "4\n"), file("data.valid", "c", "5\n")};
  const auto record = record_data("run", files, {});
  EXPECT_EQ(changes(record, files), Texts{});
  folder_.write("a", "1\ntwo\n3\n");
  folder_.write("c", "");
  EXPECT_EQ(changes(record, files),
            (Texts{"data.train a first differs in line 2",
                   "data.valid c ends after line 0 (0 lines now, 1 then)"}));
}

TEST_F(DataRecordTest, TakesAMovedFileForTheSame) {
  const auto record = record_data("run", {file("data.train", "a", "1\n")}, {});
  EXPECT_EQ(changes(record, {file("data.train", "moved/b", "1\n")}), Texts{});
}

TEST_F(DataRecordTest, KnowsAnotherOrderAndAnotherNumberOfFiles) {
  const auto a = file("data.train", "a", "1\n"), b = file("data.train", "b", "2\n");
  const auto c = file("data.train", "c", "3\n"), valid = file("data.valid", "v", "4\n");
  const auto record = record_data("run", {a, b, valid}, {});
  EXPECT_EQ(changes(record, {b, a, valid}),
            Texts{"data.train b has another place in the list of files"});
  EXPECT_EQ(changes(record, {a, b, c, valid}), Texts{"data.train c is new"});
  EXPECT_EQ(changes(record, {a, valid}), Texts{"data.train b is no longer among the files"});
  EXPECT_EQ(changes(record, {a, b, b, valid}),
            Texts{"data.train a stands in a list of 3 files, it had 2"});
  EXPECT_EQ(changes(record, {a, b}), Texts{"data.valid v is no longer among the files"});
  EXPECT_EQ(changes(record, {a, c, valid}), Texts{"data.train c first differs in line 1"});
}

TEST_F(DataRecordTest, HasRoomForManyFiles) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += std::to_string(i) + "\n";
  const std::vector<DataFile> many(100, file("data.train", "a", text));
  const auto record = record_data("run", many, {});
  EXPECT_LE(record.files.front().digest.blocks.size(), 164u);
  EXPECT_EQ(changes(record, many), Texts{});
  folder_.write("a", text + "more\n");
  const auto found = changes(record, many);
  ASSERT_EQ(found.size(), 100u);
  EXPECT_EQ(found[0],
            "data.train a has more at its end, from line 3,001 on (3,001 lines now, 3,000 then)");
  EXPECT_EQ(text_of(changes_since(record, many, {})).find("; and 95 more files"),
            text_of(changes_since(record, many, {})).size() - 19);
}

TEST_F(DataRecordTest, ComparesAFileByBytesAFolderByFilesAndAManifestByBoth) {
  for (const char* name : {"tree/a.jpg", "tree/b.jpg", "wav/a.wav", "wav/b.wav"}) {
    folder_.write(name, name);
  }
  folder_.write("list.tsv", "wav/b.wav\nwav/c.wav\n");
  folder_.write("raw.gz", "no gzip at all");
  const auto path = [&](const char* name) { return (folder_ / name).string(); };
  const std::vector<DataFile> files{
      {"data.pictures", path("tree"), DataKind::kTree},
      {"data.train", path("list.tsv"), DataKind::kManifest, rows_with({})},
      {"data.valid", path("raw.gz"), DataKind::kBytes}};
  EXPECT_THROW(record_data("run", files, {}), Error)
      << "the second row names a file that is not there";
  folder_.write("list.tsv", "wav/b.wav\n" + path("wav/a.wav") + "\n");
  const auto record = record_data("run", files, {});
  EXPECT_EQ(changes(record, files), Texts{});
  folder_.write("tree/b.jpg", "other");
  folder_.write("wav/a.wav", "other.wav");
  folder_.write("raw.gz", "no gzip at ALL");
  EXPECT_EQ(changes(record, files),
            (Texts{"data.pictures tree b.jpg has changed (5 bytes now, 10 then)",
                   "data.train list.tsv line 2 names " + path("wav/a.wav") + ", which has changed",
                   "data.valid raw.gz first differs in bytes 1 to 14"}));
  folder_.write("list.tsv", "wav/b.wav\nwav/b.wav\n");
  EXPECT_EQ(changes(record, {files[1], files[0]}),
            (Texts{"data.train list.tsv first differs in line 2",
                   "data.pictures tree b.jpg has changed (5 bytes now, 10 then)",
                   "data.valid raw.gz is no longer among the files"}));
}

TEST_F(DataRecordTest, TakesAMovedFolderForTheSameButNoOtherOrderOfFolders) {
  for (const char* name : {"one/a", "two/b", "moved/one/a"}) folder_.write(name, name + 5);
  const auto tree = [&](const char* name) {
    return DataFile{"data.train", (folder_ / name).string(), DataKind::kTree};
  };
  folder_.write("one/a", "same");
  folder_.write("moved/one/a", "same");
  const auto record = record_data("run", {tree("one"), tree("two")}, {});
  EXPECT_EQ(changes(record, {tree("moved/one"), tree("two")}), Texts{});
  EXPECT_EQ(changes(record, {tree("two"), tree("one")}),
            Texts{"data.train two has another place in the list of files"});
  EXPECT_EQ(changes(record, {tree("one")}), Texts{"data.train two is no longer among the files"});
}

TEST_F(DataRecordTest, OfTextAloneHasTheFormThatEarlierVersionsRead) {
  const auto text = file("data.train", "a", "1\n");
  folder_.write("tree/a", "1");
  const DataFile tree{"data.train", (folder_ / "tree").string(), DataKind::kTree};
  const auto json_of = [&](const std::vector<DataFile>& files) {
    return nlohmann::json::parse(data_record_text(record_data("run", files, {})));
  };
  EXPECT_EQ(json_of({text}).at("format"), 1);
  EXPECT_FALSE(json_of({text}).at("files").at(0).contains("kind"));
  EXPECT_EQ(json_of({text, tree}).at("format"), 2);
  EXPECT_EQ(json_of({text, tree}).at("files").at(1).at("kind"), "tree");
}

TEST_F(DataRecordTest, ComparesWhatAnEarlierVersionLookedAt) {
  auto now = file("data.train", "m.tsv", "a.wav\n");
  const auto record = record_data("run", {now}, {});
  now.kind = DataKind::kManifest;
  now.rows = rows_with({});
  EXPECT_EQ(changes(record, {now}), Texts{}) << "that version knew of no files behind it";
  now.kind = DataKind::kBytes;
  EXPECT_EQ(changes(record, {now}), Texts{});
  folder_.write("m.tsv", "b.wav\n");
  EXPECT_EQ(changes(record, {now}), Texts{"data.train m.tsv first differs in line 1"});
  fs::remove(folder_ / "m.tsv");
  folder_.write("m.tsv/a", "");
  now.kind = DataKind::kTree;
  EXPECT_EQ(changes(record, {now}), Texts{"data.train m.tsv is a folder, and was a file"});
}

TEST_F(DataRecordTest, SaysThatAFolderOrAManifestIsReadInAnotherWay) {
  folder_.write("tree/a", "1");
  DataFile tree{"data.train", (folder_ / "tree").string(), DataKind::kTree};
  auto list = file("data.valid", "m.tsv", "tree/a\n");
  list.kind = DataKind::kManifest;
  list.rows = rows_with({});
  const auto record = record_data("run", {tree, list}, {});
  tree.kind = DataKind::kText;
  list = {list.key, list.path};
  EXPECT_EQ(changes(record, {tree, list}),
            (Texts{"data.train tree is read as a file, and was a folder",
                   "data.valid m.tsv is not read as a list of files any more"}));
}

TEST_F(DataRecordTest, ComesBackAsItWasWritten) {
  folder_.write("tree/a\xFF", "1");
  auto list = file("data.lists", "m.tsv", "b\n");
  list.kind = DataKind::kManifest;
  list.rows = rows_with({});
  auto record = record_data("run",
                            {file("data.train", "ä\"", "1\n2"),
                             file("k", "b", ""),
                             list,
                             {"data.pictures", (folder_ / "tree").string(), DataKind::kTree}},
                            {});
  record.accepted = {{"then", {{"k", "p", "is new"}}}};
  write_data_record(folder_.path(), record);
  const auto read = read_data_record(folder_.path(), "run");
  ASSERT_TRUE(read);
  EXPECT_EQ(data_record_text(*read), data_record_text(record));
  for (size_t i = 0; i < record.files.size(); ++i) {
    EXPECT_EQ(read->files[i].file, record.files[i].file);
    EXPECT_EQ(read->files[i].digest, record.files[i].digest);
    EXPECT_EQ(read->files[i].list, record.files[i].list);
  }
  EXPECT_EQ(read->accepted[0].changes, record.accepted[0].changes);
  EXPECT_FALSE(read_data_record(folder_ / "elsewhere", "run"));
}

TEST_F(DataRecordTest, NoticesDamageWhereverItIs) {
  folder_.write("tree/a", "1");
  const auto record = record_data("run",
                                  {file("data.train", "a", "1\n2\n"),
                                   {"data.pictures", (folder_ / "tree").string(), DataKind::kTree}},
                                  {});
  const std::string whole = data_record_text(record);
  const auto refused = [&](const std::string& text) {
    const auto error =
        testing::failure(ExitCode::kBadData, [&] { parse_data_record(text, "W", "run"); });
    EXPECT_NE(error.message().find("W: is damaged"), std::string::npos) << error.message();
    EXPECT_NE(error.message().find("--accept-data"), std::string::npos) << error.message();
  };
  for (size_t size = 0; size + 3 < whole.size(); size += 5) refused(whole.substr(0, size));
  for (size_t at = 0; at < whole.size(); ++at) {
    if (std::isspace(static_cast<unsigned char>(whole[at])) != 0) continue;
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 1);
    refused(text);
  }
  refused("{}");
  refused("[]");
  refused(std::string(100, '\0'));
  EXPECT_NO_THROW(parse_data_record(whole, "W", "run"));
  const auto other =
      testing::failure(ExitCode::kBadData, [&] { parse_data_record(whole, "W", "other"); });
  EXPECT_NE(other.message().find("belongs to another run"), std::string::npos);
}

TEST_F(DataRecordTest, RefusesWithTheFilesAndAWayOut) {
  EXPECT_NO_THROW(refuse_changes({}, "then"));
  const auto error = testing::failure(ExitCode::kBadData, [&] {
    refuse_changes({{"data.train", "a", "is new"}}, "then");
  });
  EXPECT_EQ(std::string(error.what()), "the data have changed since then: data.train: a: is new");
}

TEST_F(DataRecordTest, OfAFolderRefusesWhatChangesBetweenSessionsAndInThem) {
  const std::vector<DataFile> files{file("data.train", "a", "1\n"), file("data.valid", "b", "2\n")};
  const auto make = [&](bool accept = false) {
    return FolderData(folder_.path(), "the search began", accept);
  };
  auto first = make();
  first.require(files, {});
  first.require(files, {});
  folder_.write("a", "one\n");
  const auto refused = [&](FolderData& data) {
    const auto error = testing::failure(ExitCode::kBadData, [&] { data.require(files, {}); });
    EXPECT_NE(error.message().find("since the search began: data.train: "), std::string::npos)
        << error.message();
  };
  refused(first);
  refused(first);
  auto second = make();
  refused(second);
  auto accepting = make(/*accept=*/true);
  accepting.require(files, {});
  ASSERT_EQ(accepting.accepted().size(), 1u);
  EXPECT_EQ(accepting.accepted()[0].changes[0].what, "first differs in line 1");
  auto third = make();
  third.require(files, {});
  EXPECT_EQ(third.accepted().size(), 1u);
  // What changes while a session goes on was not there to be accepted.
  folder_.write("b", "two\nlines\n");
  EXPECT_THROW(accepting.require(files, {}), Error);
  // The same content, written anew, is no change.
  folder_.write("b", "2\n");
  third.require(files, {});
}

TEST_F(DataRecordTest, OfAFolderSeesWhatChangesBelowAPathToo) {
  folder_.write("tree/a", "1");
  folder_.write("tree/below/b", "2");
  const std::vector<DataFile> files{{"data.train", (folder_ / "tree").string(), DataKind::kTree}};
  FolderData data(folder_.path(), "the search began", false);
  data.require(files, {});
  data.require(files, {});
  folder_.write("tree/below/b", "3");
  const auto error = testing::failure(ExitCode::kBadData, [&] { data.require(files, {}); });
  EXPECT_NE(error.message().find("tree: below/b has changed"), std::string::npos)
      << error.message();
}

TEST_F(DataRecordTest, OfAFolderThatIsDamagedIsAcceptedAlone) {
  const std::vector<DataFile> files{file("data.train", "a", "1\n")};
  FolderData(folder_.path(), "the search began", false).require(files, {});
  folder_.write(kDataRecordFile, "");
  EXPECT_THROW(FolderData(folder_.path(), "the search began", false), Error);
  FolderData(folder_.path(), "the search began", true).require(files, {});
  EXPECT_EQ(FolderData(folder_.path(), "the search began", false).accepted().size(), 1u);
}

TEST_F(DataRecordTest, IsReplacedAtOnce) {
  const auto before = record_data("run", {file("data.train", "a", "1\n")}, {});
  write_data_record(folder_.path(), before);
  const auto after = record_data("run", {file("data.train", "a", "2\n")}, {});
  for (const char* where : {"data_record.write:eio", "file.rename:eio"}) {
    set_failpoints(where);
    EXPECT_THROW(write_data_record(folder_.path(), after), Error);
    set_failpoints("");
    EXPECT_EQ(data_record_text(*read_data_record(folder_.path(), "run")), data_record_text(before));
  }
}

}  // namespace
}  // namespace stretto::data
