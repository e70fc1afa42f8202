#include <gtest/gtest.h>

#include <functional>

#include "experiment/load_experiment.h"
#include "experiment/rules.h"
#include "families/translation/translation_options.h"
#include "models/option_conflicts.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

using models::ConvDecoderOptions;
using models::ConvEncoderOptions;
using models::LightEncoderOptions;
using models::LstmDecoderOptions;
using models::LstmEncoderOptions;
using models::Seq2SeqOptions;
using models::StackOptions;

using PartsChange = std::function<void(Seq2SeqOptions&)>;

/// The one conflict that a change makes, as "key: what".
std::string conflict_of(const PartsChange& change) {
  Seq2SeqOptions model;
  change(model);
  const auto found = models::option_conflicts(model);
  if (found.size() != 1) return std::to_string(found.size()) + " conflicts";
  EXPECT_FALSE(found.front().hint.empty()) << "without a remedy: " << found.front().what;
  return found.front().keys.front() + ": " + found.front().what;
}

/// A configuration file with these lines, and the text that it needs.
class Parts : public ::testing::Test {
 protected:
  LoadedExperiment load(const std::string& lines, const std::vector<std::string>& overrides = {}) {
    folder_.write("a", "a\n");
    const std::string config = folder_.write(
        "my.toml",
        "[data]\ntrain_src = [\"a\"]\ntrain_tgt = [\"a\"]\n[train]\nmax_steps = 9000\n" + lines);
    return load_experiment(config, overrides);
  }
  std::string message(const std::string& lines, const std::vector<std::string>& overrides = {}) {
    return stretto::testing::failure(ExitCode::kUsage, [&] { load(lines, overrides); }).message();
  }

 private:
  stretto::testing::TempDir folder_;
};

TEST_F(Parts, AreTransformersUnlessNamesSayOtherwise) {
  const auto plain = load("");
  EXPECT_EQ(translation_of(plain.options).model.encoder.name(), "transformer");
  EXPECT_EQ(translation_of(plain.options).model.decoder.name(), "transformer");
  const auto mixed = load(
      "[model.encoder]\nname = \"lstm\"\nbidirectional = false\n[model.decoder]\nname = \"conv\"\n"
      "kernels = [5]\n");
  EXPECT_FALSE(translation_of(mixed.options).model.encoder.as<LstmEncoderOptions>().bidirectional);
  EXPECT_EQ(translation_of(mixed.options).model.decoder.as<ConvDecoderOptions>().kernels,
            std::vector<double>{5});
  const auto again = load_stored_experiment(mixed.resolved_toml, "/elsewhere/config.toml", {});
  EXPECT_EQ(again.resolved_toml, mixed.resolved_toml);
  EXPECT_EQ(again.config_hash, mixed.config_hash);
  EXPECT_NE(mixed.config_hash, plain.config_hash);
}

TEST_F(Parts, OnTheCommandLineMayBeChosenAndSetAtOnce) {
  const auto loaded = load("", {"model.encoder.cell=gru", "model.encoder.name=lstm"});
  EXPECT_EQ(translation_of(loaded.options).model.encoder.as<LstmEncoderOptions>().cell, "gru");
}

TEST_F(Parts, KeyOfAnotherPartIsAnsweredWithThePartThatHasIt) {
  const std::string text = message("[model.encoder]\nbidirectional = true\n");
  EXPECT_NE(text.find("bidirectional"), std::string::npos) << text;
  EXPECT_NE(text.find("lstm"), std::string::npos) << text;
  const std::string other = message("[model.decoder]\nname = \"lstm\"\nffn_dim = 64\n");
  EXPECT_NE(other.find("transformer"), std::string::npos) << other;
}

TEST_F(Parts, KeyOfTheOtherSidesPartIsAnsweredWithThatSide) {
  const std::string what = "`bidirectional` is a key of lstm in [model.encoder]";
  const std::string key = "[model.decoder]\nbidirectional = true\n";
  const std::string plain = message(key);
  EXPECT_NE(plain.find("`model.decoder.bidirectional`: " + what +
                       ", and model.encoder.name is transformer\n"),
            std::string::npos)
      << plain;
  const std::string recurrent = message("[model.encoder]\nname = \"lstm\"\n" + key);
  EXPECT_NE(recurrent.find("`model.decoder.bidirectional`: " + what +
                           "\n  did you mean `model.encoder.bidirectional`?"),
            std::string::npos)
      << recurrent;
  const std::string head =
      message("[[model.heads]]\n[model.heads.decoder]\nbidirectional = true\n");
  EXPECT_NE(head.find("`model.heads.0.decoder.bidirectional`: " + what), std::string::npos) << head;
}

