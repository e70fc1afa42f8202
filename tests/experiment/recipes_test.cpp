#include "tests/experiment/recipes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "experiment/rules.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

namespace fs = std::filesystem;

Experiment recipe(const std::string& name) {
  Experiment options, fallback;
  std::vector<config::Problem> problems;
  config::load_file(fs::path(STRETTO_SOURCE_DIR) / "configs" / "translation" / (name + ".toml"), {},
                    experiment_schema(options), experiment_schema(fallback), problems);
  for (const auto& problem : problems) ADD_FAILURE() << name << ": " << problem.what;
  return options;
}

TEST(Recipes, AreFoundWithoutTheirParts) {
  for (const auto& path : stretto::testing::shipped_recipes(STRETTO_SOURCE_DIR)) {
    EXPECT_NE(path.parent_path().filename(), "models") << path;
    EXPECT_NE(path.parent_path().filename(), "parts") << path;
  }
}

/// Values of a recipe's keys, but for those of the model and what may differ between families.
std::map<std::string, std::string> shared_values(const std::string& name) {
  Experiment options = recipe(name);
  std::map<std::string, std::string> values;
  for (const auto& key : experiment_schema(options).keys) {
    if (key.path.starts_with("model.") || key.path == "run.name") continue;
    if (key.path == "optim.clip_norm") continue;  // ConvS2S has its paper's
    values[key.path] = config::value_text(key.value);
  }
  return values;
}

TEST(Recipes, OfFamiliesOnMulti30kDifferInTheirModelsAlone) {
  const auto expected = shared_values("multi30k_transformer");
  for (const char* name : {"multi30k_gnmt", "multi30k_convs2s", "multi30k_lightconv",
                           "multi30k_transformer_lstm", "multi30k_lstm_transformer"}) {
    EXPECT_EQ(shared_values(name), expected) << name;
  }
  const Experiment long_run = recipe("multi30k_en_de");
  EXPECT_EQ(translation_of(long_run).data.train_src,
            translation_of(recipe("multi30k_gnmt")).data.train_src);
  EXPECT_EQ(translation_of(long_run).data.max_tokens,
            translation_of(recipe("multi30k_gnmt")).data.max_tokens);
  EXPECT_EQ(translation_of(long_run).tokenizer.vocab_size,
            translation_of(recipe("multi30k_gnmt")).tokenizer.vocab_size);
}

struct Pairing {
  const char *recipe, *encoder, *decoder;
};

TEST(Recipes, ChooseTheFamiliesThatTheirNamesPromise) {
  for (const Pairing& wanted :
       {Pairing{"multi30k_transformer", "transformer", "transformer"},
        Pairing{"multi30k_gnmt", "lstm", "lstm"}, Pairing{"multi30k_convs2s", "conv", "conv"},
        Pairing{"multi30k_lightconv", "light_conv", "light_conv"},
        Pairing{"multi30k_transformer_lstm", "transformer", "lstm"},
        Pairing{"multi30k_lstm_transformer", "lstm", "transformer"},
        Pairing{"wmt16_en_de_gnmt_small", "lstm", "lstm"},
        Pairing{"wmt16_en_de_gnmt", "lstm", "lstm"}, Pairing{"wmt16_en_de_gnmt_v2", "lstm", "lstm"},
        Pairing{"wmt16_en_de_gnmt_weight_tied", "lstm", "lstm"},
        Pairing{"wmt14_en_de_convs2s", "conv", "conv"},
        Pairing{"wmt16_en_de_lightconv", "light_conv", "light_conv"},
        Pairing{"wmt16_en_de_dynamicconv", "dynamic_conv", "dynamic_conv"},
        Pairing{"wmt16_en_de_deep_shallow", "transformer", "transformer"},
        Pairing{"wmt16_en_de_student", "transformer", "transformer"}}) {
    const Experiment options = recipe(wanted.recipe);
    EXPECT_EQ(translation_of(options).model.encoder.name(), wanted.encoder) << wanted.recipe;
    EXPECT_EQ(translation_of(options).model.decoder.name(), wanted.decoder) << wanted.recipe;
  }
}

TEST(Recipes, OfGnmtDifferInWhoReadsWhatWasAttendedTo) {
  const auto context_of = [](const char* name) {
    return translation_of(recipe(name)).model.decoder.as<models::LstmDecoderOptions>().context_to;
  };
  EXPECT_EQ(context_of("wmt16_en_de_gnmt"), "gnmt");
  EXPECT_EQ(context_of("wmt16_en_de_gnmt_v2"), "gnmt_v2");
  EXPECT_EQ(context_of("wmt16_en_de_gnmt_weight_tied"), "gnmt_v2");
  EXPECT_EQ(context_of("wmt16_en_de_gnmt_small"), "gnmt_v2");
}

TEST(Recipes, OfGnmtAndConvs2sStartAsTheirSourcesDo) {
  using Rules = std::vector<std::string>;
  const std::map<std::string, Rules> rules{
      {"multi30k_gnmt", {}},
      {"multi30k_convs2s", {}},
      {"wmt14_en_de_convs2s", {}},
      {"wmt16_en_de_gnmt", {"output.weight uniform a=0.1"}},
      {"wmt16_en_de_gnmt_v2", {"output.weight uniform a=0.1"}},
      {"wmt16_en_de_gnmt_weight_tied", {}},  // the projection is the decoder's table
      {"wmt16_en_de_gnmt_small", {"output.weight xavier_uniform"}}};
  for (const auto& [name, init] : rules) {
    const Experiment options = recipe(name);
    const auto& model = translation_of(options).model;
    EXPECT_EQ(model.embedding_scale, "none") << name;
    EXPECT_EQ(model.init, init) << name;
    EXPECT_EQ(model.init.empty(), model.tie_embeddings != "none") << name;
  }
}

}  // namespace
}  // namespace stretto::experiment
