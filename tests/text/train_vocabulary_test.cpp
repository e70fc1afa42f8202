#include "text/train_vocabulary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/text/special_ids.h"
#include "text/tokenizer.h"

namespace stretto::text {
namespace {

TEST(TrainVocabulary, WordsStandFromFrequentToRare) {
  EXPECT_EQ(train_vocabulary({"b a  c\tb", " b a\n"}, 100), "b 3\na 2\nc 1\n");
  EXPECT_EQ(train_vocabulary({"b a c"}, 2), "a 1\nb 1\n") << "of equal ones by their bytes";
}

TEST(TrainVocabulary, SpecialTokensOfTheTextAreLeftOut) {
  EXPECT_EQ(train_vocabulary({"a <unk> </s> <unk> <s> <pad>"}, 100), "a 1\n");
}

TEST(TrainVocabulary, IsAFileOfAVocabularyWhateverTheWords) {
  const std::vector<std::string> lines{"5 -3.25 a 1e-05 #fairseq:overwrite é @@ a@@"};
  const auto vocabulary = make_vocabulary(train_vocabulary(lines, 100), "words", "none");
  EXPECT_EQ(vocabulary->size(), 4 + 8);
  std::vector<int64_t> ids;
  vocabulary->encode(lines[0], ids);
  EXPECT_EQ(vocabulary->decode(ids), lines[0]);
}

TEST(TrainVocabulary, AByteOrderMarkBeginsNoWord) {
  EXPECT_EQ(train_vocabulary({"\xEF\xBB\xBF \xEF\xBB\xBF", "\xEF\xBB\xBFthe a"}, 100), "a 1\n");
}

TEST(TrainVocabulary, WithoutAWordThereIsNone) {
  stretto::testing::failure(ExitCode::kBadData, [] { train_vocabulary({}, 10); });
  stretto::testing::failure(ExitCode::kBadData, [] { train_vocabulary({"\xFF", "<unk>"}, 10); });
}

}  // namespace
}  // namespace stretto::text
