#include "distributed/failure.h"

#include <gtest/gtest.h>

#include <map>

#include "distributed/watch/peer_watch.h"
#include "tests/base/temp_dir.h"

namespace stretto::distributed {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

Launch rank_of(int rank, int size, int local_rank) {
  return {.kind = Launch::Kind::kMpi, .rank = rank, .size = size, .local_rank = local_rank};
}

Failure own(const std::string& message) {
  return {.exit_code = 2, .message = message, .lost_rank = {}};
}

Failure loss(int rank, const std::string& message) {
  return {.exit_code = 69, .message = message, .lost_rank = rank};
}

TEST(Failure, WhatRanksOfAHostHaveAlikeIsToldOnce) {
  const testing::TempDir scratch;
  const auto variables = environment({{"PMIX_SERVER_TMPDIR", scratch.path().string()}});
  const auto told = [&](int rank, const std::string& message) {
    return is_reporter(rank_of(rank, 3, rank), own(message), variables);
  };
  EXPECT_TRUE(told(0, "no run folder at x"));
  EXPECT_FALSE(told(1, "no run folder at x"));
  EXPECT_FALSE(told(2, "no run folder at x"));
  EXPECT_TRUE(told(2, "no run folder at y")) << "another error is its own";
  EXPECT_TRUE(told(0, "once more")) << "later";
}

TEST(Failure, EachTellsItsOwnWhereNobodyKnows) {
  const std::vector<Variables> all{{}, {{"PMIX_SERVER_TMPDIR", "/nonexistent/here"}}};
  for (const auto& variables : all) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE(is_reporter(rank_of(rank, 3, rank), own("x"), environment(variables)));
    }
  }
}

TEST(Failure, TheLowestRankThatIsLeftTellsTheLoss) {
  const auto tellers = [](int lost, int size) {
    std::vector<int> ranks;
    for (int rank = 0; rank < size; ++rank) {
      // Two ranks on each host, with a place of its own.
      const testing::TempDir scratch;
      const auto variables = environment(
          {{"PMIX_SERVER_TMPDIR", scratch.path().string()}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
      const auto launch = rank_of(rank, size, rank % 2);
      if (rank != lost && is_reporter(launch, loss(lost, "lost"), variables)) {
        ranks.push_back(rank);
      }
    }
    return ranks;
  };
  EXPECT_EQ(tellers(3, 4), std::vector<int>{0});
  EXPECT_EQ(tellers(1, 4), std::vector<int>{0});
  EXPECT_EQ(tellers(0, 4), std::vector<int>{1});
}

TEST(Failure, OnOneHostALossIsToldThoughTheLowestIsLostToo) {
  const testing::TempDir scratch;
  const auto variables = environment(
      {{"PMIX_SERVER_TMPDIR", scratch.path().string()}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  EXPECT_TRUE(is_reporter(rank_of(2, 4, 2), loss(0, "rank 0 is lost"), variables));
  EXPECT_FALSE(is_reporter(rank_of(3, 4, 3), loss(2, "what followed"), variables));
}

TEST(Failure, OfARankThatHasToldItsOwnErrorTheOthersSayNothing) {
  const auto told = [](const std::string& how) {
    PeerWatch watch;
    watch.lost(0, how);
    return failure_of(watch.news()).told;
  };
  EXPECT_TRUE(told("it left with exit code 2: x/.lock is in use"));
  EXPECT_FALSE(told("it left with exit code 69: rank 1 is lost")) << "it may have been no teller";
  EXPECT_FALSE(told("its process has ended"));
  Failure loss_of_a_teller = loss(0, "rank 0 is lost");
  loss_of_a_teller.told = true;
  EXPECT_FALSE(is_reporter(rank_of(1, 2, 1), loss_of_a_teller, environment({})));
}

TEST(Failure, KnowsALostPeerFromAnErrorOfItsOwn) {
  PeerWatch watch;
  watch.set_peers({{"a", 1}, {"b", 2}});
  watch.left(1, Clock::duration::zero());
  try {
    watch.check();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(failure_of(error).lost_rank, 1);
    EXPECT_EQ(failure_of(error).exit_code, 69);
    EXPECT_EQ(error.advice().find("the run goes on"), std::string::npos)
        << "an evaluation has no checkpoints to go on from";
  }
  EXPECT_FALSE(failure_of(Error(ExitCode::kPeerLost, "rank 1 cannot reach rank 0")).lost_rank);
}

}  // namespace
}  // namespace stretto::distributed
