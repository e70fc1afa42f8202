// Parts of a translation model that begin with the layers of a language model.
#include "families/translation/causal_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/problem.h"
#include "experiment/load_experiment.h"
#include "experiment/other_model.h"
#include "experiment/task_rules.h"
#include "families/language_model/language_model_options.h"
#include "families/translation/translation_options.h"
#include "models/causal_options.h"
#include "models/seq2seq_options.h"
#include "store/safetensors.h"
#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

using Lines = std::vector<std::string>;

const Lines kStoredOfStack{"decoder.embedding.weight", "decoder.layers.0.self_attention.qkv.weight",
                           "decoder.layers.0.ffn.up.weight"};

models::CausalTransformerOptions small_causal_stack() {
  models::CausalTransformerOptions options;
  options.preset = "none";
  options.num_layers = 3;
  options.d_model = 24;
  options.num_heads = 3;
  options.activation = "silu";
  options.norm_layer = "rms_norm";
  options.norm_epsilon = 1e-6;
  options.positions = "rotary";
  return options;
}

Experiment of_language_model(const models::CausalModelOptions& model) {
  LanguageModelOptions options;
  options.model = model;
  options.tokenizer.vocab_multiple = 24;
  Experiment experiment;
  experiment.task = options;
  return experiment;
}

Experiment translation_taking(const Lines& entries) {
  Experiment experiment;
  experiment.train.init_only = entries;
  auto& model = translation_of(experiment).model;
  model.d_model = 24;
  model.norm = "pre";
  model.norm_layer = "rms_norm";
  model.activation = "silu";
  model.positions = "rotary";
  model.embedding_scale = "none";
  model.encoder = models::StackOptions{.num_layers = 3, .num_heads = 3, .ffn_dim = 96};
  model.decoder = models::StackOptions{.num_layers = 3, .num_heads = 3, .ffn_dim = 96};
  return experiment;
}

Lines differences_of_parts(const Experiment& theirs, const Experiment& own) {
  Lines lines;
  for (const auto& found : find_task_rules(own)->hidden_differences(theirs, own, kStoredOfStack)) {
    lines.push_back(found.key + ": " + found.theirs + ", " + found.own);
  }
  return lines;
}

TEST(CausalParts, LayersOfOneFormDifferInNothing) {
  const auto theirs = of_language_model(small_causal_stack());
  EXPECT_EQ(differences_of_parts(theirs, translation_taking({"decoder.*"})), Lines{});
  EXPECT_EQ(
      differences_of_parts(theirs, translation_taking({"decoder.*", "encoder.* = decoder.*"})),
      Lines{});
}

TEST(CausalParts, WhatShapesHideIsTold) {
  auto stack = small_causal_stack();
  stack.num_heads = 6;
  stack.activation = "relu_squared";
  stack.norm = "res_post";
  stack.qk_norm = true;
  stack.sliding_window = 8;
  stack.attention_softcap = 2;
  stack.rope.base = 500;
  stack.norm_epsilon = 1e-5;
  stack.embedding_scale = "sqrt";
  const auto theirs = of_language_model(stack);
  EXPECT_EQ(differences_of_parts(theirs, translation_taking({"decoder.*"})),
            (Lines{"model.embedding_scale: \"sqrt\", \"none\"", "model.decoder.num_heads: 6, 3",
                   "model.norm: \"res_post\", \"pre\"",
                   "model.activation: \"relu_squared\", \"silu\"", "model.qk_norm: true, false",
                   "model.sliding_window: 8, 0", "model.attention_softcap: 2.0, 0.0",
                   "model.rope.base: 500.0, 10000.0", "model.norm_epsilon: 1e-5, 1e-6"}));
  // If the table alone is taken, only its factor is compared.
  EXPECT_EQ(differences_of_parts(theirs, translation_taking({"decoder.embedding.weight"})),
            Lines{"model.embedding_scale: \"sqrt\", \"none\""});
  EXPECT_EQ(
      differences_of_parts(theirs, translation_taking({"encoder.layers.* = decoder.layers.*"}))
          .at(1),
      "model.encoder.num_heads: 6, 3");
}

