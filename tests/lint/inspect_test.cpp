#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/base/temp_dir.h"
#include "tests/experiment/recipes.h"
#include "tests/lint/sound_config.h"

namespace stretto::lint {
namespace {

using testing::codes_of;
using testing::kSound;
using testing::kTensors;

TEST(Inspect, LintsAConfigurationWhoseDataIsMissing) {
  const stretto::testing::TempDir folder;
  const auto path = folder.write("my.toml", std::string(kSound) + "[optim]\nlr = 0.5\n");
  const auto found = inspect(path, {});
  EXPECT_TRUE(found.problems.empty());
  EXPECT_EQ(found.missing.size(), 4u);
  ASSERT_EQ(codes_of(found.findings), std::vector<std::string>{"SC004"});
  EXPECT_EQ(found.findings[0].place, std::string(path) + ":9:1");
}

TEST(Inspect, TellsTheLinterHowManyEntriesTheVocabularyFileHas) {
  const stretto::testing::TempDir folder;
  folder.write("few.txt", "a\nb\nc\nd\ne\nf\n");
  const auto path = folder.write("my.toml", std::string(kSound) +
                                                "[tokenizer]\ntype = \"vocab\"\nsrc_vocab = "
                                                "\"few.txt\"\n[loss]\nlabel_smoothing = 0.2\n");
  EXPECT_EQ(codes_of(inspect(path, {}).findings), std::vector<std::string>{"SC005"});
}

TEST(Inspect, DoesNotJudgeWhatIsBroken) {
  const stretto::testing::TempDir folder;
  const auto path = folder.write("my.toml", std::string(kSound) + "[optim]\nlr = 0.5\n");
  const auto found = inspect(path, {"model.d_model=7"});
  EXPECT_FALSE(found.problems.empty());
  EXPECT_TRUE(found.findings.empty());
}

TEST(Inspect, AsksForTensorsWhereSomeAreNamedAndTheModelIsSound) {
  const stretto::testing::TempDir folder;
  const auto path = folder.write("my.toml", kSound);
  int asked = 0;
  const experiment::TensorLister lister = [&](const experiment::Experiment&) {
    ++asked;
    return kTensors;
  };
  EXPECT_TRUE(inspect(path, {}, 0, lister).problems.empty());
  const std::string slip = "optim.groups=[\"encodr.* lr_scale=0.5\"]";
  const auto unsound = inspect(path, {slip, "model.d_model=7"}, 0, lister);
  EXPECT_FALSE(unsound.problems.empty());
  EXPECT_EQ(unsound.unmatched, std::vector<std::string>{"optim.groups"});
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(inspect(path, {slip, "train.max_steps=-1"}, 0, lister).problems.size(), 2u)
      << "the pattern is told of beside the other mistake";
  EXPECT_FALSE(inspect(path, {"optim.groups=[\"* lr_scal=0.5\"]"}, 0, lister).problems.empty());
  EXPECT_EQ(asked, 2);
  asked = 0;

  auto found = inspect(path, {slip}, 0, lister);
  EXPECT_EQ(asked, 1);
  ASSERT_EQ(found.problems.size(), 1u);
  EXPECT_EQ(found.problems[0].what, "`encodr.*` matches no parameter");
  EXPECT_TRUE(found.config_hash.empty());
  EXPECT_TRUE(found.findings.empty());

  found = inspect(path, {"optim.name=adamw", "optim.weight_decay=0.1", "optim.no_decay=none"}, 0,
                  lister);
  EXPECT_EQ(codes_of(found.findings), std::vector<std::string>{"LB009"});
}

TEST(Inspect, NamesEveryKeyWhosePatternsWaitForTheModel) {
  const stretto::testing::TempDir folder;
  const auto path = folder.write("my.toml", kSound);
  const experiment::TensorLister lister = [](const experiment::Experiment&) { return kTensors; };
  std::vector<std::string> overrides{
      "model.d_model=7", "train.freeze=[\"encodr.*\"]", "optim.no_decay=[\"*.bais\"]",
      "model.init=[\"*.wieght zeros\"]", "train.unfreeze=[\"encodr.* 5\"]"};
  const std::vector<std::string> named{"optim.no_decay", "model.init", "train.freeze",
                                       "train.unfreeze"};
  EXPECT_EQ(inspect(path, overrides, 0, lister).unmatched, named);
  overrides.erase(overrides.begin());
  EXPECT_EQ(inspect(path, overrides, 0, lister).unmatched, std::vector<std::string>{});
}

TEST(Inspect, ASlipInFirstWeightsHidesNoOtherPattern) {
  const stretto::testing::TempDir folder;
  const auto path = folder.write("my.toml", kSound);
  int asked = 0;
  const experiment::TensorLister lister = [&](const experiment::Experiment& e) {
    ++asked;
    // The engine makes a model, and of this entry it cannot.
    EXPECT_TRUE(translation_of(e).model.init.empty());
    return kTensors;
  };
  const auto keys = [&](const std::vector<std::string>& overrides) {
    const auto found = inspect(path, overrides, 0, lister);
    EXPECT_TRUE(found.unmatched.empty());
    std::vector<std::string> wrong;
    for (const auto& problem : found.problems) wrong.push_back(problem.key);
    return wrong;
  };
  using Keys = std::vector<std::string>;
  const std::string slip = "train.freeze=[\"encodr.*\"]";
  for (const char* entry : {"* zerso", "* normal std=-1"}) {
    const std::string init = std::string("model.init=[\"") + entry + "\"]";
    EXPECT_EQ(keys({init, slip}), (Keys{"model.init", "train.freeze"}));
    EXPECT_EQ(keys({init, "model.lora.rank=2", "model.lora.maps=[\"encodr.*\"]"}),
              (Keys{"model.init", "model.lora.maps"}))
        << "the engine is asked once more, for names near it";
    asked = 0;
    EXPECT_EQ(keys({init}), Keys{"model.init"});
    EXPECT_EQ(asked, 0) << "there is no other pattern";
  }
}

TEST(Inspect, PassesPatternsWhereNobodyKnowsTheNames) {
  const stretto::testing::TempDir folder;
  const auto path = folder.write("my.toml", kSound);
  const std::vector<std::string> overrides{"optim.groups=[\"encodr.* lr_scale=0.5\"]"};
  const auto nothing = [](const experiment::Experiment&) {
    return std::vector<optim::TensorName>{};
  };
  for (const auto& lister : std::vector<experiment::TensorLister>{{}, nothing}) {
    const auto found = inspect(path, overrides, 0, lister);
    EXPECT_TRUE(found.problems.empty());
    EXPECT_FALSE(found.config_hash.empty());
  }
}

// What a published table has that is no advice: it shows what AdamW loses in few, large updates.
std::set<std::string> found_on_purpose(const std::filesystem::path& recipe) {
  static const std::map<std::string, std::set<std::string>> kFound{
      {"squad_bert_base_adamw_10", {"LB011", "LB012"}},
      {"squad_bert_base_adamw_100", {"LB002", "LB011", "LB012"}},
      {"squad_bert_base_radam_10", {"LB012"}},
      {"squad_bert_base_radam_100", {"LB012"}},
      {"squad_bert_base_8_gpus", {"LB012"}},
      {"squad_bert_base_16_gpus_radam_2", {"LB012"}}};
  const auto found = kFound.find(recipe.stem().string());
  return found == kFound.end() ? std::set<std::string>{} : found->second;
}

TEST(Inspect, TheShippedRecipesRaiseNothing) {
  const auto recipes = stretto::testing::shipped_recipes(STRETTO_SOURCE_DIR);
  EXPECT_GE(recipes.size(), 5u);
  for (const auto& path : recipes) {
    const auto found = inspect(path, {});
    for (const auto& problem : found.problems) ADD_FAILURE() << problem.place << problem.what;
    std::set<std::string> codes;
    for (const auto& finding : found.findings) codes.insert(finding.code);
    EXPECT_EQ(codes, found_on_purpose(path)) << path;
  }
}

}  // namespace
}  // namespace stretto::lint
