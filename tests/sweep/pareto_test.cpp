#include "sweep/pareto.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace stretto::sweep {
namespace {

using Front = std::vector<size_t>;

TEST(Pareto, KeepsWhatNothingBeats) {
  const std::vector<Trade> trades{{4, 0.9}, {1, 0.5}, {2, 0.4}, {3, 0.8}, {5, 0.85}};
  EXPECT_EQ(pareto_front(trades, /*higher_is_better=*/true), (Front{1, 3, 0}));
  EXPECT_EQ(pareto_front(trades, /*higher_is_better=*/false), (Front{1, 2}));
}

TEST(Pareto, TakesTheFirstOfEqualOnesAndTheBestOfOneCost) {
  const std::vector<Trade> trades{{1, 0.5}, {1, 0.7}, {1, 0.7}, {2, 0.7}};
  EXPECT_EQ(pareto_front(trades, true), (Front{1}));
  EXPECT_EQ(pareto_front(trades, false), (Front{0}));
}

TEST(Pareto, LeavesOutWhatIsNoNumber) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Trade> trades{{1, nan}, {nan, 9}, {2, 0.1}};
  EXPECT_EQ(pareto_front(trades, true), (Front{2}));
  EXPECT_EQ(pareto_front({}, true), Front{});
}

}  // namespace
}  // namespace stretto::sweep
