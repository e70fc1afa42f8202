// Layers that norm each step over few units meet large gradients: noted in every part that has
// them, and not where there are enough units.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

using testing::kSound;
using testing::lint_of;

using NormOverrides = std::vector<std::string>;

constexpr const char* kNormedLanguageModel =
    "[task]\nname = \"language_model\"\n"
    "[data]\ntrain = [\"a.txt\"]\nvalid = [\"b.txt\"]\n"
    "[model]\nname = \"lstm\"\ncell = \"norm_lstm\"\n[train]\nmax_steps = 9000\n";
constexpr const char* kNormedLabels =
    "[task]\nname = \"text_classification\"\n"
    "[data]\ntrain = [\"a.tsv\"]\nvalid = [\"b.tsv\"]\n"
    "[model]\nname = \"lstm\"\ncell = \"norm_lstm\"\n[train]\nmax_steps = 9000\n";
constexpr const char* kTwoNormedEncoders =
    "[[model.encoders]]\nname = \"lstm\"\ncell = \"norm_lstm\"\nhidden_dim = 31\n"
    "bidirectional = false\n"
    "[[model.encoders]]\nname = \"lstm\"\ncell = \"norm_lstm\"\nhidden_dim = 31\n"
    "bidirectional = false\n"
    "[model.decoder]\nname = \"lstm\"\n"
    "[data]\ntrain_src = [\"a\"]\ntrain_src2 = [\"b\"]\ntrain_tgt = [\"c\"]\n"
    "[train]\nmax_steps = 9000\n";
constexpr const char* kTwoNormedDecoders =
    "[[data.heads]]\nhead = \"de\"\ntrain_src = [\"a\"]\ntrain_tgt = [\"b\"]\n"
    "[[data.heads]]\nhead = \"fr\"\ntrain_src = [\"a\"]\ntrain_tgt = [\"c\"]\n"
    "[[model.heads]]\nname = \"de\"\n[[model.heads]]\nname = \"fr\"\n"
    "[model.heads.decoder]\nname = \"lstm\"\ncell = \"norm_lstm\"\nhidden_dim = 8\n"
    "[train]\nmax_steps = 9000\nupdate_freq = 2\n";

/// The findings of the rule.
std::vector<Finding> few_units_found(const NormOverrides& overrides, const char* file) {
  std::vector<Finding> all;
  for (auto& finding : lint_of(overrides, {}, file)) {
    if (finding.code == "LN001") all.push_back(std::move(finding));
  }
  return all;
}

std::vector<std::string> few_units_keys(const NormOverrides& overrides, const char* file) {
  std::vector<std::string> all;
  for (const auto& finding : few_units_found(overrides, file)) all.push_back(finding.key);
  return all;
}

using NormKeys = std::vector<std::string>;

TEST(LintOfLayerNorm, AdvisesWidthAndClipping) {
  const auto narrow = few_units_found({"model.hidden_dim=8"}, kNormedLanguageModel);
  ASSERT_EQ(narrow.size(), 1U);
  EXPECT_EQ(narrow[0].key, "model.hidden_dim");
  EXPECT_TRUE(narrow[0].reason.starts_with("layers norm each step over 8 units, "))
      << narrow[0].reason;
  EXPECT_EQ(narrow[0].fix, "64 units a layer or more, and optim.clip_norm = 1");
  const auto clipped =
      few_units_found({"model.hidden_dim=8", "optim.clip_norm=0.25"}, kNormedLanguageModel);
  ASSERT_EQ(clipped.size(), 1U);
  EXPECT_EQ(clipped[0].fix, "64 units a layer or more");
}

TEST(LintOfLayerNorm, BeginsBelow32Units) {
  EXPECT_EQ(few_units_keys({"model.hidden_dim=31"}, kNormedLanguageModel),
            NormKeys{"model.hidden_dim"});
  EXPECT_EQ(few_units_keys({"model.hidden_dim=32"}, kNormedLanguageModel), NormKeys{});
}