/// `[model]` with one key and these parts on both sides.
std::string with_key_too_high(const std::string& key, const std::string& part) {
  return "[model]\nd_model = 64\n" + key + " = 1\n[model.encoder]\nname = \"" + part +
         "\"\n[model.decoder]\nname = \"" + part + "\"\n";
}

/// What is said of it when neither side has it: the parts that do, and where.
std::string told_of_key_too_high(const std::string& key, const std::string& owners,
                                 const std::string& chosen, const std::string& part) {
  return ": `model." + key + "`: `" + key + "` is a key of " + owners + ", and " + chosen +
         "\n  leave it out; `stretto describe model." + part + "` lists the keys of ";
}

TEST_F(Parts, KeyOneLevelTooHighIsAnsweredWithThePartsThatHaveIt) {
  const std::string filters = "light_conv and dynamic_conv in ";
  const std::string both_filters =
      filters + "[model.encoder], and of " + filters + "[model.decoder]";
  const std::string any = "conv, light_conv and dynamic_conv in ";
  const std::string both_any = any + "[model.encoder], and of " + any + "[model.decoder]";
  const std::string both_conv = "conv in [model.encoder], and of conv in [model.decoder]";
  const std::string both_lstm = "lstm in [model.encoder], and of lstm in [model.decoder]";
  const std::string encoder = "model.encoder.name is ", decoder = "model.decoder.name is ";
  struct Case {
    std::string parts, key, owners, chosen, described;
  };
  for (const Case& one : {
           Case{"lstm", "glu", both_filters, encoder, "encoder.light_conv"},
           Case{"lstm", "weight_norm", both_conv, encoder, "encoder.conv"},
           Case{"lstm", "kernels", both_any, encoder, "encoder.conv"},
           Case{"transformer", "hidden_dim", both_lstm, encoder, "encoder.lstm"},
           Case{"transformer", "zoneout_hidden", both_lstm, encoder, "encoder.lstm"},
           Case{"transformer", "cell", both_lstm, encoder, "encoder.lstm"},
           Case{"transformer", "bidirectional", "lstm in [model.encoder]", encoder, "encoder.lstm"},
           Case{"transformer", "attention", "lstm in [model.decoder]", decoder, "decoder.lstm"},
       }) {
    const std::string text = message(with_key_too_high(one.key, one.parts));
    const std::string told =
        told_of_key_too_high(one.key, one.owners, one.chosen + one.parts, one.described);
    EXPECT_NE(text.find(told), std::string::npos) << text << "\n" << told;
    EXPECT_EQ(text.find("did you mean"), std::string::npos) << text;
  }
}

TEST_F(Parts, KeyOneLevelTooHighThatAPartHasIsSuggestedWithItsPath) {
  for (const auto& [key, hint] :
       {std::pair{"bidirectional", "`model.encoder.bidirectional`? (true or false, default true)"},
        {"attention", "`model.decoder.attention`? (string, default \"bahdanau_normed\")"},
        {"cell", "`model.encoder.cell` or `model.decoder.cell`? (string, default \"lstm\")"}}) {
    const std::string text = message(with_key_too_high(key, "lstm"));
    EXPECT_NE(text.find(std::string("\n  did you mean ") + hint), std::string::npos) << text;
  }
  const std::string head = message("[[model.heads]]\ncell = \"gru\"\n");
  EXPECT_NE(head.find("`model.heads.0.cell`: `cell` is a key of lstm in [model.heads.decoder], and "
                      "model.heads.0.decoder.name is transformer\n"),
            std::string::npos)
      << head;
}

TEST_F(Parts, NameThatThereIsNotIsAnsweredWithThoseThereAre) {
  const std::string text = message("[model.encoder]\nname = \"lstn\"\n");
  EXPECT_NE(text.find("lstm"), std::string::npos) << text;
}

TEST_F(Parts, KeysOfTransformerLayersCountWithEitherSide) {
  EXPECT_NO_THROW(load("[model]\nnorm = \"pre\"\n[model.encoder]\nname = \"lstm\"\n"));
}

