#include "data/listed_files.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <chrono>
#include <filesystem>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/cache_files.h"
#include "data/manifest.h"
#include "data/start_memory.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/settled.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;
using testing::failure;
using NamesOfFiles = std::vector<std::string>;

class ListedFilesTest : public ::testing::Test {
 protected:
  DataFile tree() const { return {"data.train", (folder_ / "tree").string(), DataKind::kTree}; }
  std::string put(const std::string& name, const std::string& text) const {
    return folder_.write("tree/" + name, text);
  }
  /// Takes its time of modification back.
  void age(const std::string& path) const {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(10));
  }
  static NamesOfFiles names_of(const ListedFiles& files) {
    NamesOfFiles names;
    for (const auto& file : files.files()) names.push_back(file.name);
    return names;
  }
  Error refusal(ExitCode code) const {
    return failure(code, [&] { ListedFiles(tree(), 2); });
  }
  /// The one file in the memory folder.
  fs::path memory() const { return fs::directory_iterator(memory_dir_)->path(); }

  testing::TempDir folder_;
  const fs::path memory_dir_ = folder_ / "hashes";
};

TEST_F(ListedFilesTest, OfAFolderAreInTheOrderOfTheBytesOfTheirNames) {
  for (const char* name : {"b/1.jpg", "a.jpg", "a/2.jpg", "a-b", "a/x/y/3.jpg", ".hidden",
                           "\xFF odd\n\"name\\", "x.zip:y"}) {
    put(name, name);
  }
  fs::create_directories(folder_ / "tree/empty/below");
  const NamesOfFiles wanted{".hidden",     "a-b",     "a.jpg",   "a/2.jpg",
                            "a/x/y/3.jpg", "b/1.jpg", "x.zip:y", "\xFF odd\n\"name\\"};
  ListedFiles files(tree(), 3);
  EXPECT_EQ(names_of(files), wanted);
  EXPECT_EQ(names_of(ListedFiles({"k", tree().path + "//", DataKind::kTree}, 1)), wanted);
  files.hash({.threads = 3});
  for (const auto& file : files.files()) {
    EXPECT_EQ(file.hash, xxh3_64(file.name)) << file.name;
    EXPECT_EQ(file.size, file.name.size());
  }
}

TEST_F(ListedFilesTest, OfAFolderBehindALinkAreThoseOfTheFolder) {
  put("a", "1");
  fs::create_directory_symlink(folder_ / "tree", folder_ / "link");
  EXPECT_EQ(names_of(ListedFiles({"k", (folder_ / "link").string(), DataKind::kTree}, 1)),
            NamesOfFiles{"a"});
}

