#include "store/run_record.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::store {
namespace {

using State = SealedConfig::State;

constexpr std::string_view kToml = "[model]\nnum_heads = 2\n[report]\nevery = 1\n";

TEST(RunRecord, ComesBackAsItWasWithTheHashesThatItHad) {
  const stretto::testing::TempDir dir;
  EXPECT_FALSE(read_run_record(dir.path()));
  write_run_record(dir.path(), {"id", {"new", "old", "older"}, "then", "there", "1.0"});
  const auto record = read_run_record(dir.path());
  ASSERT_TRUE(record);
  EXPECT_EQ(record->run_id, "id");
  EXPECT_EQ(record->config_hashes, (std::vector<std::string>{"new", "old", "older"}));
  EXPECT_EQ(record->created + record->host + record->stretto, "thenthere1.0");
}

TEST(RunRecord, KeepsWhichDataWereAccepted) {
  const stretto::testing::TempDir dir;
  RunRecord record{
      .run_id = "id", .config_hashes = {"h"}, .created = "", .host = "", .stretto = ""};
  write_run_record(dir.path(), record);
  EXPECT_EQ(read_file(dir / "run.json").find("data"), std::string::npos);
  EXPECT_FALSE(read_run_record(dir.path())->has_data_record);
  record.has_data_record = true;
  record.accepted_data = {{7, "then", {{"data.train", "/a", "is new"}, {"k", "/ä", "x"}}},
                          {9, "now", {}}};
  write_run_record(dir.path(), record);
  const auto read = read_run_record(dir.path());
  EXPECT_TRUE(read->has_data_record);
  ASSERT_EQ(read->accepted_data.size(), 2u);
  EXPECT_EQ(read->accepted_data[0].step, 7);
  EXPECT_EQ(read->accepted_data[0].time, "then");
  EXPECT_EQ(read->accepted_data[0].files, record.accepted_data[0].files);
  dir.write("run.json",
            R"({"run_id": "id", "has_data_record": 1, "accepted_data": [1, {"step": 2}]})");
  EXPECT_TRUE(read_run_record(dir.path())->accepted_data.empty());
}

TEST(RunRecord, OfAnEarlierReleaseHasOneHash) {
  const stretto::testing::TempDir dir;
  dir.write("run.json", R"({"run_id": "id", "config_hash": "h", "created": "t", "host": "x"})");
  EXPECT_EQ(read_run_record(dir.path())->config_hashes, (std::vector<std::string>{"h"}));
}

TEST(RunRecord, ThatIsDamagedIsNamed) {
  const stretto::testing::TempDir dir;
  for (const char* text : {"{", "[]", "{}", R"({"run_id": 7})", R"({"run_id": ""})"}) {
    dir.write("run.json", text);
    const Error error =
        stretto::testing::failure(ExitCode::kBadData, [&] { read_run_record(dir.path()); });
    EXPECT_NE(std::string(error.what()).find("run.json"), std::string::npos) << error.what();
  }
}

TEST(LockRun, MakesTheFolderAndRefusesAFileAndASecondTrainer) {
  const stretto::testing::TempDir dir;
  const auto refusal = [](const std::filesystem::path& path) {
    return stretto::testing::failure(ExitCode::kUsage, [&] { lock_run(path); }).message();
  };
  const auto file = dir.write("file", "precious");
  EXPECT_EQ(refusal(file), file + " is not a folder\n  give another --run folder");
  const auto run = dir.path() / "runs" / "new";
  {
    const FileLock held = lock_run(run);
    EXPECT_TRUE(FileLock::is_held(run / ".lock"));
    EXPECT_NE(refusal(run).find(std::to_string(::getpid())), std::string::npos) << refusal(run);
  }
  EXPECT_NO_THROW(lock_run(run));
}

TEST(ConfigSeal, IsTakenOffAgain) {
  const std::string sealed = seal_config(kToml, "0123");
  const auto opened = unseal_config(sealed);
  EXPECT_EQ(opened.state, State::kWhole);
  EXPECT_EQ(opened.toml, kToml);
  EXPECT_EQ(opened.run_id, "0123");
  EXPECT_EQ(unseal_config(kToml).state, State::kUnsealed);
  EXPECT_EQ(unseal_config(kToml).toml, kToml);
  EXPECT_EQ(unseal_config("").toml, "");
}

TEST(ConfigSeal, ShowsEveryCut) {
  const std::string sealed = seal_config(kToml, "0123");
  const size_t first_line = sealed.find('\n') + 1;
  for (size_t size = first_line; size < sealed.size(); ++size) {
    EXPECT_EQ(unseal_config(sealed.substr(0, size)).state, State::kCutShort) << size;
  }
  // Before that there is no key left, and the hash of no keys is nobody's.
  for (size_t size = 0; size < first_line; ++size) {
    EXPECT_EQ(unseal_config(sealed.substr(0, size)).toml.find('='), std::string::npos) << size;
  }
}

TEST(ConfigSeal, ShowsEveryFlippedBitOfWhatItHolds) {
  const std::string sealed = seal_config(kToml, "0123");
  for (size_t at = 0; at < sealed.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = sealed;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      EXPECT_NE(unseal_config(bytes).state, State::kWhole) << at << " " << bit;
    }
  }
}

TEST(ConfigSeal, IsOfItsRun) {
  EXPECT_NE(seal_config(kToml, "a"), seal_config(kToml, "b"));
  std::string moved = seal_config(kToml, "aaaa");
  moved.replace(moved.find("aaaa"), 4, "bbbb");
  EXPECT_EQ(unseal_config(moved).state, State::kChanged);
}

}  // namespace
}  // namespace stretto::store
