#include "data/labelled/labels.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::data {
namespace {

using Names = std::vector<std::string>;

TEST(Labels, KeepTheOrderThatIsGiven) {
  const auto labels = Labels::given({"neutral", "entailment", "contradiction"});
  EXPECT_EQ(labels.size(), 3);
  EXPECT_EQ(labels.name(0), "neutral");
  EXPECT_EQ(labels.find("contradiction"), 2);
  EXPECT_EQ(labels.find("other"), std::nullopt);
}

TEST(Labels, AreSortedOnceEach) {
  EXPECT_EQ(Labels::sorted({"b", "a", "B", "é", "a"}).names(), (Names{"B", "a", "b", "é"}));
}

TEST(Labels, ThatAreNumbersAreSortedAsNumbers) {
  EXPECT_EQ(Labels::sorted({"10", "9", "-1", "9"}).names(), (Names{"-1", "9", "10"}));
  EXPECT_EQ(Labels::sorted({"10", "9", "x"}).names(), (Names{"10", "9", "x"}));
}

TEST(Labels, ListTheKnownOnesWhereOneIsUnknown) {
  const auto labels = Labels::sorted({"neutral", "entailment"});
  EXPECT_EQ(labels.number_of("neutral", "dev.tsv:17"), 1);
  const Error error =
      testing::failure(ExitCode::kBadData, [&] { labels.number_of("neutrl", "dev.tsv:17"); });
  EXPECT_EQ(std::string(error.what()), "dev.tsv:17: unknown label `neutrl`");
  EXPECT_EQ(error.advice(), "did you mean `neutral`? known: entailment, neutral");
}

TEST(Labels, ListAFewWhereThereAreMany) {
  const auto advice = [](const Names& names, const std::string& name) {
    return testing::failure(ExitCode::kBadData,
                            [&] { Labels::sorted(names).number_of(name, "dev.tsv:17"); })
        .advice();
  };
  EXPECT_EQ(advice({"1", "2", "3", "4", "5"}, "6"), "known: 1, 2, 3 and 2 more");
  EXPECT_EQ(advice({"a", "b"}, "ab"), "known: a, b");
  EXPECT_EQ(advice({std::string(50, 'x')}, "y"), "known: " + std::string(40, 'x') + "…");
}

TEST(Labels, ThatMayBeMeantAsOneAreNamed) {
  EXPECT_EQ(labels_alike(Names{"01", "1", "1.0", "2", "no", "yes"}),
            (Names{"`01`, `1` and `1.0` are one number"}));
  EXPECT_EQ(labels_alike(Names{"hot dog", "hotdog", "dog"}),
            (Names{"`hot dog` and `hotdog` differ in case or white space alone"}));
  EXPECT_EQ(labels_alike(Names{"Very  good", "very good", "bad", "É", "é"}),
            (Names{"`Very  good` and `very good` differ in case or white space alone",
                   "`É` and `é` differ in case or white space alone"}));
  EXPECT_TRUE(labels_alike(Names{"0", "1", "-1", "a", "b", "nan", "inf", "1 2", "é", "e"}).empty());
  EXPECT_EQ(labels_alike(Names{"0", "-0"}).size(), 1U);
}

TEST(Labels, MayBeNoneOfSeveralLines) {
  EXPECT_TRUE(is_one_line("very good"));
  for (const char* label : {"a\tb", "a\nb", "a\rb", "a\vb", "\f"}) {
    EXPECT_FALSE(is_one_line(label));
  }
}

TEST(Labels, RefuseListsThatAreNone) {
  for (const auto& names : {Names{}, Names{"a", ""}, Names{"a", "b", "a"}}) {
    testing::failure(ExitCode::kUsage, [&] { Labels::given(names); });
  }
  testing::failure(ExitCode::kUsage, [] { Labels::sorted({}); });
}

}  // namespace
}  // namespace stretto::data
