#include "optim/nonmonotone.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace stretto::optim {
namespace {

/// A validation a row, 10 updates after the one before.
struct Look {
  double loss;
  bool averages;  ///< after it
};

void expect_table(int64_t looks, const std::vector<Look>& table) {
  NonMonotone trigger(looks);
  std::optional<int64_t> begin;
  for (size_t i = 0; i < table.size(); ++i) {
    const auto updates = static_cast<int64_t>(10 * (i + 1));
    trigger.look(table[i].loss, updates);
    ASSERT_EQ(trigger.begin().has_value(), table[i].averages) << "look " << i;
    if (!begin) begin = trigger.begin();
    EXPECT_EQ(trigger.begin(), begin) << "it moves";
    if (begin && i > 0 && !table[i - 1].averages) {
      EXPECT_EQ(*begin, updates);
    }
  }
}

// awd-lstm-lm: len(losses) > n and loss > min(losses[:-n]), losses without the present one.
TEST(NonMonotone, BeginsWhereALossIsAboveTheBestOfAllButTheLast) {
  expect_table(2, {{5, false},
                   {4, false},
                   {4.5, false},  // above 4, which is one of the last two
                   {4.4, false},  // not above 5
                   {4.3, true},   // above 4
                   {1, true},
                   {9, true}});
  expect_table(1, {{3, false}, {3, false}, {3, false}, {3.1, true}});
  expect_table(5, {{9, false},
                   {8, false},
                   {7, false},
                   {6, false},
                   {5, false},
                   {8.5, false},
                   {8.7, false},
                   {8.8, true}});
}

TEST(NonMonotone, NeverBeginsWithoutLooksAndDoesNotCountWhatIsNotFinite) {
  expect_table(0, {{1, false}, {2, false}, {3, false}});
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinite = std::numeric_limits<double>::infinity();
  expect_table(
      1, {{3, false}, {nan, false}, {infinite, false}, {2, false}, {2.5, false}, {2.6, true}});
}

TEST(NonMonotone, ForgetsEarlierLossesButNotThatItHasBegun) {
  NonMonotone trigger(1);
  trigger.look(2, 10);
  trigger.look(1, 20);
  trigger.forget();
  trigger.look(5, 30);
  trigger.look(4, 40);
  EXPECT_FALSE(trigger.begin()) << "5 and 4 are worse than 1, which is forgotten";
  trigger.look(6, 50);
  EXPECT_EQ(trigger.begin(), 50);
  trigger.forget();
  EXPECT_EQ(trigger.begin(), 50);
}

TEST(NonMonotone, GoesOnFromItsStateAfterAnyLook) {
  const std::vector<double> losses{5, 4, 4.5, 4.4, 4.3, 1, 9};
  for (size_t cut = 0; cut <= losses.size(); ++cut) {
    NonMonotone whole(2), first(2);
    for (size_t i = 0; i < cut; ++i) first.look(losses[i], static_cast<int64_t>(i));
    NonMonotone second(2);
    second.look(0.5, 1);  // is forgotten
    second.restore(first.state());
    EXPECT_EQ(second.state(), first.state());
    for (size_t i = 0; i < losses.size(); ++i) {
      whole.look(losses[i], static_cast<int64_t>(i));
      if (i >= cut) second.look(losses[i], static_cast<int64_t>(i));
    }
    EXPECT_EQ(second.begin(), whole.begin()) << cut;
    EXPECT_EQ(second.state(), whole.state()) << cut;
  }
  EXPECT_TRUE(NonMonotone(2).state().empty());
}

}  // namespace
}  // namespace stretto::optim
