#include "families/translation/engine/shortlist_file.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "text/tokenizer.h"

namespace stretto::tasks {
namespace {

using Ids = std::vector<int64_t>;

class ShortlistFileTest : public ::testing::Test {
 protected:
  std::shared_ptr<const decoding::Shortlist> open(const std::string& text) {
    decoding::DecodeOptions options;
    options.shortlist = folder_.write("pairs", text);
    options.shortlist_common = 0;
    return open_shortlist(options, tokenizers_);
  }
  std::string refusal(const std::string& text) {
    return testing::failure(ExitCode::kBadData, [&] { open(text); }).what();
  }
  static std::shared_ptr<const text::Tokenizer> words(const std::string& lines) {
    return text::make_vocabulary(lines, "vocab", "none");
  }

  testing::TempDir folder_;
  // Ids from 4 on, behind the four specials.
  text::TokenizerPair tokenizers_{.src = words("haus\nhund\n\xe2\x96\x81maus\n"),
                                  .tgt = words("house\nhome\ndog\n\xe2\x96\x81mouse\n"),
                                  .joint = false,
                                  .assets = {}};
};

TEST_F(ShortlistFileTest, WordsOfBothSidesStandForTheirIds) {
  const auto list = open("haus house 0.6\nhaus\thome\t0.4\n\n hund  dog\n");
  EXPECT_EQ(list->of(Ids{4}, {}), (Ids{4, 5}));
  EXPECT_EQ(list->of(Ids{5, 4}, {}), (Ids{4, 5, 6}));
}

TEST_F(ShortlistFileTest, PiecesThatMarkTheBeginningOfAWordStandForThemselves) {
  const auto list = open("\xe2\x96\x81maus \xe2\x96\x81mouse\nhund dog\n");
  EXPECT_EQ(list->of(Ids{6}, {}), (Ids{7}));
  EXPECT_EQ(list->of(Ids{5}, {}), (Ids{6}));
}

TEST_F(ShortlistFileTest, OneOfAnotherLanguageIsToldOf) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "wort" + std::to_string(i) + "\n";
  tokenizers_.src = words(lines);
  const auto told = [&](const std::string& text) {
    ::testing::internal::CaptureStderr();
    open(text);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(told("wort1 house\nwort2 home\n").find("has words for 2 of 104 source tokens"),
            std::string::npos);
  std::string many;
  for (int i = 0; i < 20; ++i) many += "wort" + std::to_string(i) + " house\n";
  EXPECT_EQ(told(many), "");
}

TEST_F(ShortlistFileTest, OneThatIsGoneIsNamedWithItsKey) {
  decoding::DecodeOptions options;
  options.shortlist = (folder_.path() / "gone").string();
  const Error error =
      testing::failure(ExitCode::kUsage, [&] { open_shortlist(options, tokenizers_); });
  EXPECT_NE(error.message().find("decode.shortlist=FILE"), std::string::npos) << error.message();
}

TEST_F(ShortlistFileTest, WithoutANameThereIsNone) {
  EXPECT_EQ(open_shortlist({}, tokenizers_), nullptr);
}

TEST_F(ShortlistFileTest, RefusesLinesOfAnotherFormAndNamesThem) {
  EXPECT_NE(refusal("haus house\nhaus\n").find("pairs:2: 1 word"), std::string::npos);
  EXPECT_NE(refusal("haus house 0.5 x\n").find("pairs:1: 4 words"), std::string::npos);
  for (const std::string number : {"often", "-1", "nan", "inf", "0.5x"}) {
    EXPECT_NE(refusal("haus house " + number + "\n").find("is no probability"), std::string::npos)
        << number;
  }
  EXPECT_NE(refusal("haus " + std::string(1001, 'x') + "\n").find("pairs:1: a word of 1,001 bytes"),
            std::string::npos)
      << "pieces of two such words make too many pairs";
  EXPECT_NE(refusal("\n\n").find("has no pair of words"), std::string::npos);
}

}  // namespace
}  // namespace stretto::tasks