TEST_F(Parts, ATransformersLayersMayBeLeftOutWithAProbabilityBelowOne) {
  const auto loaded = load("[model.encoder]\nlayer_drop = 0.2\n");
  EXPECT_EQ(translation_of(loaded.options).model.encoder.as<StackOptions>().layer_drop, 0.2);
  EXPECT_EQ(translation_of(loaded.options).model.decoder.as<StackOptions>().layer_drop, 0.0);
  EXPECT_NE(loaded.config_hash, load("").config_hash);
  for (const char* value : {"1.0", "-0.1"}) {
    const std::string text = message(std::string("[model.decoder]\nlayer_drop = ") + value + "\n");
    EXPECT_NE(text.find("model.decoder.layer_drop"), std::string::npos) << text;
  }
  const std::string other = message("[model.decoder]\nname = \"lstm\"\nlayer_drop = 0.1\n");
  EXPECT_NE(other.find("transformer"), std::string::npos) << other;
}

TEST_F(Parts, NormsOfTransformersAreOneOfThree) {
  EXPECT_EQ(translation_of(load("[model]\nnorm_layer = \"rms_norm\"\n").options).model.norm_layer,
            "rms_norm");
  const std::string text = message("[model]\nnorm_layer = \"rmsnorm\"\n");
  EXPECT_NE(text.find("rms_norm"), std::string::npos) << text;
}

TEST_F(Parts, VectorsOfDistancesReachAtLeastOneTokenFar) {
  const std::string relative = "[model]\npositions = \"shaw\"\nmax_distance = ";
  EXPECT_EQ(translation_of(load(relative + "4\n").options).model.max_distance, 4);
  for (const char* bad : {"0", "4097"}) {
    const std::string text = message(relative + bad + "\n");
    EXPECT_NE(text.find("model.max_distance"), std::string::npos) << text;
  }
}

TEST_F(Parts, ModelsGoOnAnsweringToTheirFormerName) {
  const auto now = load("");
  const auto before = load("[model]\nname = \"transformer\"\n");
  EXPECT_EQ(translation_of(before.options).model.name, "encoder_decoder");
  EXPECT_EQ(before.config_hash, now.config_hash);
}

TEST(OptionConflicts, EveryPairingOfDefaultsFits) {
  for (const auto& encoder : models::EncoderChoice::names()) {
    for (const auto& decoder : models::DecoderChoice::names()) {
      Seq2SeqOptions model;
      ASSERT_TRUE(model.encoder.select(encoder) && model.decoder.select(decoder));
      EXPECT_TRUE(models::option_conflicts(model).empty()) << encoder << " " << decoder;
    }
  }
}

TEST(OptionConflicts, HeadsOfFiltersDivideTheWidthToo) {
  EXPECT_EQ(conflict_of([](auto& model) { model.encoder = LightEncoderOptions{.num_heads = 7}; }),
            "model.encoder.num_heads: 7 heads do not divide model.d_model = 512");
}

TEST(OptionConflicts, PartsSideBySideNeedTheirNormInFront) {
  for (const std::string norm : {"post", "res_post"}) {
    EXPECT_EQ(conflict_of([&](auto& model) {
                model.parallel_residual = true;
                model.norm = norm;
              }),
              "model.parallel_residual: all parts of a layer read the rows behind one norm, which "
              "has to stand before them, but model.norm is \"" +
                  norm + "\"");
  }
  EXPECT_EQ(conflict_of([](auto& model) {
              model.parallel_residual = true;
              model.norm = "pre";
            }),
            "0 conflicts");
  EXPECT_EQ(conflict_of([](auto& model) {  // no Transformer layer reads the key
              model.parallel_residual = true;
              model.encoder = LstmEncoderOptions{};
              model.decoder = LstmDecoderOptions{};
            }),
            "0 conflicts");
}

TEST(OptionConflicts, TwoDirectionsShareAnEvenWidth) {
  EXPECT_EQ(conflict_of([](auto& model) {
              model.d_model = 33;
              model.encoder = LstmEncoderOptions{.num_layers = 1};
              model.decoder = LstmDecoderOptions{};
            }),
            "model.encoder.hidden_dim: two directions cannot share model.d_model = 33 in halves");
}

TEST(OptionConflicts, ResidualConnectionsGoAroundLayersOfOneWidth) {
  EXPECT_EQ(conflict_of([](auto& model) {
              model.encoder = LstmEncoderOptions{.hidden_dim = 256, .residual_from = 1};
              model.decoder = LstmDecoderOptions{};
            }),
            "model.encoder.residual_from: layer 1 reads rows of 512 and gives rows of 256, which "
            "cannot be added");
  EXPECT_EQ(conflict_of([](auto& model) {
              model.decoder = LstmDecoderOptions{.hidden_dim = 256, .residual_from = 0};
            }),
            "model.decoder.residual_from: layer 0 reads rows of 512 and gives rows of 256, which "
            "cannot be added");
}

