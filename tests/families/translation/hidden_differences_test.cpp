// What `train.init_from` compares beside the shapes of tensors (TaskRules::hidden_differences).
#include <gtest/gtest.h>

#include "experiment/task_rules.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/question_answering/question_answering_options.h"
#include "families/text_classification/text_classification_options.h"
#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

using Lines = std::vector<std::string>;

template <class Options>
Experiment of_text(const models::BertOptions& model = {}) {
  Options options;
  options.model = model;
  Experiment experiment;
  experiment.task = options;
  return experiment;
}

/// Lines name the key there too where it is another. @param stored  tensors of the other run
Lines differences(const Experiment& theirs, const Experiment& own, const Lines& stored = {}) {
  Lines lines;
  for (const auto& found : find_task_rules(own)->hidden_differences(theirs, own, stored)) {
    const bool renamed = found.key_there != found.key;
    lines.push_back(found.key + (renamed ? " = " + found.key_there : "") + ": " + found.theirs +
                    ", " + found.own);
  }
  return lines;
}

const models::BertOptions kBase{
    .preset = "none", .num_layers = 12, .d_model = 768, .num_heads = 12, .ffn_dim = 3072};

TEST(HiddenDifferences, SizesCountAndNotTheKeyThatGivesThem) {
  EXPECT_EQ(differences(of_text<MaskedLmOptions>(kBase), of_text<QuestionAnsweringOptions>()),
            Lines{});
  auto model = kBase;
  model.num_heads = 8;
  model.activation = "gelu_tanh";
  model.norm_epsilon = 1e-5;
  model.positions = "rotary";
  model.dropout = 0.3;  // of training alone
  EXPECT_EQ(differences(of_text<MaskedLmOptions>(model), of_text<QuestionAnsweringOptions>()),
            (Lines{"model.num_heads: 8, 12", "model.activation: \"gelu_tanh\", \"gelu\"",
                   "model.norm_epsilon: 1e-5, 1e-12", "model.positions: \"rotary\", \"learned\""}));
}

TEST(HiddenDifferences, ActivationsOfAdaptersCountWhereBothHaveThem) {
  const nn::AdapterOptions off{.activation = "relu"}, gelu{.dim = 8},
      relu{.dim = 8, .activation = "relu"};
  const auto of_labels = [](const nn::AdapterOptions& adapter) {
    auto model = kBase;
    model.adapter = adapter;
    return of_text<TextClassificationOptions>(model);
  };
  const auto of_translation = [](const nn::AdapterOptions& adapter) {
    Experiment experiment;
    translation_of(experiment).model.adapter = adapter;
    return experiment;
  };
  const Lines differs{"model.adapter.activation: \"relu\", \"gelu\""};
  EXPECT_EQ(differences(of_labels(relu), of_labels(gelu)), differs);
  EXPECT_EQ(differences(of_labels(off), of_labels(gelu)), Lines{}) << "there are none there";
  EXPECT_EQ(differences(of_translation(relu), of_translation(gelu)), differs);
  EXPECT_EQ(differences(of_translation(off), of_translation(gelu)), Lines{});
}

TEST(HiddenDifferences, PoolingCountsWhereItsRowsAreRead) {
  auto other = kBase;
  other.pooling = "cls_relu";
  const auto labels = of_text<TextClassificationOptions>(kBase);
  const Lines differs{"model.pooling: \"cls_relu\", \"cls_tanh\""};
  EXPECT_EQ(differences(of_text<TextClassificationOptions>(other), labels), differs);
  EXPECT_EQ(differences(of_text<MaskedLmOptions>(other), labels), Lines{});  // it pools nothing
  EXPECT_EQ(differences(of_text<TextClassificationOptions>(other), of_text<MaskedLmOptions>(kBase)),
            Lines{});
  other.head = "none";
  EXPECT_EQ(differences(of_text<MaskedLmOptions>(other), labels), differs);
  other.pooling = "mean";  // it has no pooler that could be taken
  EXPECT_EQ(differences(of_text<MaskedLmOptions>(other), labels), Lines{});
}