TEST(LintOfLayerNorm, IsSilentForOtherCellsAndKindsOfLayers) {
  for (const char* cell : {"lstm", "gru"}) {
    EXPECT_EQ(few_units_keys({"model.hidden_dim=8", std::string("model.cell=") + cell},
                             kNormedLanguageModel),
              NormKeys{})
        << cell;
  }
  EXPECT_EQ(few_units_keys({"model.name=transformer", "model.d_model=8", "model.num_heads=2"},
                           "[task]\nname = \"language_model\"\n[data]\ntrain = [\"a.txt\"]\n"
                           "[train]\nmax_steps = 9000\n"),
            NormKeys{});
  EXPECT_EQ(few_units_keys({"model.d_model=16"}, kSound), NormKeys{});
}

// The last layer has the width of the table that it is multiplied by.
TEST(LintOfLayerNorm, NamesTheKeyThatGivesTheFewestUnits) {
  EXPECT_EQ(few_units_keys({"model.d_model=16"}, kNormedLanguageModel), NormKeys{"model.d_model"});
  EXPECT_EQ(
      few_units_keys({"model.d_model=16", "model.tie_embeddings=false"}, kNormedLanguageModel),
      NormKeys{});
  EXPECT_EQ(few_units_keys({"model.d_model=16", "model.hidden_dim=8"}, kNormedLanguageModel),
            NormKeys{"model.hidden_dim"});
  EXPECT_EQ(few_units_keys({"model.d_model=16", "model.hidden_dim=0", "model.tie_embeddings=false"},
                           kNormedLanguageModel),
            NormKeys{"model.d_model"});
  EXPECT_EQ(few_units_keys({"model.num_layers=1", "model.hidden_dim=8"}, kNormedLanguageModel),
            NormKeys{})
      << "the only layer has model.d_model";
  EXPECT_EQ(
      few_units_keys({"model.num_layers=1", "model.hidden_dim=8", "model.tie_embeddings=false"},
                     kNormedLanguageModel),
      NormKeys{"model.hidden_dim"});
}

TEST(LintOfLayerNorm, LooksAtAStackThatLabelsAreReadFrom) {
  EXPECT_EQ(few_units_keys({"model.hidden_dim=8"}, kNormedLabels), NormKeys{"model.hidden_dim"});
  EXPECT_EQ(few_units_keys({}, kNormedLabels), NormKeys{});
  EXPECT_EQ(few_units_keys({"model.name=bert"},
                           "[task]\nname = \"text_classification\"\n[data]\ntrain = [\"a.tsv\"]\n"
                           "[train]\nmax_steps = 9000\n"),
            NormKeys{});
}

TEST(LintOfLayerNorm, LooksAtBothSides) {
  const NormOverrides both{"model.encoder.name=lstm", "model.encoder.cell=norm_lstm",
                           "model.decoder.name=lstm", "model.decoder.cell=norm_lstm"};
  const auto with = [&](NormOverrides more) {
    more.insert(more.begin(), both.begin(), both.end());
    return few_units_keys(more, kSound);
  };
  EXPECT_EQ(with({}), NormKeys{});
  EXPECT_EQ(with({"model.encoder.hidden_dim=8"}), NormKeys{"model.encoder.hidden_dim"});
  EXPECT_EQ(with({"model.decoder.hidden_dim=8"}), NormKeys{"model.decoder.hidden_dim"});
  // The directions of a layer are normed apart, and its default gives each of them a half.
  EXPECT_EQ(with({"model.d_model=62", "model.encoder.num_layers=1"}), NormKeys{"model.d_model"});
  EXPECT_EQ(with({"model.d_model=64", "model.encoder.num_layers=1"}), NormKeys{});
}

TEST(LintOfLayerNorm, LooksAtEachOfSeveralEncodersAndDecoders) {
  EXPECT_EQ(few_units_keys({}, kTwoNormedEncoders),
            (NormKeys{"model.encoders.0.hidden_dim", "model.encoders.1.hidden_dim"}));
  EXPECT_EQ(few_units_keys({}, kTwoNormedDecoders), NormKeys{"model.heads.1.decoder.hidden_dim"});
}

}  // namespace
}  // namespace stretto::lint
