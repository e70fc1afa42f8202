#include "optim/held_elements.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace stretto::optim {
namespace {

TEST(HeldElements, AreAllByDefaultAndStandWhereTheyStandInTheArena) {
  const HeldElements all;
  EXPECT_TRUE(all.is_all());
  EXPECT_EQ(all.count_before(7), 7);
  EXPECT_EQ(all.place_of({3, 9}).begin, 3);
  EXPECT_EQ(all.place_of({3, 9}).end, 9);
  EXPECT_TRUE(all.has({0, 100}));
}

TEST(HeldElements, OfStretchesStandOneBehindTheOther) {
  const HeldElements held(std::vector<Slice>{{2, 5}, {8, 10}});
  EXPECT_FALSE(held.is_all());
  const int64_t counts[] = {0, 0, 0, 1, 2, 3, 3, 3, 3, 4, 5, 5, 5};
  for (int64_t end = 0; end <= 12; ++end) EXPECT_EQ(held.count_before(end), counts[end]) << end;
  EXPECT_EQ(held.place_of({4, 9}).begin, 2);
  EXPECT_EQ(held.place_of({4, 9}).end, 4);
  EXPECT_TRUE(held.has({2, 5}));
  EXPECT_TRUE(held.has({8, 9}));
  EXPECT_TRUE(held.has({6, 6})) << "there is nothing in it";
  EXPECT_FALSE(held.has({4, 6}));
  EXPECT_FALSE(held.has({4, 9}));
}

TEST(HeldElements, OfNoStretchesAreNone) {
  const HeldElements none(std::vector<Slice>{});
  EXPECT_FALSE(none.is_all());
  EXPECT_EQ(none.count_before(100), 0);
  EXPECT_FALSE(none.has({0, 1}));
}

}  // namespace
}  // namespace stretto::optim
