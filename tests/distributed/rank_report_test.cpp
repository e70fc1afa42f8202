#include "distributed/rank_report.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/temp_dir.h"

namespace stretto::distributed {
namespace {

RankReport left(int rank, int code, double ended, const std::string& message) {
  return {.rank = rank,
          .host = "h",
          .pid = 100 + rank,
          .exit_code = code,
          .ended = ended,
          .message = message};
}

RankReport died(int rank, double ended) {
  return {.rank = rank, .host = "h", .pid = 100 + rank, .ended = ended};
}

std::vector<int> order(const std::vector<RankReport>& reports) {
  std::vector<int> ranks;
  for (const auto& report : failures_in_order(reports)) ranks.push_back(report.rank);
  return ranks;
}

TEST(RankReport, RootCauseIsTheEarliestThatIsNotALostPeer) {
  RankReport stopped = died(3, 40);
  stopped.end_reason = EndReason::kHung;
  RankReport late = died(4, 60), waiting = died(0, 50);
  late.end_reason = EndReason::kNeverJoined;
  waiting.end_reason = EndReason::kWaited;
  struct Row {
    const char* what;
    std::vector<RankReport> reports;
    std::vector<int> order;
    int code;
  };
  const Row rows[] = {
      {"all well", {left(0, 0, 1, ""), left(1, 0, 2, "")}, {}, 0},
      {"saved", {left(0, 75, 1, ""), left(1, 75, 2, "")}, {}, 75},
      {"diverged on all", {left(0, 70, 5, "b"), left(1, 70, 4, "a")}, {1, 0}, 70},
      {"out of memory",
       {left(0, 69, 1, "lost"), left(1, 71, 3, "oom"), left(2, 69, 2, "lost")},
       {1, 0, 2},
       71},
      {"killed", {left(0, 69, 1, "lost"), died(1, 3), left(2, 69, 2, "lost")}, {1, 0, 2}, 69},
      {"stopped", {left(0, 69, 30, "lost"), stopped}, {3, 0}, 69},
      {"an error, and one that was busy then",
       {left(0, 69, 8, "lost"), stopped, left(1, 70, 7, "nan")},
       {1, 3, 0},
       70},
      {"one that never came", {waiting, left(1, 69, 8, "lost"), late}, {4, 1, 0}, 69},
      {"later ranks ended well", {left(0, 0, 9, ""), died(1, 3)}, {1}, 69},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(order(row.reports), row.order) << row.what;
    EXPECT_EQ(job_exit_code(row.reports), row.code) << row.what;
    EXPECT_EQ(failures_text(row.reports).empty(), row.order.empty()) << row.what;
  }
}

TEST(RankReport, EachFailureIsToldOnceWithItsLastLines) {
  auto root = left(1, 70, 3, "the loss is not finite\n  lower optim.lr");
  root.last_lines = {"step 10", "step 11"};
  auto follower = left(0, 69, 4, "rank 1 is lost");
  follower.last_lines = {"noise"};
  auto other = follower;
  other.rank = 2;
  EXPECT_EQ(failures_text({follower, root, other}),
            "rank 1 (host h, pid 101) left with exit code 70:\n"
            "  the loss is not finite\n"
            "    lower optim.lr\n"
            "  last lines of its output:\n"
            "    | step 10\n"
            "    | step 11\n"
            "ranks 0, 2 left with exit code 69:\n"
            "  rank 1 is lost");
  EXPECT_NE(failures_text({died(1, 3)}).find("rank 1 (host h, pid 101) died without a word"),
            std::string::npos);
}

TEST(RankReport, WhoLeftBecauseOfAnErrorThatIsToldSaysOnlyThat) {
  auto root = left(0, 2, 3, "run/.lock is in use\n  use another folder");
  auto follower = left(1, 69, 4, "rank 0 is lost: it left with exit code 2: …\n  start again");
  follower.lost_rank = 0;
  auto other = left(2, 69, 5, "rank 0 (host h) is lost: it left with exit code 2\n  start again");
  other.lost_rank = 0;
  EXPECT_EQ(failures_text({root, follower, other}),
            "rank 0 (host h, pid 100) left with exit code 2:\n"
            "  run/.lock is in use\n"
            "    use another folder\n"
            "ranks 1, 2 left with exit code 69:\n"
            "  because rank 0 had failed");
  // A rank that was killed says nothing itself, and of two that blame each other both are heard.
  EXPECT_NE(failures_text({died(0, 3), follower}).find("rank 0 is lost"), std::string::npos);
  auto blamed = left(0, 69, 3, "rank 1 is lost");
  blamed.lost_rank = 1;
  const auto both = failures_text({blamed, follower});
  EXPECT_NE(both.find("rank 1 is lost"), std::string::npos);
  EXPECT_NE(both.find("rank 0 is lost"), std::string::npos);
}

TEST(RankReport, RanksThatWereEndedAlikeShareAParagraph) {
  std::vector<RankReport> all{died(0, 5), died(1, 5), died(2, 5)};
  for (auto& report : all) report.end_reason = EndReason::kOrphaned;
  EXPECT_EQ(failures_text(all),
            "ranks 0-2 were ended by force, since the mpirun that they ran under had died");
  for (auto& report : all) report.end_reason = EndReason::kUnsaved;
  EXPECT_EQ(failures_text(all), "ranks 0-2 ended after the signal, without having saved");
  EXPECT_EQ(job_exit_code(all), 69);
  auto stopped = died(1, 5);
  stopped.end_reason = EndReason::kStopped;
  EXPECT_EQ(
      failures_text({stopped}),
      "rank 1 (host h, pid 101) is stopped (SIGSTOP, or a debugger?), and was ended by force");
  RankReport unseen = died(1, 3);
  unseen.pid = 0;
  EXPECT_EQ(failures_text({unseen}),
            "rank 1 (host h) died without a word (killed, or out of memory?)");
}

TEST(RankReport, ComesBackFromItsFile) {
  const testing::TempDir folder;
  write_rank_report(folder.path(), died(2, 0));
  RankReport joined = died(3, 0);
  joined.joined = true;
  write_rank_report(folder.path(), joined);
  write_rank_report(folder.path(), left(0, 70, 12.5, "what\n\"quoted\""));
  auto lost = left(2, 69, 13, "lost");
  lost.lost_rank = 0;
  write_rank_report(folder.path(), lost);  // replaces the first
  std::ofstream(folder / "rank.1.json") << "{broken";
  const auto reports = read_rank_reports(folder.path());
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_FALSE(reports[0].joined);
  EXPECT_TRUE(reports[2].joined);
  EXPECT_EQ(reports[0].exit_code, 70);
  EXPECT_EQ(reports[0].message, "what\n\"quoted\"");
  EXPECT_EQ(reports[0].ended, 12.5);
  EXPECT_EQ(reports[1].rank, 2);
  EXPECT_EQ(reports[1].exit_code, 69);
  EXPECT_EQ(reports[1].pid, 102);
  EXPECT_EQ(reports[1].lost_rank, 0);
  EXPECT_FALSE(reports[0].lost_rank);
}

}  // namespace
}  // namespace stretto::distributed