TEST(HiddenDifferences, OfTextAreThoseOfPartsThatAreTaken) {
  auto other = kBase;
  other.num_heads = 8;
  other.activation = "gelu_tanh";
  other.pooling = "cls_relu";
  const Lines stored{"encoder.embedding.weight", "encoder.layers.0.ffn.up.weight",
                     "head.pooler.weight"};
  const auto taking = [&](auto own, const Lines& entries) {
    own.train.init_only = entries;
    return differences(of_text<TextClassificationOptions>(other), own, stored);
  };
  const auto labels = of_text<TextClassificationOptions>(kBase);
  const Lines encoder{"model.num_heads: 8, 12", "model.activation: \"gelu_tanh\", \"gelu\""},
      pooling{"model.pooling: \"cls_relu\", \"cls_tanh\""};
  EXPECT_EQ(taking(labels, {"encoder.*"}), encoder);
  EXPECT_EQ(taking(labels, {"head.*"}), pooling);
  EXPECT_EQ(taking(labels, {"*.embedding.weight"}), Lines{});
  EXPECT_EQ(taking(labels, {"*"}).size(), 3U);
}

TEST(HiddenDifferences, OfTheHeadOfMasksAreItsActivationAndNorm) {
  auto other = kBase, model = kBase;
  other.num_heads = 8;
  other.activation = "gelu_tanh";
  auto own = of_text<MaskedLmOptions>(model);
  own.train.init_only = {"head.*"};
  EXPECT_EQ(differences(of_text<MaskedLmOptions>(other), own, {"head.dense.weight"}),
            Lines{"model.activation: \"gelu_tanh\", \"gelu\""});
  EXPECT_EQ(differences(of_text<QuestionAnsweringOptions>(other), own, {"head.output.weight"}),
            Lines{});
}

TEST(HiddenDifferences, OfTextAreToldInTheirOrderAndPoolingLast) {
  auto other = kBase, own = kBase;
  own.adapter.dim = 8;
  other.adapter = nn::AdapterOptions{.dim = 8, .activation = "relu"};
  other.pooling = "cls_relu";
  other.norm_layer = "rms_norm";
  other.norm = "pre";
  EXPECT_EQ(
      differences(of_text<TextClassificationOptions>(other),
                  of_text<TextClassificationOptions>(own)),
      (Lines{"model.norm: \"pre\", \"post\"", "model.norm_layer: \"rms_norm\", \"layer_norm\"",
             "model.adapter.activation: \"relu\", \"gelu\"",
             "model.pooling: \"cls_relu\", \"cls_tanh\""}));
}

template <class Encoder, class Decoder>
Experiment with_parts(Encoder encoder, Decoder decoder) {
  Experiment experiment;
  translation_of(experiment).model.encoder = std::move(encoder);
  translation_of(experiment).model.decoder = std::move(decoder);
  return experiment;
}

TEST(HiddenDifferences, OfTranslationAreThoseOfPartsThatBothHave) {
  Experiment theirs, own;
  EXPECT_EQ(differences(theirs, own), Lines{});
  auto& model = translation_of(theirs).model;
  model.encoder.as<models::StackOptions>().num_heads += 4;
  model.activation = "gelu";
  model.embedding_scale = "sqrt";  // what auto means for a Transformer
  model.dropout = 0.3;
  EXPECT_EQ(differences(theirs, own).size(), 2U);
  model.embedding_scale = "none";
  EXPECT_EQ(differences(theirs, own).back(), "model.embedding_scale: \"none\", \"sqrt\"");
  translation_of(own).model.encoder = models::LstmEncoderOptions{};
  translation_of(own).model.decoder = models::LstmDecoderOptions{};
  EXPECT_EQ(differences(theirs, own), Lines{});  // shapes tell the rest
}

