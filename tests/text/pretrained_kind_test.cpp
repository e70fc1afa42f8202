#include "text/pretrained_kind.h"

#include <gtest/gtest.h>

namespace stretto::text {
namespace {

using Part = SequenceTemplate::Part;
using Slots = std::vector<SequenceTemplate::Slot>;

TokenizerSpec with_pieces(const std::vector<std::string>& pieces) {
  TokenizerSpec spec;
  for (const auto& piece : pieces) spec.vocab.emplace_back(piece, std::ssize(spec.vocab));
  return spec;
}

TEST(PretrainedKind, OfBertHasTwoSegments) {
  auto spec = with_pieces({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"});
  make_bert(spec, /*lowercase=*/true);
  EXPECT_EQ(spec.sequences.single,
            (Slots{{Part::kSpecial, 2, 0}, {Part::kFirst, -1, 0}, {Part::kSpecial, 3, 0}}));
  EXPECT_EQ(spec.sequences.pair, (Slots{{Part::kSpecial, 2, 0},
                                        {Part::kFirst, -1, 0},
                                        {Part::kSpecial, 3, 0},
                                        {Part::kSecond, -1, 1},
                                        {Part::kSpecial, 3, 1}}));
  EXPECT_TRUE(spec.normalizer->lowercase);
  EXPECT_EQ(spec.unk_token, "[UNK]");
}

TEST(PretrainedKind, OfRobertaHasTwoSeparatorsAndOneSegment) {
  auto spec = with_pieces({"<s>", "</s>", "<mask>", "a"});
  make_pretrained(spec, kRobertaKind);
  EXPECT_EQ(spec.sequences.pair, (Slots{{Part::kSpecial, 0, 0},
                                        {Part::kFirst, -1, 0},
                                        {Part::kSpecial, 1, 0},
                                        {Part::kSpecial, 1, 0},
                                        {Part::kSecond, -1, 0},
                                        {Part::kSpecial, 1, 0}}));
  ASSERT_EQ(spec.added.size(), 3U);
  EXPECT_TRUE(spec.added[2].lstrip);
  EXPECT_FALSE(spec.added[0].lstrip);
}

TEST(PretrainedKind, SetsNoTemplateWhoseTokensAreNotThere) {
  auto spec = with_pieces({"[CLS]", "a"});
  make_pretrained(spec, kBertKind);
  EXPECT_EQ(spec.sequences, SequenceTemplate());
  EXPECT_EQ(spec.added.size(), 1U);
}

TEST(PretrainedKind, IsShownAsItsTextsAre) {
  EXPECT_EQ(shown_template(kBertKind), "[CLS] text [SEP]");
  EXPECT_EQ(shown_template(kRobertaKind), "<s>text</s>");
  EXPECT_EQ(tokens_around_text(kRobertaKind), (std::vector<std::string>{"<s>", "</s>"}));
}

}  // namespace
}  // namespace stretto::text