TEST(CausalParts, AllOfAnotherTaskIsNoModel) {
  const auto theirs = of_language_model(small_causal_stack());
  EXPECT_EQ(differences_of_parts(theirs, translation_taking({})),
            Lines{"task.name: \"language_model\", \"translation\""});
}

// Recurrent layers.

models::LstmDecoderOptions decoder_of_layers() {
  models::LstmDecoderOptions decoder;
  decoder.num_layers = 3;  // as models::CausalLstmOptions
  decoder.residual_from = 3;
  decoder.context_to = "first";
  return decoder;
}

TEST(CausalParts, RecurrentLayersOfOneFormDifferInNothing) {
  const auto theirs = of_language_model(models::CausalLstmModelOptions());
  auto own = translation_taking({"decoder.*", "encoder.* = decoder.*"});
  auto& model = translation_of(own).model;
  model.decoder = decoder_of_layers();
  model.encoder = models::LstmEncoderOptions{.num_layers = 3, .residual_from = 3};
  EXPECT_EQ(differences_of_parts(theirs, own), Lines{});
}

TEST(CausalParts, WhatRecurrentLayersReadAndAddIsTold) {
  auto stack = models::CausalLstmModelOptions();
  stack.cell = "norm_lstm";
  const auto theirs = of_language_model(stack);
  auto own = translation_taking({"decoder.*"});
  auto& model = translation_of(own).model;
  auto decoder = decoder_of_layers();
  decoder.residual_from = 1;
  decoder.context_to = "gnmt";
  model.decoder = decoder;
  model.embedding_scale = "sqrt";
  EXPECT_EQ(
      differences_of_parts(theirs, own),
      (Lines{"model.embedding_scale: \"none\", \"sqrt\"",
             "model.decoder.cell: \"norm_lstm\", \"lstm\"", "model.decoder.residual_from: 3, 1",
             "model.decoder.context_to: \"first\", \"gnmt\""}));
}

TEST(CausalParts, APartOfAnotherKindIsTold) {
  const auto recurrent = of_language_model(models::CausalLstmModelOptions());
  EXPECT_EQ(differences_of_parts(recurrent, translation_taking({"decoder.*"})),
            Lines{"model.decoder.name: \"lstm\", \"transformer\""});
  auto own = translation_taking({"decoder.*"});
  translation_of(own).model.decoder = decoder_of_layers();
  EXPECT_EQ(differences_of_parts(of_language_model(small_causal_stack()), own),
            Lines{"model.decoder.name: \"transformer\", \"lstm\""});
}

/// The run of a language model, and translation models that begin with its layers.
class PartValues : public ::testing::Test {
 protected:
  PartValues(const std::string& model, const Lines& stored) {
    for (const char* name : {"train.src", "train.tgt", "train.txt"}) dir_.write(name, "x\n");
    const auto loaded = load_experiment(
        dir_.write("lm.toml",
                   "[task]\nname = \"language_model\"\n[data]\ntrain = [\"train.txt\"]\n"
                   "[tokenizer]\nvocab_multiple = 24\n[train]\nmax_steps = 9000\n[model]\n" +
                       model),
        {});
    dir_.write("lm/config.toml", loaded.resolved_toml);
    const std::string bytes(4, '\0');
    std::vector<store::TensorView> tensors;
    for (const auto& name : stored) tensors.push_back({name, store::DType::kF32, {1}, bytes});
    dir_.write("lm/checkpoints/step_00000003/manifest.json", "{}");
    store::write_safetensors(dir_ / "lm/checkpoints/step_00000003/model.safetensors", tensors, {});
  }

  models::Seq2SeqOptions model(const std::string& entries, const std::string& more = "") const {
    const auto loaded = load_experiment(
        dir_.write("own.toml",
                   "[data]\ntrain_src = [\"train.src\"]\ntrain_tgt = [\"train.tgt\"]\n"
                   "max_src_tokens = 8\nmax_tgt_tokens = 8\n[train]\nmax_steps = 9000\n" +
                       more),
        {"train.init_from=" + (dir_ / "lm").string(), "train.init_only=" + entries});
    EXPECT_EQ(translation_of(loaded.options).tokenizer.vocab_multiple, 24);
    return translation_of(loaded.options).model;
  }

  testing::TempDir dir_;
};

