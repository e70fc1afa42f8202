#include "search/trial_pool.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/log.h"
#include "base/signals.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::search {
namespace {

using namespace std::chrono_literals;
using Jobs = std::vector<Job>;

constexpr Job kFirst{.trial = 0, .until = 4, .begins = true};
constexpr Job kSecond{.trial = 1, .until = 4, .begins = true};

/// A pool whose trials are lines of a shell.
class TrialPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log::set_quiet(true);
    ignore_broken_pipes();
  }
  void TearDown() override { log::set_quiet(false); }

  TrialPool pool(std::vector<Host> hosts, TrialSize size = {}) {
    return {Places(std::move(hosts), size, 1ms),
            {.command =
                 [this](const TrialRun& run) {
                   gpus_.push_back(run.gpus);
                   return std::vector<std::string>{"/bin/sh", "-c", line_};
                 },
             .remote = {.shell = {"/bin/sh", "-c", "echo no route; exit 255"}},
             .tick = 1ms}};
  }
  void place(TrialPool& pool) {
    pool.place([this](const Job& job, const Host&) {
      placed_.push_back(job);
      return TrialRun{.directory = root_ / std::to_string(job.trial), .until = job.until};
    });
  }
  /// Waits for so many that have ended.
  std::vector<EndedJob> ended(TrialPool& pool, size_t count) {
    std::vector<EndedJob> all;
    for (int i = 0; i < 5000 && all.size() < count; ++i) {
      for (auto& one : pool.poll(begun_)) all.push_back(std::move(one));
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(all.size(), count);
    return all;
  }

  stretto::testing::TempDir root_;
  std::string line_ = "exit 0";
  Jobs begun_{kFirst, kSecond}, placed_;
  std::vector<std::vector<std::string>> gpus_;
};

TEST_F(TrialPoolTest, JobsGetTheirPlacesInTheOrderInWhichTheyWereBegun) {
  auto tried = pool({{.slots = 1}});
  tried.add(kSecond, begun_);
  tried.add(kFirst, begun_);
  place(tried);
  EXPECT_EQ(placed_, Jobs{kFirst}) << "there is one place";
  EXPECT_EQ(ended(tried, 1).at(0).job, kFirst);
  place(tried);
  EXPECT_EQ(placed_, (Jobs{kFirst, kSecond}));
  EXPECT_EQ(ended(tried, 1).at(0).job, kSecond);
}

TEST_F(TrialPoolTest, AProcessThatFailedIsHeardOfWithItsCodeAndItsComplaint) {
  line_ = "echo 'error: no such file' >&2; exit 65";
  auto tried = pool({{.slots = 1}});
  tried.add(kFirst, begun_);
  place(tried);
  const auto found = ended(tried, 1).at(0);
  EXPECT_EQ(found.code, 65);
  EXPECT_NE(found.why.find("no such file"), std::string::npos) << found.why;
}

TEST_F(TrialPoolTest, EachTrialHasItsOwnGpus) {
  auto tried = pool({{.slots = 2, .gpus = {"3", "5"}}}, {.slots = 1, .gpus = 1});
  EXPECT_EQ(tried.capacity(), 2u);
  for (const Job& job : begun_) tried.add(job, begun_);
  place(tried);
  EXPECT_EQ(gpus_, (std::vector<std::vector<std::string>>{{"3"}, {"5"}}));
  ended(tried, 2);
}

TEST_F(TrialPoolTest, AHostThatFailsIsNoFaultOfTheTrialUntilNoHostIsLeft) {
  auto tried = pool({{.name = "far", .slots = 1}});
  tried.add(kFirst, begun_);
  const auto error = stretto::testing::failure(ExitCode::kPeerLost, [&] {
    for (int i = 0; i < 5000; ++i) {
      place(tried);
      EXPECT_TRUE(tried.poll(begun_).empty());
      std::this_thread::sleep_for(1ms);
    }
  });
  EXPECT_NE(std::string(error.what()).find("host far failed: no route"), std::string::npos);
  EXPECT_EQ(placed_.size(), static_cast<size_t>(Places::kMostFailures));
}

TEST_F(TrialPoolTest, StoppedProcessesLeaveAndJobsThatWaitAreForgotten) {
  line_ = "exec sleep 60";
  auto tried = pool({{.slots = 1}});
  for (const Job& job : begun_) tried.add(job, begun_);
  place(tried);
  EXPECT_TRUE(tried.poll(begun_).empty());
  const auto asked = std::chrono::steady_clock::now();
  tried.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 30s);
  EXPECT_TRUE(tried.poll(begun_).empty());
  place(tried);
  EXPECT_EQ(placed_, Jobs{kFirst});
}

TEST(ExitCodes, OfAFullDiskOrAMissingProgramBlameTheMachine) {
  EXPECT_TRUE(is_fault_of_machine(static_cast<int>(ExitCode::kIo)));
  EXPECT_TRUE(is_fault_of_machine(127));
  for (const ExitCode code : {ExitCode::kOk, ExitCode::kUsage, ExitCode::kBadData,
                              ExitCode::kNumeric, ExitCode::kInterrupted}) {
    EXPECT_FALSE(is_fault_of_machine(static_cast<int>(code))) << static_cast<int>(code);
  }
}

}  // namespace
}  // namespace stretto::search
