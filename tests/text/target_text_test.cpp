#include "text/target_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::text {
namespace {

TEST(TargetText, WithoutALexiconTheTargetIsTheNormalisedText) {
  TargetOptions options;
  const TargetText rules(options);
  EXPECT_EQ(rules.normalised("  It\xE2\x80\x99s  ON "), "it\xE2\x80\x99s on");
  EXPECT_EQ(rules.target("  ON "), "on");
  EXPECT_FALSE(rules.keeps_unknown());
  EXPECT_FALSE(rules.skips_unknown());
}

TEST(TargetText, ALexiconGivesThePhonemesOfEachWord) {
  const stretto::testing::TempDir folder;
  TargetOptions options;
  options.type = "phonemes";
  options.lexicon = folder.write("words", "a AH\nbee B IY\n");
  options.word_boundary = "|";
  std::vector<std::string> unknown;
  const auto note = [&](std::string_view word) { unknown.emplace_back(word); };
  EXPECT_EQ(TargetText(options).target("A bee sea", note), "AH | B IY");
  EXPECT_EQ(unknown, std::vector<std::string>{"sea"});
  EXPECT_EQ(TargetText(options).normalised("A Bee"), "a bee") << "scores compare words";
  options.unknown = "keep";
  EXPECT_EQ(TargetText(options).target("sea bee"), "<unk> | B IY");
}

TEST(TargetText, OptionsThatCannotBeAreRefused) {
  TargetOptions options;
  options.normalise = {"lower", "loud"};
  stretto::testing::failure(ExitCode::kUsage, [&] { TargetText{options}; });
  options.normalise = {};
  options.type = "phonemes";
  options.lexicon = "/nowhere/words";
  stretto::testing::failure(ExitCode::kUsage, [&] { TargetText{options}; });
}

TEST(TargetOptions, ATokenizerIsMadeOfThem) {
  TargetOptions options;
  options.type = "phonemes";
  options.model = "list";
  EXPECT_EQ(options.tokenizer_options().type, "word");
  EXPECT_EQ(options.tokenizer_options().model, "list");
  EXPECT_TRUE(options.tokenizer_options().joint);
}

}  // namespace
}  // namespace stretto::text