TEST_F(ListedFilesTest, OfAFolderAreNeitherLinksNorPipesNorSocketsNorDevices) {
  put("a", "1");
  const auto refused = [&](const std::string& name, const std::string& kind) {
    const auto path = folder_ / "tree" / name;
    EXPECT_NE(refusal(ExitCode::kUsage).message().find(path.string() + ": is " + kind),
              std::string::npos);
    fs::remove(path);
  };
  fs::create_symlink(folder_ / "tree/a", folder_ / "tree/b");
  refused("b", "a symbolic link");
  fs::create_directory_symlink(folder_.path(), folder_ / "tree/c");
  refused("c", "a symbolic link");
  fs::create_symlink("/nowhere", folder_ / "tree/d");
  refused("d", "a symbolic link");
  ASSERT_EQ(::mkfifo((folder_ / "tree/e").c_str(), 0600), 0);
  refused("e", "a pipe");
  if (::mknod((folder_ / "tree/f").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {
    refused("f", "a device");
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (folder_ / "tree/g").string();
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  refused("g", "a socket");
}

TEST_F(ListedFilesTest, NeedAFolder) {
  EXPECT_NE(refusal(ExitCode::kUsage).message().find("tree: no such folder"), std::string::npos);
  folder_.write("tree", "");
  EXPECT_NE(refusal(ExitCode::kUsage).message().find("tree: is a file, a folder is needed"),
            std::string::npos);
}

TEST_F(ListedFilesTest, ThatVanishOrChangeBeforeTheyAreReadAreNamed) {
  const std::string path = put("b", "1");
  put("a", "1");
  const auto refused = [&](const std::string& what, const std::function<void()>& change) {
    put("b", "1");
    ListedFiles files(tree(), 1);
    change();
    const auto error = failure(ExitCode::kBadData, [&] { files.hash({.threads = 2}); });
    EXPECT_NE(error.message().find(path + ": " + what + " while it was being read"),
              std::string::npos)
        << error.message();
    fs::remove(path);
  };
  refused("vanished", [&] { fs::remove(path); });
  refused("changed", [&] { put("b", "12"); });
  refused("changed", [&] {
    fs::remove(path);
    fs::create_symlink(folder_ / "tree/a", path);
  });
}

TEST_F(ListedFilesTest, AreRememberedByTheirStamps) {
  const std::string a = put("a", "one");
  test::let_settle({a});
  put("b", "two");
  const DigestSetting setting{.memory_dir = memory_dir_, .threads = 1};
  const auto hashes = [&] {
    ListedFiles files(tree(), 1);
    files.hash(setting);
    std::vector<uint64_t> all;
    for (const auto& file : files.files()) all.push_back(file.hash);
    return all;
  };
  const std::vector<uint64_t> right{xxh3_64("one"), xxh3_64("two")};
  EXPECT_EQ(hashes(), right);
  const std::string whole = read_file(memory());
  auto words = *unseal_words(whole);
  ASSERT_EQ(words.size(), 4u) << "what was modified a moment ago is not remembered";
  EXPECT_EQ(words[3], right[0]);
  words[3] = 7;
  write_file_atomic(memory(), seal_words(words));
  EXPECT_EQ(hashes(), (std::vector<uint64_t>{7, right[1]})) << "it is not read again";
  put("a", "eno");
  age(a);  // its size and time are those of before, the time of its last change is not
  EXPECT_EQ(hashes(), (std::vector<uint64_t>{xxh3_64("eno"), right[1]}));
  put("a", "one");
  write_file_atomic(memory(), whole.substr(0, whole.size() - 1));
  EXPECT_EQ(hashes(), right) << "a damaged memory is as none";
}

// Files of a moment ago, which the folder of hashes does not remember.
TEST_F(ListedFilesTest, AreReadOnceInAStart) {
  put("a", "one");
  const std::string path = put("b", "three");
  const auto is_read = [&](ListedFiles& files) {
    fs::remove(path);
    try {
      files.hash({.memory_dir = memory_dir_});
    } catch (const Error&) {  // it vanished
      return true;
    }
    EXPECT_EQ(files.files()[1].hash, xxh3_64("three"));
    EXPECT_EQ(files.files()[1].size, 5u);
    return false;
  };
  {
    const StartMemory memory;
    ListedFiles first(tree(), 1), again(tree(), 1);
    first.hash({.memory_dir = memory_dir_});
    EXPECT_FALSE(is_read(again));
    put("b", "other");
    ListedFiles changed(tree(), 1);
    EXPECT_TRUE(is_read(changed)) << "its stamp is another one";
  }
  put("b", "three");
  ListedFiles before(tree(), 1), later(tree(), 1);
  before.hash({.memory_dir = memory_dir_});
  EXPECT_TRUE(is_read(later)) << "the start is over";
}

TEST_F(ListedFilesTest, HaveAnotherStampWhereAFileMayBeAnotherOne) {
  put("a", "1");
  const uint64_t stamp = ListedFiles(tree(), 1).stamp();
  EXPECT_EQ(ListedFiles(tree(), 1).stamp(), stamp);
  put("b", "");
  EXPECT_NE(ListedFiles(tree(), 1).stamp(), stamp);
  fs::remove(folder_ / "tree/b");
  EXPECT_EQ(ListedFiles(tree(), 1).stamp(), stamp);
  put("a", "2");
  EXPECT_NE(ListedFiles(tree(), 1).stamp(), stamp);
}

TEST_F(ListedFilesTest, OfAManifestMustBeThereAndAreNamedWithTheirLine) {
  const auto refused = [&](const std::string& text, const std::string& what) {
    const DataFile manifest{"data.train", folder_.write("m.tsv", text), DataKind::kManifest,
                            rows_with({.number = 2})};
    const auto error = failure(ExitCode::kBadData, [&] { ListedFiles(manifest, 1); });
    EXPECT_NE(error.message().find(manifest.path + what), std::string::npos) << error.message();
  };
  put("a.wav", "1");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const std::string root = folder_.path().string();
  refused("1\ttree/a.wav\n2\ttree/b.wav\n",
          ":2: names " + root + "/tree/b.wav, which is not there");
  refused("1\tpipe\n", ":1: names " + root + "/pipe, which is a pipe");
  refused("1\ttree\n", ":1: names " + root + "/tree, which is a folder");
  refused("1\ttree/a.wav/b\n", ":1: names " + root + "/tree/a.wav/b, which is not there");
}

}  // namespace
}  // namespace stretto::data
