#include "seeds/seeds_runner.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/log.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::seeds {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// $1 = seed, $2 = run folder, $3 = the test's folder. `fail_SEED` there holds an exit code, `slow`
// a time to sleep, `deaf` that it has no handler and does not end; each start adds a line to
// `starts`.
constexpr const char* kStandIn = R"sh(
mkdir -p "$2"; echo "$1" >> "$3/starts"; echo '{}' > "$2/run.json"
if [ -e "$3/deaf" ]; then exec sleep 60; fi
trap 'kill $!; exit 75' INT
if [ -e "$3/slow" ]; then sleep "$(cat "$3/slow")" & wait $!; fi
if [ -e "$3/fail_$1" ]; then exit "$(cat "$3/fail_$1")"; fi
printf '{"step":4,"event":"valid","loss":%s.5,"nll":%s.25,"seconds":2}\n' "$1" "$1" > "$2/metrics.jsonl"
)sh";

class SeedsRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override { log::set_quiet(true); }
  void TearDown() override {
    log::close_file();
    log::set_quiet(false);
  }

  SeedsSetup setup(const std::vector<int64_t>& seeds, const std::string& fingerprint = "f") const {
    SeedsSetup made{.directory = folder_ / "dir",
                    .runs = {},
                    .command =
                        [this](int64_t seed, const fs::path& run) {
                          return std::vector<std::string>{"/bin/sh",
                                                          "-c",
                                                          kStandIn,
                                                          "sh",
                                                          std::to_string(seed),
                                                          run.string(),
                                                          folder_.path().string()};
                        },
                    .tick = 2ms};
    for (const int64_t seed : seeds) made.runs.push_back({seed, fingerprint});
    return made;
  }

  int run(const std::vector<int64_t>& seeds, const std::string& fingerprint = "f") const {
    return SeedsRunner(setup(seeds, fingerprint)).run();
  }

  std::string starts() const {
    std::error_code ignored;
    if (!fs::exists(folder_ / "starts", ignored)) return "";
    std::string text = read_file(folder_ / "starts");
    std::replace(text.begin(), text.end(), '\n', ' ');
    fs::remove(folder_ / "starts");
    return text;
  }

  void fail(int64_t seed, int code) const {
    folder_.write("fail_" + std::to_string(seed), std::to_string(code));
  }
  void heal(int64_t seed) const { fs::remove(folder_ / ("fail_" + std::to_string(seed))); }

  nlohmann::json written() const {
    return nlohmann::json::parse(read_file(folder_ / "dir/seeds.json"));
  }

  testing::TempDir folder_;
};

