// Recipes fit the models of others that they begin with.
#include <gtest/gtest.h>

#include "config/load.h"
#include "experiment/experiment_schema.h"
#include "experiment/task_rules.h"
#include "families/text/encoder_sections.h"
#include "families/text_classification/text_classification_options.h"
#include "tests/families/text/folders/described.h"

namespace stretto::interchange {
namespace {

using experiment::Experiment;
using stretto::testing::described_by;

Experiment recipe(const std::string& name) {
  Experiment options, fallback;
  std::vector<config::Problem> problems;
  config::load_file(std::filesystem::path(STRETTO_SOURCE_DIR) / "configs" / (name + ".toml"), {},
                    experiment_schema(options), experiment_schema(fallback), problems);
  for (const auto& problem : problems) ADD_FAILURE() << name << ": " << problem.what;
  return options;
}

/// The tables of an encoder beside its layers, as names and rows, and what their shapes hide.
void expect_that_weights_fit(const Experiment& theirs, const Experiment& own) {
  const auto &before = *experiment::encoder_sections(theirs).model,
             &now = *experiment::encoder_sections(own).model;
  EXPECT_EQ(before.num_segments, now.num_segments);
  EXPECT_EQ(before.max_positions, now.max_positions);
  const auto there = models::sizes_of(before), here = models::sizes_of(now);
  EXPECT_EQ(there.num_layers, here.num_layers);
  EXPECT_EQ(there.d_model, here.d_model);
  EXPECT_EQ(there.ffn_dim, here.ffn_dim);
  for (const auto& found : find_task_rules(own)->hidden_differences(theirs, own, {})) {
    ADD_FAILURE() << found.key << ": " << found.theirs << " there, " << found.own << " here";
  }
}

TEST(Recipes, OfMnliFitRobertaBaseAndTheRecipeThatPretrainsIt) {
  const auto roberta = described_by(R"({
    "model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "hidden_size": 768,
    "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
    "max_position_embeddings": 514, "type_vocab_size": 1, "vocab_size": 50265, "pad_token_id": 1,
    "layer_norm_eps": 1e-05, "hidden_act": "gelu"})");
  auto own = recipe("text_classification/mnli_roberta_base");
  expect_that_weights_fit(roberta, own);
  // As the recipe says of runs of configs/masked_lm.
  auto& model =
      own.task.as<experiment::TextClassificationOptions>().model.as<models::BertOptions>();
  model.num_segments = 0;
  model.max_positions = 128;
  expect_that_weights_fit(recipe("masked_lm/roberta_12x768"), own);
  EXPECT_LE(experiment::text_sections(own).max_text_tokens, 128);
}

TEST(Recipes, OfBertBaseFitTheModelThatTheyName) {
  const auto bert = described_by(R"({
    "model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 768,
    "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
    "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522, "pad_token_id": 0,
    "layer_norm_eps": 1e-12, "hidden_act": "gelu"})");
  for (const char* name :
       {"text_classification/sst2_bert_base", "question_answering/squad_bert_base",
        "question_answering/squad2_bert_base"}) {
    expect_that_weights_fit(bert, recipe(name));
  }
}

}  // namespace
}  // namespace stretto::interchange
