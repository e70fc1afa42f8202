#include "config/unknown_names.h"

#include <gtest/gtest.h>

#include "config/choice.h"
#include "config/toml_entries.h"
#include "tests/config/sample_options.h"

namespace stretto::config {
namespace {

using stretto::testing::House;

class UnknownNamesTest : public ::testing::Test {
 protected:
  /// The answer to the only entry of a text, at `path`.
  std::string answer(const std::string& path, const std::string& text, bool is_slip = false) {
    House house, defaults;
    const Schema schema = schema_of(house), fallback = schema_of(defaults);
    UnknownNames names(schema, fallback, {}, problems_);
    const auto parsed = toml::parse(text);
    EXPECT_TRUE(parsed) << text;
    return names.answer(path, *by_lines(parsed.table()).at(0).second, {.file = "a.toml"}, is_slip);
  }

  std::vector<Problem> problems_;
};

TEST_F(UnknownNamesTest, ASectionThatIsASlipIsReadAsTheOneThatWasMeant) {
  EXPECT_EQ(answer("oveen", "[oveen]\nheat = 100\n"), "oven");
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0].what, "unknown section `oveen`");
  EXPECT_EQ(problems_[0].hint, "did you mean `oven`?");
}

TEST_F(UnknownNamesTest, AKeyIsAnsweredWithTheOneThatWasMeant) {
  EXPECT_EQ(answer("oven.temperature", "temperature = 100\n"), "");
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0].what, "unknown key `oven.temperature`");
  EXPECT_NE(problems_[0].hint.find("`oven.heat`"), std::string::npos) << problems_[0].hint;
}

TEST_F(UnknownNamesTest, KeysOfASectionThatNothingIsLikeAreAnsweredOneByOne) {
  EXPECT_EQ(answer("furnace", "[furnace]\ntemperature = 100\n"), "");
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_NE(problems_[0].hint.find("`temperature` is `oven.heat`"), std::string::npos)
      << problems_[0].hint;
}

TEST_F(UnknownNamesTest, ProblemsThatAreNotShownGetNoSuggestions) {
  problems_.resize(kMostProblemsShown);
  EXPECT_EQ(answer("oveen", "[oveen]\nheat = 100\n"), "") << "its keys would be problems too";
  EXPECT_EQ(problems_.back().what, "unknown section `oveen`");
  EXPECT_EQ(problems_.back().hint.find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace stretto::config
