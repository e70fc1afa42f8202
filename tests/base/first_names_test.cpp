#include "base/first_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stretto {
namespace {

using Names = std::vector<std::string>;

TEST(FirstNames, AllOfAFewAreListed) {
  EXPECT_EQ(listed_names(Names{}), "");
  EXPECT_EQ(listed_names(Names{"a"}), "a");
  EXPECT_EQ(listed_names(Names{"a", "b"}), "a and b");
  EXPECT_EQ(listed_names(Names{"a", "b", "c"}), "a, b and c");
}

TEST(FirstNames, OfManyTheRestIsCounted) {
  EXPECT_EQ(first_names(Names{"a", "b"}, 2, 10), "a, b");
  EXPECT_EQ(first_names(Names{"a", "b", "c", "d"}, 2, 10), "a, b and 2 more");
}

}  // namespace
}  // namespace stretto
