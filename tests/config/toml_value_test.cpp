#include "config/toml_value.h"

#include <gtest/gtest.h>

namespace stretto::config {
namespace {

/// Stores the value of `v = TEXT`.
template <class T>
bool store_text(const std::string& text, T& target) {
  const auto parsed = toml::parse("v = " + text);
  EXPECT_TRUE(parsed) << text;
  return store(*parsed.table().get("v"), &target);
}

TEST(TomlValue, AnIntegerIsANumberAndANumberIsNoInteger) {
  double number = 0;
  EXPECT_TRUE(store_text("3", number));
  EXPECT_EQ(number, 3);
  int64_t integer = 7;
  EXPECT_FALSE(store_text("3.0", integer));
  EXPECT_EQ(integer, 7) << "it stays as it was";
}

TEST(TomlValue, ASingleValueStandsForAListOfOne) {
  std::vector<std::string> texts{"old"};
  EXPECT_TRUE(store_text("'a'", texts));
  EXPECT_EQ(texts, std::vector<std::string>{"a"});
  std::vector<double> numbers;
  EXPECT_TRUE(store_text("[1, 2.5]", numbers));
  EXPECT_EQ(numbers, (std::vector<double>{1, 2.5}));
  EXPECT_TRUE(store_text("[]", numbers));
  EXPECT_TRUE(numbers.empty());
}

TEST(TomlValue, AListWithOneElementOfAnotherTypeIsNotStored) {
  std::vector<double> numbers{4};
  EXPECT_FALSE(store_text("[1, 'b']", numbers));
  EXPECT_EQ(numbers, std::vector<double>{4});
}

TEST(TomlValue, TextsAndTruthValuesAreNotTakenForEachOther) {
  bool truth = false;
  EXPECT_FALSE(store_text("'true'", truth));
  EXPECT_TRUE(store_text("true", truth));
  EXPECT_TRUE(truth);
  std::string text;
  EXPECT_FALSE(store_text("true", text));
}

}  // namespace
}  // namespace stretto::config