class CausalPartValues : public PartValues {
 protected:
  CausalPartValues()
      : PartValues(
            "preset = \"none\"\nnum_layers = 3\nd_model = 24\nnum_heads = 3\n"
            "activation = \"relu_squared\"\npositions = \"learned\"\nmax_positions = 256\n",
            kStoredOfStack) {}
};

class RecurrentPartValues : public PartValues {
 protected:
  RecurrentPartValues()
      : PartValues(
            "name = \"lstm\"\ncell = \"gru\"\nnum_layers = 2\nd_model = 24\nhidden_dim = 24\n"
            "tie_embeddings = false\n",
            {"decoder.embedding.weight", "decoder.layers.0.input.weight"}) {}
};

TEST_F(CausalPartValues, APartHasTheSizesOfItsLayers) {
  const auto found = model("[\"decoder.*\"]");
  const auto& decoder = found.decoder.as<models::StackOptions>();
  EXPECT_EQ(decoder.num_layers, 3);
  EXPECT_EQ(decoder.num_heads, 3);
  EXPECT_EQ(decoder.ffn_dim, 96);
  EXPECT_EQ(found.encoder.as<models::StackOptions>().num_layers, 6) << "nothing is taken there";
  EXPECT_EQ(found.d_model, 24);
  EXPECT_EQ(found.norm, "pre");
  EXPECT_EQ(found.positions, "learned");
  EXPECT_EQ(found.max_positions, 256);
  EXPECT_EQ(found.embedding_scale, "none");
  EXPECT_EQ(found.activation, "relu") << "no value of translation's";
}

TEST_F(CausalPartValues, AnEncoderMayTakeLayersToo) {
  const auto found = model("[\"encoder.* = decoder.*\", \"decoder.*\"]",
                           "[model]\nencoder = { num_layers = 2 }\n");
  EXPECT_EQ(found.encoder.as<models::StackOptions>().num_layers, 2) << "it is given";
  EXPECT_EQ(found.encoder.as<models::StackOptions>().num_heads, 3);
  EXPECT_EQ(found.decoder.as<models::StackOptions>().num_layers, 3);
}

TEST_F(CausalPartValues, APartOfAnotherKindKeepsItsKeys) {
  const auto found = model("[\"decoder.*\"]", "[model.decoder]\nname = \"lstm\"\n");
  EXPECT_FALSE(found.decoder.is<models::StackOptions>());
}

TEST_F(RecurrentPartValues, ADecoderHasTheSizesOfItsLayersAndAttendsInTheFirst) {
  const auto found = model("[\"decoder.*\"]");
  const auto& decoder = found.decoder.as<models::LstmDecoderOptions>();
  EXPECT_EQ(decoder.cell, "gru");
  EXPECT_EQ(decoder.num_layers, 2);
  EXPECT_EQ(decoder.hidden_dim, 24);
  EXPECT_EQ(decoder.residual_from, 2);
  EXPECT_EQ(decoder.context_to, "first");
  EXPECT_EQ(found.d_model, 24);
  EXPECT_TRUE(found.encoder.is<models::StackOptions>()) << "nothing is taken there";
}

TEST_F(RecurrentPartValues, AnEncoderReadsInOneDirection) {
  const auto found = model("[\"encoder.* = decoder.*\"]");
  const auto& encoder = found.encoder.as<models::LstmEncoderOptions>();
  EXPECT_EQ(encoder.hidden_dim, 24);
  EXPECT_EQ(encoder.num_layers, 2);
  EXPECT_FALSE(encoder.bidirectional);
  EXPECT_TRUE(found.decoder.is<models::StackOptions>());
}

TEST_F(RecurrentPartValues, WhatIsGivenStays) {
  const auto found =
      model("[\"decoder.*\"]", "[model.decoder]\nname = \"lstm\"\ncontext_to = \"gnmt\"\n");
  const auto& decoder = found.decoder.as<models::LstmDecoderOptions>();
  EXPECT_EQ(decoder.context_to, "gnmt");
  EXPECT_EQ(decoder.hidden_dim, 24);
  EXPECT_TRUE(model("[\"decoder.*\"]", "[model.decoder]\nname = \"transformer\"\n")
                  .decoder.is<models::StackOptions>());
}

}  // namespace
}  // namespace stretto::experiment
