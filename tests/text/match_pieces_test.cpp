#include <gtest/gtest.h>

#include "tests/text/renumbered_tokenizer.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

using Ids = std::vector<int64_t>;

TEST(MatchPieces, PairsIdsOfTheSamePieceWhereverTheyStand) {
  const auto before = make_vocabulary("a\nb\nc\n", "before");
  const auto now = make_vocabulary("c\nnew\na\n", "now");
  EXPECT_EQ(match_pieces(*now, *before), (Ids{0, 1, 2, 3, 6, -1, 4}));
  EXPECT_EQ(match_pieces(*before, *before), (Ids{0, 1, 2, 3, 4, 5, 6}));
}

TEST(MatchPieces, OfAPieceThatStandsTwiceTheIdThatIsGivenCounts) {
  const auto before = make_vocabulary("a\nb\na 1 #fairseq:overwrite\n", "before");
  const auto now = make_vocabulary("a\n", "now");
  Ids given;
  before->encode("a", given);
  EXPECT_EQ(given, Ids{6});
  EXPECT_EQ(match_pieces(*now, *before).back(), 6);
}

TEST(MatchPieces, SpecialsMatchSpecialsAndNoPiece) {
  // A SentencePiece model may have pieces that look like our specials; ids 0 to 3 are not pieces.
  const auto before = make_vocabulary("<mask>\n", "before"), now = make_vocabulary("x\n", "now");
  EXPECT_EQ(match_pieces(*now, *before), (Ids{0, 1, 2, 3, -1}));
}

TEST(MatchPieces, SpecialsMatchTheirKindUnderOtherIds) {
  const auto before = std::make_shared<stretto::testing::RenumberedTokenizer>(
      make_vocabulary("a\nb\nc\n", "before"));  // c b a </s> <s> <unk> <pad>
  const auto now = make_vocabulary("b\nnew\n", "now");
  EXPECT_EQ(match_pieces(*now, *before), (Ids{6, 5, 4, 3, 1, -1}));
  EXPECT_EQ(match_pieces(*before, *now), (Ids{-1, 4, -1, 3, 2, 1, 0}));
}

}  // namespace
}  // namespace stretto::text
