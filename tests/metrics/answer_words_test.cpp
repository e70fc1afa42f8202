#include "metrics/answer_words.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/failure.h"

namespace stretto::metrics {
namespace {

using Words = std::vector<std::u32string>;

TEST(AnswerWords, LowerCaseWithoutPunctuationArticlesAndWhiteSpace) {
  EXPECT_EQ(answer_words(" The  Denver\tBroncos!\n"), (Words{U"denver", U"broncos"}));
  EXPECT_EQ(answer_words("an apple, a day"), (Words{U"apple", U"day"}));
  EXPECT_EQ(answer_words(""), Words{});
  EXPECT_EQ(answer_words("The."), Words{});
}

TEST(AnswerWords, RemovePunctuationBeforeArticles) {
  EXPECT_EQ(answer_words("t.h.e a-b _the_ it's $1,000.50"), (Words{U"ab", U"its", U"100050"}));
}

TEST(AnswerWords, KeepPunctuationOutsideAscii) {
  EXPECT_EQ(answer_words("“the” – x—y"), (Words{U"“", U"”", U"–", U"x—y"}));
}

TEST(AnswerWords, FindArticlesBetweenCharactersThatAreNotAlphanumeric) {
  // é as one letter continues the word; as e with a combining accent it ends before the accent.
  EXPECT_EQ(answer_words("theé ana anthem"), (Words{U"theé", U"ana", U"anthem"}));
  EXPECT_EQ(answer_words("the\u0301"), (Words{U"\u0301"}));
  EXPECT_EQ(answer_words("€a€ a₿"), (Words{U"€", U"€", U"₿"}));
  EXPECT_EQ(answer_words("a½ a² a३ aⅣ"), (Words{U"a½", U"a²", U"a३", U"aⅳ"}));
}

TEST(AnswerWords, LowerCaseAndSplitAsPythonDoes) {
  EXPECT_EQ(answer_words("ΣΟΦΟΣ İ ẞ"), (Words{U"σοφος", U"i\u0307", U"ß"}));
  EXPECT_EQ(answer_words("x\u00a0y\u3000z\u001cw\u0085v"), (Words{U"x", U"y", U"z", U"w", U"v"}));
  EXPECT_EQ(answer_words("x\u200by"), (Words{U"x\u200by"}));  // not white space in Python
}

TEST(AnswerWords, TakeTextWithoutSpacesForOneWordByDefault) {
  EXPECT_EQ(answer_words("東京都。"), (Words{U"東京都。"}));
}

TEST(AnswerWords, CountHanCharactersAsTheScriptOfMlqaDoes) {
  const auto words = [](std::string_view text) { return answer_words(text, AnswerSplit::kMlqaZh); };
  EXPECT_EQ(words("《東京》the Tower，1958年"), (Words{U"東", U"京", U"the", U"tower1958", U"年"}));
  EXPECT_EQ(words("とうきょう"), (Words{U"とうきょう"}));
  EXPECT_EQ(words("\u9fa5\u9fa6"), (Words{U"\u9fa5", U"\u9fa6"}));
  EXPECT_EQ(words("x\u9fa6y"), (Words{U"x\u9fa6y"}));
}

TEST(AnswerWords, CountKanaTooForJapanese) {
  const auto words = [](std::string_view text) { return answer_words(text, AnswerSplit::kCjk); };
  EXPECT_EQ(words("「東京タワー」は 333m"),
            (Words{U"東", U"京", U"タ", U"ワ", U"ー", U"は", U"333m"}));
  EXPECT_EQ(words("\U00020BB7野家"), (Words{U"\U00020BB7", U"野", U"家"}));
  EXPECT_EQ(words("서울 특별시"), (Words{U"서울", U"특별시"}));
}

TEST(AnswerSplit, HasNames) {
  EXPECT_EQ(answer_split_names(), (std::vector<std::string>{"space", "mlqa-zh", "cjk"}));
  EXPECT_EQ(answer_split_named("cjk"), AnswerSplit::kCjk);
  const Error error = testing::failure(ExitCode::kUsage, [] { answer_split_named("mlqa_zh"); });
  EXPECT_NE(error.advice().find("did you mean 'mlqa-zh'"), std::string::npos) << error.advice();
}

}  // namespace
}  // namespace stretto::metrics