TEST(HiddenDifferences, OfRecurrentPartsAreTheirConnections) {
  const auto recurrent = with_parts<models::LstmEncoderOptions, models::LstmDecoderOptions>;
  const auto own = recurrent({.num_layers = 4}, {.num_layers = 2});
  EXPECT_EQ(
      differences(recurrent({.num_layers = 4, .residual_from = 1},
                            {.num_layers = 2, .context_to = "gnmt", .initial_state = "last"}),
                  own),
      (Lines{"model.encoder.residual_from: 1, 2", "model.decoder.context_to: \"gnmt\", \"gnmt_v2\"",
             "model.decoder.initial_state: \"last\", \"zero\""}));
  EXPECT_EQ(differences(recurrent({}, {.num_layers = 1, .context_to = "gnmt"}),
                        recurrent({}, {.num_layers = 1})),
            Lines{})
      << "there is no layer above that reads it";
  // Neither of two layers has a connection with either number.
  EXPECT_EQ(differences(recurrent({.num_layers = 4}, {.num_layers = 2, .residual_from = 7}), own),
            Lines{});
}

TEST(HiddenDifferences, OfConvolutionsAreThoseThatTheirOwnKeysName) {
  const auto convolutional = with_parts<models::LightEncoderOptions, models::ConvDecoderOptions>;
  Experiment theirs = convolutional(
      {.num_heads = 4, .norm = "pre", .activation = "gelu", .positions = "none", .dropout = 0.3},
      {.positions = "sinusoidal"});
  translation_of(theirs).model.norm = "pre";  // of Transformers, which neither has
  EXPECT_EQ(differences(theirs, convolutional({}, {})),
            (Lines{"model.encoder.num_heads: 4, 8", "model.encoder.norm: \"pre\", \"post\"",
                   "model.encoder.activation: \"gelu\", \"relu\"",
                   "model.encoder.positions: \"none\", \"sinusoidal\"",
                   "model.decoder.positions: \"sinusoidal\", \"learned\""}));
}

TEST(HiddenDifferences, APartThatAListReplacesIsNotCompared) {
  Experiment theirs, own;
  translation_of(theirs).model.decoder.as<models::StackOptions>().num_heads += 4;
  translation_of(own).model.heads.resize(2);
  EXPECT_EQ(differences(theirs, own), Lines{});
  translation_of(own).model.heads.clear();
  EXPECT_EQ(differences(theirs, own).size(), 1U);
}

models::StackOptions with_heads(int64_t num_heads) {
  models::StackOptions part;
  part.num_heads = num_heads;
  return part;
}

/// Decoders by name, with so many heads of attention.
Experiment with_decoders(const std::vector<std::pair<std::string, int64_t>>& decoders) {
  Experiment experiment;
  for (const auto& [name, num_heads] : decoders) {
    translation_of(experiment)
        .model.heads.push_back({.name = name, .decoder = with_heads(num_heads)});
  }
  return experiment;
}

TEST(HiddenDifferences, DecodersAreComparedByTheirNames) {
  const auto theirs = with_decoders({{"de", 4}, {"fr", 2}});
  EXPECT_EQ(differences(theirs, with_decoders({{"fr", 2}, {"de", 4}})), Lines{});
  EXPECT_EQ(differences(theirs, with_decoders({{"fr", 4}, {"de", 4}})),
            Lines{"model.heads.0.decoder.num_heads = model.heads.1.decoder.num_heads: 2, 4"});
}

