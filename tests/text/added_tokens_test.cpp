#include "text/added_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace stretto::text {
namespace {

/// What stands in the text, and the id of its token; -1 = none.
using Parts = std::vector<std::pair<std::string, int64_t>>;

Parts parts_of(const std::vector<AddedToken>& tokens, const std::string& text) {
  std::vector<std::string> patterns;
  for (const AddedToken& token : tokens) patterns.push_back(token.content);
  std::vector<AddedTokens::Part> parts;
  const AddedTokens added(tokens, patterns);  // parts point into it
  added.split(text, parts);
  Parts out;
  for (const auto& part : parts) {
    out.emplace_back(part.range.of(text), part.token == nullptr ? -1 : part.token->id);
  }
  return out;
}

TEST(AddedTokens, TheLongestIsFound) {
  EXPECT_EQ(parts_of({{.content = "<a", .id = 1}, {.content = "<ab>", .id = 2}}, "x<ab><ac"),
            (Parts{{"x", -1}, {"<ab>", 2}, {"<a", 1}, {"c", -1}}));
}

TEST(AddedTokens, TakeWhiteSpaceBesideThem) {
  EXPECT_EQ(parts_of({{.content = "M", .id = 1, .lstrip = true}}, "a \u3000M b"),
            (Parts{{"a", -1}, {" \u3000M", 1}, {" b", -1}}));
  EXPECT_EQ(parts_of({{.content = "M", .id = 1, .rstrip = true}}, "a M  b"),
            (Parts{{"a ", -1}, {"M  ", 1}, {"b", -1}}));
  EXPECT_EQ(parts_of({{.content = "M", .id = 1, .lstrip = true, .rstrip = true}}, "M M"),
            (Parts{{"M ", 1}, {"M", 1}}))
      << "space that the first one took";
}

TEST(AddedTokens, ASingleWordStandsBesideNoLetter) {
  const std::vector<AddedToken> tokens{{.content = "cat", .id = 1, .single_word = true}};
  EXPECT_EQ(parts_of(tokens, "cat,cats"), (Parts{{"cat", 1}, {",cats", -1}}));
  EXPECT_EQ(parts_of(tokens, "écat cat"), (Parts{{"écat ", -1}, {"cat", 1}}));
}

TEST(AddedTokens, TextWithoutThemIsOnePart) {
  EXPECT_EQ(parts_of({{.content = "x", .id = 1}}, "abc"), (Parts{{"abc", -1}}));
  EXPECT_EQ(parts_of({{.content = "x", .id = 1}}, ""), Parts{});
}

}  // namespace
}  // namespace stretto::text
