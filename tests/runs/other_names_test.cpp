#include "runs/other_names.h"

#include <gtest/gtest.h>

namespace stretto::runs {
namespace {

using Entries = std::vector<std::string>;

const NamedShapes kOneDecoder{{"decoder.layers.0.up.weight", {8, 4}},
                              {"decoder.norm.weight", {4}},
                              {"embedding.weight", {20, 4}},
                              {"encoder.norm.weight", {4}}};
const NamedShapes kTwoDecoders{{"decoders.de.layers.0.up.weight", {8, 4}},
                               {"decoders.de.norm.weight", {4}},
                               {"decoders.fr.layers.0.up.weight", {8, 4}},
                               {"decoders.fr.norm.weight", {4}},
                               {"embedding.weight", {20, 4}},
                               {"encoder.norm.weight", {4}}};

TEST(OtherNames, EveryDecoderOfSeveralBeginsAsTheSingleOne) {
  EXPECT_EQ(entries_for_other_names(kTwoDecoders, kOneDecoder),
            (Entries{"embedding.*", "encoder.*", "decoders.de.* = decoder.*",
                     "decoders.fr.* = decoder.*"}));
}

TEST(OtherNames, ASingleDecoderBeginsAsTheFirstThatFits) {
  EXPECT_EQ(entries_for_other_names(kOneDecoder, kTwoDecoders),
            (Entries{"embedding.*", "encoder.*", "decoder.* = decoders.de.*"}));
  NamedShapes wider = kTwoDecoders;
  wider["decoders.de.layers.0.up.weight"] = {16, 4};
  EXPECT_EQ(entries_for_other_names(kOneDecoder, wider),
            (Entries{"embedding.*", "encoder.*", "decoder.* = decoders.fr.*"}));
}

TEST(OtherNames, APartOfOtherTensorsBeginsAnew) {
  NamedShapes model = kTwoDecoders;
  model["decoders.fr.layers.1.up.weight"] = {8, 4};
  EXPECT_EQ(entries_for_other_names(model, kOneDecoder),
            (Entries{"embedding.*", "encoder.*", "decoders.de.* = decoder.*"}));
}

TEST(OtherNames, TheFirstOfTwoEncodersIsFoundTheSameWay) {
  const NamedShapes two{{"decoder.norm.weight", {4}},
                        {"encoders.0.norm.weight", {4}},
                        {"encoders.1.norm.weight", {6}},
                        {"scale", {1}}};
  const NamedShapes one{{"decoder.norm.weight", {4}}, {"encoder.norm.weight", {4}}, {"scale", {1}}};
  EXPECT_EQ(entries_for_other_names(two, one),
            (Entries{"decoder.*", "scale", "encoders.0.* = encoder.*"}));
}

TEST(OtherNames, WhatIsMissingOrHasAnotherShapeIsNoOtherName) {
  EXPECT_TRUE(entries_for_other_names(kOneDecoder, kOneDecoder).empty());
  NamedShapes deeper = kOneDecoder;
  deeper["decoder.layers.1.up.weight"] = {8, 4};
  EXPECT_TRUE(entries_for_other_names(deeper, kOneDecoder).empty());
  EXPECT_TRUE(entries_for_other_names(kOneDecoder, deeper).empty());
  // train.init_only would be refused: the table has other rows.
  NamedShapes other_text = kTwoDecoders;
  other_text["embedding.weight"] = {24, 4};
  EXPECT_TRUE(entries_for_other_names(other_text, kOneDecoder).empty());
}

}  // namespace
}  // namespace stretto::runs