TEST(OptionConflicts, OnlyRecurrentDecodersReadRowsOfAnyWidth) {
  const auto narrow = [](auto& model) {
    model.encoder = LstmEncoderOptions{.hidden_dim = 300, .bidirectional = false};
  };
  EXPECT_EQ(
      conflict_of(narrow),
      "model.encoder.hidden_dim: the encoder's rows are 300 wide, and a `transformer` decoder "
      "attends to rows of model.d_model = 512");
  EXPECT_EQ(conflict_of([&](auto& model) {
              narrow(model);
              model.decoder = LstmDecoderOptions{};
            }),
            "0 conflicts");
}

TEST(OptionConflicts, LuongComparesStatesWithKeysOfTheirWidth) {
  EXPECT_EQ(
      conflict_of([](auto& model) {
        model.decoder = LstmDecoderOptions{.attention = "luong", .attention_width = 64};
      }),
      "model.decoder.attention_width: attention = \"luong\" compares states of 512 units with "
      "keys of 64");
}

TEST(OptionConflicts, ALastStateComesFromAnEncoderOfTheSameLayers) {
  const auto last = [](auto& model, auto encoder) {
    model.encoder = encoder;
    model.decoder = LstmDecoderOptions{.initial_state = "last"};
  };
  const std::string key = "model.decoder.initial_state: ";
  EXPECT_EQ(conflict_of([&](auto& model) { last(model, StackOptions{}); }),
            key + "\"last\" needs a recurrent encoder, not `transformer`");
  EXPECT_EQ(conflict_of([&](auto& model) { last(model, LstmEncoderOptions{.num_layers = 3}); }),
            key + "\"last\" needs as many layers on both sides, they are 3 and 2");
  EXPECT_EQ(conflict_of([&](auto& model) { last(model, LstmEncoderOptions{.cell = "gru"}); }),
            key + "\"last\" needs states alike on both sides, cells are gru and lstm");
  EXPECT_EQ(conflict_of([&](auto& model) { last(model, LstmEncoderOptions{}); }),
            key +
                "\"last\" needs states of one width: layer 0 of the encoder has 1024, the "
                "decoder's 512");
  EXPECT_EQ(
      conflict_of([&](auto& model) { last(model, LstmEncoderOptions{.bidirectional = false}); }),
      "0 conflicts");
}

TEST(OptionConflicts, ListsOfLayersHoldOneNumberForEachLayerAtMost) {
  EXPECT_EQ(conflict_of([](auto& model) {
              model.encoder = ConvEncoderOptions{.num_layers = 2, .kernels = {3, 3, 5}};
            }),
            "model.encoder.kernels: has 3 entries for 2 layers; the last entry goes on for further "
            "layers");
  EXPECT_EQ(conflict_of([](auto& model) { model.encoder = ConvEncoderOptions{.channels = {0.5}}; }),
            "model.encoder.channels: must hold whole numbers from 1 to 65536");
  EXPECT_EQ(conflict_of([](auto& model) { model.encoder = ConvEncoderOptions{.kernels = {}}; }),
            "model.encoder.kernels: is empty");
}

TEST(OptionConflicts, TheDefaultListFitsAnyNumberOfLayers) {
  EXPECT_EQ(conflict_of([](auto& model) { model.encoder = LightEncoderOptions{.num_layers = 1}; }),
            "0 conflicts");
}

TEST(OptionConflicts, ATiedTableMultipliesRowsOfItsWidth) {
  const auto narrow = [](auto& model) { model.decoder = ConvDecoderOptions{.out_dim = 256}; };
  EXPECT_EQ(conflict_of(narrow),
            "model.decoder.out_dim: rows of 256 cannot be multiplied by a table of model.d_model = "
            "512");
  EXPECT_EQ(conflict_of([&](auto& model) {
              narrow(model);
              model.tie_embeddings = "none";
            }),
            "0 conflicts");
}

TEST(PositionsOfAModel, AreTheFewestOfAllParts) {
  Seq2SeqOptions model;
  EXPECT_TRUE(models::learned_positions(model).key.empty());
  model.encoder = ConvEncoderOptions{.max_positions = 300};
  model.decoder = ConvDecoderOptions{.max_positions = 200};
  model.positions = "learned";  // of a Transformer, which there is none
  model.max_positions = 7;
  EXPECT_EQ(models::learned_positions(model).key, "model.decoder.max_positions");
  EXPECT_EQ(models::learned_positions(model).tokens, 200);
  model.decoder = StackOptions{};
  EXPECT_EQ(models::learned_positions(model).key, "model.max_positions");
}

}  // namespace
}  // namespace stretto::experiment
