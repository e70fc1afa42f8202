#include "experiment/family_values.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/base/failure.h"

namespace stretto::experiment {
namespace {

struct Files {
  std::string src = "stdin";
};
struct Numbers {
  int64_t nbest = 5;
};

TEST(FamilyValues, AreTheStructThatWasPutIn) {
  const FamilyValues values = Files{.src = "a.txt"};
  EXPECT_EQ(values.as<Files>().src, "a.txt");
  FamilyValues copy = values;
  copy.edit<Files>().src = "b.txt";
  EXPECT_EQ(copy.as<Files>().src, "b.txt");
  EXPECT_EQ(values.as<Files>().src, "a.txt");
}

TEST(FamilyValues, ThatNobodyGaveAreTheDefaultsOfWhoeverAsks) {
  FamilyValues values;
  EXPECT_EQ(values.as<Files>().src, "stdin");
  EXPECT_EQ(values.as<Numbers>().nbest, 5);
  values.edit<Numbers>().nbest = 2;
  EXPECT_EQ(values.as<Numbers>().nbest, 2);
}

TEST(FamilyValues, AreRefusedByAnotherFamily) {
  FamilyValues values = Files{};
  for (const auto& asks :
       {+[](FamilyValues& v) { v.as<Numbers>(); }, +[](FamilyValues& v) { v.edit<Numbers>(); }}) {
    const Error error = testing::failure(ExitCode::kInternal, [&] { asks(values); });
    EXPECT_NE(std::string(error.what()).find("Numbers"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace stretto::experiment
