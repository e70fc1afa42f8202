#include <gtest/gtest.h>

#include <map>
#include <set>

#include "families/translation/translation_options.h"
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
    // The engine makes a model, and cannot with this entry.
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

// What was published is no advice: a table shows what AdamW loses in few, large updates, and
// OpenSeq2Seq adds its decay to the gradient, with a constant rate.
std::set<std::string> found_on_purpose(const std::filesystem::path& recipe) {
  static const std::map<std::string, std::set<std::string>> kFound{
      {"squad_bert_base_adamw_10", {"LB011"}},
      {"squad_bert_base_adamw_100", {"LB002", "LB011"}},
      {"wikitext2_openseq2seq", {"LB008"}},
      {"wikitext103_openseq2seq", {"LB002", "LB008"}},
      {"wikitext103_adaptive", {"LB002", "LB008"}},
      {"librispeech_deepspeech2_medium", {"LB008"}},
      {"librispeech_deepspeech2_small", {"LB008"}},
      {"librispeech_deepspeech2_toy", {"LB008"}},
      {"librispeech_las", {"LB008"}},
      {"ljspeech_tacotron2", {"LB008"}},
      {"ljspeech_tacotron2_8_gpus", {"LB008"}},
      {"ljspeech_tacotron2_mixed", {"LB008"}},
      {"ljspeech_tacotron2_nvidia", {"LB008"}},
      {"mailabs_tacotron2_gst", {"LB008"}}};
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

/// A table of so many rows, with the columns of both recipes.
std::string rows(int count) {
  std::string text = "sentence\tsentence1\tsentence2\tlabel\tgold_label\n";
  for (int row = 0; row < count; ++row) {
    const std::string words = "text number " + std::to_string(row);
    text += words + "\t" + words + "\tanother\t" + (row % 2 == 0 ? "yes\tyes" : "no\tno") + "\n";
  }
  return text;
}

/// What an article prints of fine-tuning, as changes of a recipe.
struct Published {
  const char* recipe;
  std::vector<int> batches;
  std::vector<const char*> rates, epochs;
  std::vector<std::string> others;
};

// With data of all sizes, the smallest of GLUE among them (RTE has 2,490 pairs).
TEST(Inspect, FineTuningAsArticlesPrintItRaisesNothing) {
  const stretto::testing::TempDir folder;
  const std::string train = folder.write("train.tsv", rows(2'490));
  const std::string valid = folder.write("valid.tsv", rows(872));
  const std::vector<std::string> small{"data.train=[\"" + train + "\"]",
                                       "data.valid=[\"" + valid + "\"]", "data.test=[]",
                                       "eval.every=40", "train.save_every=40"};
  const std::vector<Published> articles{
      // Devlin et al. 2018, appendix A.3, and section 4.2 for SQuAD
      {"text_classification/sst2_bert_base",
       {16, 32},
       {"5e-5", "3e-5", "2e-5"},
       {"2", "3", "4"},
       small},
      {"question_answering/squad_bert_base", {32}, {"5e-5"}, {"3"}, {"train.max_steps=0"}},
      {"question_answering/squad2_bert_base", {48}, {"5e-5"}, {"2"}, {"train.max_steps=0"}},
      // Liu et al. 2019, appendix C
      {"text_classification/mnli_roberta_base", {16, 32}, {"1e-5", "2e-5", "3e-5"}, {"10"}, small},
      {"question_answering/squad2_bert_base",
       {48},
       {"1.5e-5"},
       {"2"},
       {"train.max_steps=0", "schedule.warmup_ratio=0.06", "optim.beta2=0.98", "optim.epsilon=1e-6",
        "optim.weight_decay=0.01"}},
  };
  size_t looked_at = 0;
  const auto expect_silence = [&](const std::string& recipe, std::vector<std::string> overrides,
                                  const std::string& length) {
    overrides.push_back(length);
    const auto path = std::filesystem::path(STRETTO_SOURCE_DIR) / "configs" / (recipe + ".toml");
    const auto found = inspect(path, overrides);
    for (const auto& problem : found.problems) ADD_FAILURE() << problem.place << problem.what;
    EXPECT_EQ(codes_of(found.findings), std::vector<std::string>{}) << recipe << " " << length;
    ++looked_at;
  };
  for (const auto& article : articles) {
    for (const int batch : article.batches) {
      for (const char* rate : article.rates) {
        auto overrides = article.others;
        overrides.push_back("data.max_samples=" + std::to_string(batch));
        overrides.push_back(std::string("optim.lr=") + rate);
        for (const char* epochs : article.epochs) {
          expect_silence(article.recipe, overrides, std::string("train.max_epochs=") + epochs);
        }
        if (article.others != small) continue;
        overrides.push_back("train.max_epochs=0");
        expect_silence(article.recipe, overrides, "train.max_steps=233");
        expect_silence(article.recipe, overrides, "train.max_steps=500");
      }
    }
  }
  EXPECT_EQ(looked_at, 51U);
}

}  // namespace
}  // namespace stretto::lint
