#include "distributed/agreement.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stretto::distributed {
namespace {

using Facts = std::vector<Fact>;

TEST(Agreement, OfEqualFactsSaysNothing) {
  const std::vector<Facts> all(3, Facts{{"version", "1"}, {"data", "abc"}});
  EXPECT_EQ(disagreement(all), "");
  EXPECT_NO_THROW(require_agreement(ProcessGroup(), all[0]));
}

TEST(Agreement, NamesWhatDiffersAndOnWhichRanks) {
  const std::vector<Facts> all{{{"version", "1"}, {"data", "a"}},
                               {{"version", "2"}, {"data", "a"}},
                               {{"version", "1"}, {"data", "a"}},
                               {{"version", "1"}}};
  EXPECT_EQ(disagreement(all),
            "version: 1 on ranks 0, 2, 3; 2 on rank 1\n"
            "data: a on ranks 0-2; (not known) on rank 3");
}

TEST(Agreement, ControlCharactersOfARankNeverReachTheScreen) {
  const std::vector<Facts> all{{{"version", "1"}}, {{"version", "\x1b[2J"}}};
  EXPECT_EQ(disagreement(all).find('\x1b'), std::string::npos);
}

TEST(Agreement, RanksAreListedAsRanges) {
  const std::pair<std::vector<int>, std::string> table[] = {
      {{}, ""}, {{4}, "4"}, {{0, 1}, "0, 1"}, {{0, 1, 2, 5, 7, 8, 9, 10}, "0-2, 5, 7-10"}};
  for (const auto& [ranks, text] : table) EXPECT_EQ(rank_list(ranks), text);
}

}  // namespace
}  // namespace stretto::distributed
