#include "experiment/taken_parts.h"

#include <gtest/gtest.h>

namespace stretto::experiment {
namespace {

const std::vector<std::string> kStored{"embedding.weight", "encoder.norm.gain", "decoder.norm.gain",
                                       "decoder.embedding.weight"};

TEST(TakenParts, AreThoseOfTheSameNameWithoutEntries) {
  const TakenParts taken({}, {});
  EXPECT_TRUE(taken.takes("decoders.de.", "decoders.de."));
  EXPECT_TRUE(taken.takes_layers("decoders.de.", "decoders.de."));
  EXPECT_FALSE(taken.takes("decoders.de.", "decoders.fr."));
  EXPECT_FALSE(taken.takes_layers("encoder.", "encoders.0."));
}

TEST(TakenParts, AreThoseWhoseTensorsEntriesName) {
  const TakenParts taken({"encoder.*", "decoders.de.* = decoder.*"}, kStored);
  EXPECT_TRUE(taken.takes_layers("encoder.", "encoder."));
  EXPECT_TRUE(taken.takes_layers("decoders.de.", "decoder."));
  EXPECT_FALSE(taken.takes("decoders.fr.", "decoder."));
  EXPECT_FALSE(taken.takes("decoder.", "decoder."));
  EXPECT_FALSE(taken.takes("embedding.", "embedding."));
  EXPECT_FALSE(TakenParts({"*reverse*"}, kStored).takes("encoder.", "encoder."));
}

TEST(TakenParts, ATableOfTokensIsNoLayer) {
  const TakenParts taken({"decoder.embedding.weight"}, kStored);
  EXPECT_TRUE(taken.takes("decoder.", "decoder."));
  EXPECT_FALSE(taken.takes_layers("decoder.", "decoder."));
}

TEST(TakenParts, TheFirstEntryThatMatchesCounts) {
  const TakenParts taken({"encoder.* = decoder.*", "*", "no = pattern = at all"}, kStored);
  EXPECT_TRUE(taken.takes("encoder.", "decoder."));
  EXPECT_FALSE(taken.takes("encoder.", "encoder."));
  EXPECT_TRUE(taken.takes("decoder.", "decoder."));
}

}  // namespace
}  // namespace stretto::experiment
