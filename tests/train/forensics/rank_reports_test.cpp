#include "train/forensics/rank_reports.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/thread_group.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;

/// As one rank comes back from its examination.
struct Finding {
  std::optional<std::string> first = "";  ///< an output that was not finite; nullopt: not examined
  std::string sum = "";                   ///< a sum over processes that is not
  bool loss_finite = true;
};

RankFindings findings(const Finding& one, int rank, int size) {
  RankFindings mine{.found = {},
                    .record = {.step = 9, .rank = rank, .world_size = size},
                    .overflowed_sum = one.sum,
                    .loss_finite = one.loss_finite};
  if (!one.first) return mine;
  mine.found.emplace();
  if (!one.first->empty()) mine.found->first = {TensorKind::kOutput, *one.first, {}};
  return mine;
}

class RankReportsTest : public ::testing::Test {
 protected:
  /// The path that all ranks get, without the run folder.
  std::string gather(const std::vector<Finding>& ranks) {
    std::vector<std::string> paths(ranks.size());
    const auto size = static_cast<int>(ranks.size());
    stretto::test::run_ranks(size, [&](distributed::ProcessGroup group) {
      torch::nn::Linear net(2, 2);
      const optim::Arena arena(*net);
      const auto rank = static_cast<size_t>(group.rank());
      paths[rank] = gather_reports(group, run(), findings(ranks[rank], group.rank(), size), arena);
    });
    EXPECT_EQ(std::set<std::string>(paths.begin(), paths.end()).size(), 1u) << "ranks disagree";
    return fs::path(paths[0]).filename().string();
  }
  fs::path run() const { return folder_ / "run"; }
  std::set<std::string> files() const {
    std::set<std::string> names;
    if (!fs::exists(run() / "forensics")) return names;
    for (const auto& entry : fs::directory_iterator(run() / "forensics")) {
      if (entry.path().extension() == ".json") names.insert(entry.path().filename().string());
    }
    return names;
  }
  FirstNonfinite first_of(const std::string& name) const {
    return read_report(run() / "forensics" / name).report.first;
  }

  stretto::testing::TempDir folder_;
};

using Names = std::set<std::string>;

TEST_F(RankReportsTest, RankZeroWritesWhatEachRankFound) {
  EXPECT_EQ(gather({{}, {"ffn.up"}, {}, {"embedding"}}), "step_00000009.rank1.json");
  EXPECT_EQ(files(), (Names{"step_00000009.rank1.json", "step_00000009.rank3.json"}));
  EXPECT_EQ(first_of("step_00000009.rank1.json").name, "ffn.up");
  EXPECT_EQ(first_of("step_00000009.rank3.json").name, "embedding");
}

TEST_F(RankReportsTest, WhenNobodyFindsAnythingASumOverProcessesIsNamed) {
  EXPECT_EQ(gather({{}, {.sum = "ffn.up over 2 processes"}}), "step_00000009.json");
  const FirstNonfinite expected{TensorKind::kSum, "ffn.up over 2 processes", {}};
  EXPECT_EQ(first_of("step_00000009.json"), expected);
}

TEST_F(RankReportsTest, ALossThatIsNotFiniteIsNoSumsFault) {
  const std::string sum = "ffn.up over 2 processes";
  EXPECT_EQ(gather({{.sum = sum, .loss_finite = false}, {.sum = sum, .loss_finite = false}}),
            "step_00000009.json");
  EXPECT_EQ(first_of("step_00000009.json").kind, TensorKind::kNone);
}

// It may be the one that would have found it.
TEST_F(RankReportsTest, NothingIsSaidOfNothingWhileARankCouldNotLook) {
  EXPECT_EQ(gather({{}, {.first = std::nullopt}}), "");
  EXPECT_EQ(files(), Names{});
  EXPECT_EQ(gather({{.first = std::nullopt}, {"ffn.up"}}), "step_00000009.rank1.json");
}

TEST_F(RankReportsTest, AFolderThatCannotBeWrittenIsAWarningToAll) {
  folder_.write("run", "a file where the run folder should be");
  EXPECT_EQ(gather({{"ffn.up"}, {}}), "");
}

TEST(ExamineOrWarn, OnlyTheLossOfAPeerGoesOn) {
  NonfiniteReport found;
  found.first = {TensorKind::kOutput, "ffn.up", {}};
  EXPECT_EQ(examine_or_warn([&] { return found; })->first, found.first);
  EXPECT_FALSE(examine_or_warn([]() -> NonfiniteReport { throw std::bad_alloc(); }));
  EXPECT_FALSE(examine_or_warn([]() -> NonfiniteReport { throw std::runtime_error("odd"); }));
  EXPECT_FALSE(
      examine_or_warn([]() -> NonfiniteReport { throw Error(ExitCode::kIo, "full", "free"); }));
  EXPECT_THROW(examine_or_warn([]() -> NonfiniteReport {
                 throw Error(ExitCode::kPeerLost, "rank 1 is lost", "look there");
               }),
               Error);
}

}  // namespace
}  // namespace stretto::train
