#include "data/cache_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/log.h"
#include "base/log_silence.h"
#include "tests/base/temp_dir.h"

namespace stretto::data {
namespace {

mode_t rights_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

TEST(CacheFolder, IsOpenToItsUserAlone) {
  const stretto::testing::TempDir dir;
  const auto root = open_cache((dir / "deep/cache").string());
  EXPECT_EQ(root, dir / "deep/cache");
  build_aside(root / "0123",
              [](const auto& aside) { write_file_atomic(aside / "ids.bin", "text"); });
  for (const char* name : {"deep/cache", "deep/cache/hashes", "deep/cache/0123"}) {
    EXPECT_EQ(rights_of(dir / name), 0700u) << name;
  }
}

TEST(CacheFolder, ClosesEntriesOfEarlierReleasesAndNoFolderThatWasChosen) {
  const stretto::testing::TempDir dir;
  dir.write("mine/letter.txt", "");
  dir.write("mine/hashes/0", "");
  ::chmod((dir / "mine").c_str(), 0755);
  open_cache((dir / "mine").string());
  EXPECT_EQ(rights_of(dir / "mine"), 0755u);
  EXPECT_EQ(rights_of(dir / "mine/hashes"), 0700u);
  make_private(dir / "none");
  EXPECT_FALSE(std::filesystem::exists(dir / "none"));
}

// A look ahead is silent, and whoever comes behind it finds the folder whole.
TEST(CacheFolder, DamageIsToldDuringASilenceToo) {
  const stretto::testing::TempDir dir;
  const auto root = open_cache((dir / "cache").string());
  std::filesystem::create_directories(root / "0123");
  const auto find = [&](bool& damaged) -> std::optional<std::string> {
    damaged = std::filesystem::exists(root / "0123");
    if (!std::filesystem::exists(root / "0123/ids.bin")) return std::nullopt;
    return read_file(root / "0123/ids.bin", 10);
  };
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    const log::Silence silence;
    find_or_build(root / "0123", find,
                  [](const auto& aside) { write_file_atomic(aside / "ids.bin", "text"); });
    log::warn("not told");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: token cache " + (root / "0123").string() +
                ": is damaged; it is made again from the text\n");
}

// Another process makes a damaged folder again at this moment.
TEST(CacheFolder, AFileThatVanishesWhileItIsLookedForIsBuilt) {
  const stretto::testing::TempDir dir;
  const auto root = open_cache((dir / "cache").string());
  int looks = 0;
  const auto find = [&](bool& damaged) -> std::optional<std::string> {
    damaged = true;
    if (++looks == 1) throw Error(ExitCode::kUsage, "ids.bin: no such file");
    if (looks == 2) return std::nullopt;
    damaged = false;
    return read_file(root / "0123/ids.bin", 10);
  };
  const auto [found, is_new] = find_or_build(
      root / "0123", find, [](const auto& aside) { write_file_atomic(aside / "ids.bin", "text"); });
  EXPECT_EQ(found, "text");
  EXPECT_TRUE(is_new);
  const auto refused = [](bool&) -> std::optional<int> { throw Error(ExitCode::kIo, "no"); };
  bool damaged = false;
  EXPECT_THROW(find_beside_others(refused, damaged), Error);
}

}  // namespace
}  // namespace stretto::data