TEST_F(SeedsRunnerTest, TrainsEachSeedInItsFolderAndTellsMeanAndDeviation) {
  SeedsRunner runner(setup({1, 2, 3}));
  EXPECT_EQ(runner.run(), 0);
  EXPECT_EQ(starts(), "1 2 3 ");
  const auto json = written();
  EXPECT_EQ(json, nlohmann::json::parse(runner.json().dump()));
  EXPECT_EQ(json["finished"], 3);
  EXPECT_EQ(json["last"]["nll"]["mean"], 2.25);
  EXPECT_EQ(json["last"]["nll"]["deviation"], 1.0);
  EXPECT_EQ(json["runs"][2]["last"]["nll"], 3.25);
  const auto table = runner.table();
  EXPECT_NE(table.find("seed 3: finished, best nll 3.2500 at step 4\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("2.2500"), std::string::npos) << table;
}

TEST_F(SeedsRunnerTest, StartsOnlyWhatHasNotFinishedTheSameConfiguration) {
  EXPECT_EQ(run({1, 2}), 0);
  starts();
  EXPECT_EQ(run({1, 2}), 0);
  EXPECT_EQ(starts(), "");
  EXPECT_EQ(run({1, 2, 3}), 0);
  EXPECT_EQ(starts(), "3 ") << "seeds may be added";
  EXPECT_EQ(run({1, 2, 3}, "longer"), 0);
  EXPECT_EQ(starts(), "1 2 3 ");
  fs::remove_all(folder_ / "dir/seed_2");
  EXPECT_EQ(run({1, 2, 3}, "longer"), 0);
  EXPECT_EQ(starts(), "2 ");
}

TEST_F(SeedsRunnerTest, RefusesScoresThatAreNotThoseOfTheTraining) {
  EXPECT_EQ(run({1, 2}), 0);
  const std::string path = (folder_ / "dir/seed_2/metrics.jsonl").string();
  const std::string whole = read_file(path);
  const auto refused = [&](const std::string& text, const std::string& said) {
    write_file_atomic(path, text);
    const auto error = testing::failure(ExitCode::kBadData, [&] { run({1, 2}); });
    EXPECT_NE(error.message().find(path + ": is not what it was"), std::string::npos);
    EXPECT_NE(error.message().find(said), std::string::npos) << error.message();
  };
  refused("", "it has no validation, the best validation was at step 4");
  std::string edited = whole;
  edited.replace(edited.find("2.25"), 4, "2.24");
  refused(edited, "the best validation nll is 2.24, it was 2.25");
  edited = whole;
  edited.replace(edited.find("\"step\":4"), 8, "\"step\":3");
  refused(edited, "the best validation is at step 3, it was at step 4");
  fs::remove(path);
  testing::failure(ExitCode::kBadData, [&] { run({1, 2}); });
  write_file_atomic(path, whole);
  starts();
  EXPECT_EQ(run({1, 2}), 0);
  EXPECT_EQ(starts(), "");
  // Both ways out that the message names.
  fs::remove_all(folder_ / "dir/seed_2");
  EXPECT_EQ(run({1, 2}), 0);
  EXPECT_EQ(starts(), "2 ");
  write_file_atomic(path, "");
  fs::remove(folder_ / "dir/seeds.json");
  EXPECT_EQ(run({1, 2}), 0);
  EXPECT_EQ(starts(), "1 2 ");
}

// A seed that finished is not read again: what others do to its file meanwhile is noticed later.
TEST_F(SeedsRunnerTest, TellsTheScoresThatItSawATrainingEndWith) {
  SeedsRunner runner(setup({1}));
  EXPECT_EQ(runner.run(), 0);
  folder_.write("dir/seed_1/metrics.jsonl", "");
  EXPECT_EQ(runner.json()["last"]["nll"]["mean"], 1.25);
  EXPECT_EQ(runner.json(), nlohmann::ordered_json::parse(read_file(folder_ / "dir/seeds.json")));
}

TEST_F(SeedsRunnerTest, TrainsNoSeedOnOtherData) {
  const auto data = folder_.write("train", "1\n");
  const auto with_data = [&](const std::vector<int64_t>& seeds, bool accept = false) {
    auto made = setup(seeds);
    made.data_files = {{"data.train", data}};
    made.accept_data = accept;
    return made;
  };
  EXPECT_EQ(SeedsRunner(with_data({1})).run(), 0);
  folder_.write("train", "one\n");
  const auto error = testing::failure(ExitCode::kBadData, [&] { SeedsRunner(with_data({1, 2})); });
  EXPECT_NE(error.message().find("data.train: " + data + ": first differs in line 1"),
            std::string::npos)
      << error.message();
  EXPECT_EQ(starts(), "1 ");
  SeedsRunner accepting(with_data({1, 2}, /*accept=*/true));
  EXPECT_EQ(accepting.run(), 0);
  EXPECT_EQ(starts(), "2 ");
  EXPECT_EQ(written()["accepted_data"].size(), 1u);
  EXPECT_EQ(SeedsRunner(with_data({1, 2})).run(), 0);
  // While it goes on, nothing may change.
  SeedsRunner third(with_data({1, 2, 3}, /*accept=*/true));
  folder_.write("train", "three\n");
  testing::failure(ExitCode::kBadData, [&] { third.run(); });
  EXPECT_EQ(starts(), "");
}

TEST_F(SeedsRunnerTest, GoesOnBehindASeedThatDiverged) {
  fail(1, 70);
  EXPECT_EQ(run({1, 2}), 70);
  EXPECT_EQ(starts(), "1 2 ");
  EXPECT_EQ(written()["runs"][0]["state"], "failed");
  EXPECT_EQ(written()["runs"][0]["exit_code"], 70);
  EXPECT_EQ(written()["finished"], 1);
  heal(1);
  EXPECT_EQ(run({1, 2}), 0);
  EXPECT_EQ(starts(), "1 ");
}

TEST_F(SeedsRunnerTest, StopsAtAnyOtherFailure) {
  for (const int code : {2, 65, 69, 71, 74, 75, 130, 137}) {
    fail(2, code);
    EXPECT_EQ(run({1, 2, 3}), code);
    const auto runs = written()["runs"];
    EXPECT_EQ(runs[1]["state"], code == 75 ? "interrupted" : "failed");
    EXPECT_EQ(runs[2]["state"], "waiting");
  }
  EXPECT_EQ(starts(), "1 2 2 2 2 2 2 2 2 ");
}

TEST_F(SeedsRunnerTest, RefusesFoldersOfOtherThings) {
  const auto refused = [&](const std::string& said) {
    const auto error = testing::failure(ExitCode::kUsage, [&] { run({1, 2}); });
    EXPECT_NE(error.message().find(said), std::string::npos) << error.message();
  };
  folder_.write("dir/run.json", "{}");
  refused("holds a single run");
  fs::remove_all(folder_ / "dir");
  folder_.write("dir/journal", "");
  refused("holds a search");
  fs::remove_all(folder_ / "dir");
  folder_.write("dir", "");
  refused("is not a folder");
  fs::remove_all(folder_ / "dir");
  EXPECT_EQ(run({1, 3}), 0);
  refused("holds seeds that are not asked for: 3");
  const SeedsRunner busy(setup({1, 3}));
  testing::failure(ExitCode::kUsage, [&] { run({1, 3}); });
}

class SeedsRunnerSignalTest : public SeedsRunnerTest, public ::testing::WithParamInterface<int> {};

TEST_P(SeedsRunnerSignalTest, TakesItsTrainingWithItAndGoesOn) {
  EXPECT_EQ(run({1}), 0);
  folder_.write("slow", "60");
  starts();
  const pid_t other = ::fork();
  if (other == 0) ::_exit(run({1, 2, 3}));
  for (int i = 0; i < 1000 && !fs::exists(folder_ / "starts"); ++i)
    std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(50ms);  // for the trap of the shell
  ::kill(other, GetParam());
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, GetParam() == SIGKILL ? -1 : 75);
  EXPECT_EQ(starts(), "2 ");
  EXPECT_EQ(written()["runs"][1]["state"], GetParam() == SIGKILL ? "training" : "interrupted");
  fs::remove(folder_ / "slow");
  EXPECT_EQ(run({1, 2, 3}), 0);
  EXPECT_EQ(starts(), "2 3 ");
}

TEST_F(SeedsRunnerTest, LeavesAsStoppedWhereATrainingHasNotBegun) {
  folder_.write("deaf", "");
  const pid_t other = ::fork();
  if (other == 0) ::_exit(run({1}));
  for (int i = 0; i < 1000 && !fs::exists(folder_ / "starts"); ++i)
    std::this_thread::sleep_for(5ms);
  ::kill(other, SIGTERM);
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 75);
  EXPECT_EQ(written()["runs"][0]["state"], "interrupted");
}

INSTANTIATE_TEST_SUITE_P(Signals, SeedsRunnerSignalTest,
                         ::testing::Values(SIGINT, SIGTERM, SIGKILL), [](const auto& info) {
                           return std::string(info.param == SIGINT    ? "Interrupt"
                                              : info.param == SIGTERM ? "Terminate"
                                                                      : "Kill");
                         });

}  // namespace
}  // namespace stretto::seeds
