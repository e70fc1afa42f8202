#include "seeds/seed_list.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"

namespace stretto::seeds {
namespace {

using Seeds = std::vector<int64_t>;

TEST(SeedList, IsACountOrAList) {
  EXPECT_EQ(parse_seeds("5"), (Seeds{1, 2, 3, 4, 5}));
  EXPECT_EQ(parse_seeds("3,7,9"), (Seeds{3, 7, 9}));
  EXPECT_EQ(parse_seeds("9, 3"), (Seeds{9, 3}));
  EXPECT_EQ(parse_seeds("0,"), (Seeds{0}));
  EXPECT_EQ(parse_seeds("1"), (Seeds{1}));
  EXPECT_EQ(seeds_text({3, 7}), "3, 7");
  EXPECT_EQ(parse_seeds("9007199254740992,1"), (Seeds{int64_t{1} << 53, 1})) << "the largest";
  EXPECT_EQ(parse_seeds("1000").size(), 1000u) << "the most";
}

TEST(SeedList, RefusesWhatIsNone) {
  for (const char* text : {"", "0", "-1", "1,,2", ",", "five", "1.5", "1001", "3,3", "1,2x",
                           "99999999999999999999", "9007199254740993,1"}) {
    const auto error = testing::failure(ExitCode::kUsage, [&] { parse_seeds(text); });
    EXPECT_NE(error.message().find("--seeds"), std::string::npos) << error.message();
  }
}

}  // namespace
}  // namespace stretto::seeds