TEST(HiddenDifferences, APartIsComparedWithTheOneThatItTakes) {
  Experiment theirs, own;
  translation_of(theirs).model.encoders = {with_heads(8), with_heads(4)};
  const Lines stored{"encoders.0.norm.gain", "encoders.1.norm.gain", "decoder.norm.gain"};
  own.train.init_only = {"encoder.* = encoders.1.*"};
  EXPECT_EQ(differences(theirs, own, stored),
            Lines{"model.encoder.num_heads = model.encoders.1.num_heads: 4, 8"});
  own.train.init_only = {"encoder.* = encoders.0.*"};
  EXPECT_EQ(differences(theirs, own, stored), Lines{});

  const auto reverse = with_decoders({{"copy", 2}, {"reverse", 4}});
  Experiment one;
  translation_of(one).model.decoder = with_heads(2);
  auto taking = reverse;
  taking.train.init_only = {"encoder.*", "decoders.reverse.* = decoder.*"};
  EXPECT_EQ(differences(one, taking, stored),
            Lines{"model.heads.1.decoder.num_heads = model.decoder.num_heads: 2, 4"});
}

TEST(HiddenDifferences, APartThatTakesNothingIsNotCompared) {
  Experiment theirs, own;
  auto& other = translation_of(theirs).model;
  other.decoder = with_heads(4);
  other.embedding_scale = "none";
  const Lines stored{"embedding.weight", "encoder.norm.gain", "decoder.norm.gain"};
  const std::string scale = "model.embedding_scale: \"none\", \"sqrt\"";
  own.train.init_only = {"encoder.*"};
  EXPECT_EQ(differences(theirs, own, stored), Lines{scale}) << "the decoder begins anew";
  own.train.init_only = {"embedding.weight"};
  EXPECT_EQ(differences(theirs, own, stored), Lines{scale}) << "layers begin anew";
  own.train.init_only = {"decoder.*"};
  EXPECT_EQ(differences(theirs, own, stored), (Lines{"model.decoder.num_heads: 4, 8", scale}));
}

TEST(HiddenDifferences, OfTransformersAreThoseOfPartsThatAreTaken) {
  const auto mixed = with_parts<models::LstmEncoderOptions, models::StackOptions>;
  auto theirs = mixed({}, {}), own = mixed({}, {});
  translation_of(theirs).model.norm = "pre";
  const Lines stored{"encoder.layers.0.forward.input.weight", "decoder.norm.gain"};
  own.train.init_only = {"encoder.*"};
  EXPECT_EQ(differences(theirs, own, stored), Lines{}) << "its encoder is no Transformer";
  own.train.init_only = {"*"};
  EXPECT_EQ(differences(theirs, own, stored), Lines{"model.norm: \"pre\", \"post\""});
}

TEST(HiddenDifferences, ScalesOfEmbeddingsAreComparedInPartsThatBothHave) {
  Experiment theirs, own;
  auto &one = translation_of(theirs).model, &several = translation_of(own).model;
  several.heads.resize(2);
  several.heads[1].decoder = models::LstmDecoderOptions{};
  EXPECT_EQ(differences(theirs, own), Lines{}) << "there is no second decoder there";
  one.embedding_scale = "none";
  EXPECT_EQ(differences(theirs, own), Lines{"model.embedding_scale: \"none\", \"sqrt\""});
  EXPECT_EQ(differences(own, theirs), Lines{"model.embedding_scale: \"sqrt\", \"none\""});
  one.embedding_scale = "auto";
  one.encoders.resize(2);  // as many parts, and others
  one.encoders[1] = models::LstmEncoderOptions{};
  EXPECT_EQ(differences(theirs, own), Lines{});
  one.encoders[0] = models::LstmEncoderOptions{};
  EXPECT_EQ(differences(theirs, own),
            Lines{"model.embedding_scale: [\"none\", \"sqrt\"], \"sqrt\""})
      << "those of an encoder and of a decoder differ there alone";
}

TEST(HiddenDifferences, OfOtherFamiliesAreNone) {
  EXPECT_EQ(differences(Experiment(), of_text<MaskedLmOptions>()), Lines{});
  EXPECT_EQ(differences(of_text<MaskedLmOptions>(), Experiment()), Lines{});
}

}  // namespace
}  // namespace stretto::experiment
