// Keys of [model] that a configuration leaves to the run of train.init_from.
#include "experiment/other_model.h"

#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "experiment/task_rules.h"
#include "families/text_classification/text_classification_options.h"
#include "store/safetensors.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

using stretto::testing::TempDir;

constexpr const char* kTextHead = "[task]\nname = \"text_classification\"\n";
constexpr const char* kTextTail =
    "[data]\ntrain = [\"train.tsv\"]\ntext = \"a\"\nlabel = \"b\"\nmax_text_tokens = 8\n"
    "[train]\nmax_steps = 9000\n";

/// A folder with runs, as far as their configurations go, and a configuration that begins with one.
class InitialModel : public ::testing::Test {
 protected:
  InitialModel() {
    for (const char* name : {"train.src", "train.tgt"}) dir_.write(name, "x\n");
    dir_.write("train.tsv", "a\tb\nx\t1\n");
    dir_.write("train.txt", "x\n");
    dir_.write("train.json", "{}");
  }

  /// A run whose configuration is this file, as a run folder keeps it.
  void make_run(const std::string& name, const std::string& toml) const {
    const auto loaded = load_experiment(dir_.write(name + ".toml", toml), {});
    dir_.write(name + "/config.toml", loaded.resolved_toml);
  }

  std::string text(const std::string& model, const std::string& head = kTextHead) const {
    return head + kTextTail + model;
  }

  std::string translation(const std::string& model) const {
    return std::string("[data]\ntrain_src = [\"train.src\"]\ntrain_tgt = [\"train.tgt\"]\n") +
           "max_src_tokens = 8\nmax_tgt_tokens = 8\n[train]\nmax_steps = 9000\n" + model;
  }

  LoadedExperiment load(const std::string& toml, const std::string& run,
                        std::vector<std::string> more = {},
                        const ReadContext& read_context = {}) const {
    more.push_back("train.init_from=" + (dir_ / run).string());
    return load_experiment(dir_.write("own.toml", toml), more, read_context);
  }

  /// Values of the keys of `[model]`, as TOML has them.
  static std::map<std::string, std::string> model_of(const Experiment& experiment) {
    Experiment copy = experiment;
    std::map<std::string, std::string> values;
    for (const auto& key : experiment_schema(copy).keys) {
      if (key.path.starts_with("model.")) values[key.path] = config::value_text(key.value);
    }
    return values;
  }

  std::map<std::string, std::string> model_of_run(const std::string& run) const {
    const auto path = dir_ / (run + "/config.toml");
    return model_of(load_stored_experiment(read_file(path, 1 << 20), path.string(), {}).options);
  }

  TempDir dir_;
};

constexpr const char* kOddModel =
    "[model]\npreset = \"none\"\nnum_layers = 3\nd_model = 12\nnum_heads = 3\nffn_dim = 20\n"
    "activation = \"relu\"\nnorm = \"pre\"\nnorm_layer = \"rms_norm\"\nnorm_epsilon = 1e-3\n"
    "positions = \"rotary\"\nnum_segments = 0\ndropout = 0.2\nattention_dropout = 0.3\n"
    "activation_dropout = 0.4\nhead_dropout = 0.5\npooling = \"mean\"\ninit_std = 0.03\n"
    "[model.adapter]\ndim = 4\nactivation = \"relu\"\nparts = [\"*ffn*\"]\n";

TEST_F(InitialModel, HasEachKeyOfTheRunThatIsNotGiven) {
  make_run("run", text(kOddModel));
  const auto loaded = load(text(""), "run");
  EXPECT_EQ(model_of(loaded.options), model_of_run("run"));
  EXPECT_NE(loaded.resolved_toml.find("\nd_model = 12"), std::string::npos);
  EXPECT_EQ(loaded.taken.find("keys of [model] that are not given are those of " +
                              (dir_ / "run").string() + ": preset = \"none\", num_layers = 3"),
            0U)
      << loaded.taken;
  EXPECT_EQ(loaded.taken.find('\n'), std::string::npos);
}

// What hashes see is the same as if the keys had been typed.
TEST_F(InitialModel, IsThatOfAConfigurationThatRepeatsIt) {
  make_run("run", text(kOddModel));
  const auto typed = load(text(kOddModel), "run"), left = load(text(""), "run");
  EXPECT_EQ(left.config_hash, typed.config_hash);
  EXPECT_EQ(left.resolved_toml, typed.resolved_toml);
  EXPECT_NE(typed.taken, left.taken);
  EXPECT_NE(typed.taken.find("all have their defaults"), std::string::npos) << typed.taken;
  // The number of rows alone, which is a default, is not worth a line.
  std::string all = "[model]\n";
  for (const auto& [key, value] : model_of_run("run")) {
    all += key.substr(std::string("model.").size()) + " = " + value + "\n";
  }
  EXPECT_EQ(load(text(all), "run").taken, "");
}

TEST_F(InitialModel, YieldsToKeysThatAreGiven) {
  make_run("run", text(kOddModel));
  const auto loaded = load(text("[model]\ndropout = 0.0\nnum_layers = 3\n"), "run",
                           {"model.adapter.dim=0", "model.norm_epsilon=1e-6"});
  const auto model = model_of(loaded.options);
  EXPECT_EQ(model.at("model.dropout"), "0.0");
  EXPECT_EQ(model.at("model.adapter.dim"), "0");
  EXPECT_EQ(model.at("model.norm_epsilon"), "1e-6");
  EXPECT_EQ(model.at("model.d_model"), "12");
  EXPECT_TRUE(loaded.origins.given("model.dropout"));
  EXPECT_FALSE(loaded.origins.given("model.d_model"));
  EXPECT_TRUE(loaded.origins.taken("model.d_model"));
  EXPECT_EQ(loaded.origins.of("model.d_model"),
            "`model.d_model` (from " + (dir_ / "run").string() + ")");
}

// That they differ is told where weights are compared, by the same keys as ever.
TEST_F(InitialModel, DiffersInWhatIsGivenAndDiffersAlone) {
  make_run("run", text(kOddModel));
  const auto path = dir_ / "run/config.toml";
  const auto theirs = load_stored_experiment(read_file(path, 1 << 20), path.string(), {}).options;
  const auto own = load(text("[model]\nnum_heads = 2\n"), "run").options;
  const auto found = find_task_rules(own)->hidden_differences(theirs, own, {});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "model.num_heads");
  EXPECT_EQ(found[0].theirs, "3");
}

TEST_F(InitialModel, LeavesSizesToAPresetThatIsGiven) {
  make_run("run", text(kOddModel));
  const auto model = model_of(load(text("[model]\npreset = \"tiny\"\n"), "run").options);
  EXPECT_EQ(model.at("model.d_model"), "0");
  EXPECT_EQ(model.at("model.num_heads"), "0");
  EXPECT_EQ(model.at("model.norm"), "\"pre\"");
  make_run("tiny", text("[model]\npreset = \"tiny\"\n"));
  EXPECT_EQ(model_of(load(text("[model]\nd_model = 128\n"), "tiny").options).at("model.preset"),
            "\"tiny\"");
}

// LoRA is merged when weights are taken, and patterns of first weights name tensors of its head.
TEST_F(InitialModel, TakesNoLoraAndNoFirstWeights) {
  make_run("run", text("[model]\npreset = \"tiny\"\ninit = [\"head.* zeros\"]\n"
                       "[model.lora]\nrank = 4\n"));
  const auto model = model_of(load(text(""), "run").options);
  EXPECT_EQ(model.at("model.lora.rank"), "0");
  EXPECT_EQ(model.at("model.init"), "[]");
}

TEST_F(InitialModel, HasTheHeadOfItsOwnTask) {
  const std::string masked =
      "[task]\nname = \"masked_lm\"\n[data]\ntrain = [\"train.txt\"]\n"
      "max_text_tokens = 8\n[train]\nmax_steps = 9000\n";
  make_run("masked", masked + "[model]\npreset = \"tiny\"\npooling = \"mean\"\n");
  EXPECT_EQ(model_of(load(text(""), "masked").options).at("model.pooling"), "\"cls_tanh\"");
  // An imported encoder, whose run no training has made.
  const auto alone = [&](const std::string& model) {
    dir_.write("alone/config.toml",
               masked + "[model]\npreset = \"tiny\"\nhead = \"none\"\n" + model);
    return model_of(load(text(""), "alone").options);
  };
  EXPECT_EQ(alone("pooling = \"mean\"\n").at("model.pooling"), "\"cls_tanh\"");
  EXPECT_EQ(alone("pooling = \"mean\"\n").at("model.head"), "\"auto\"");
  EXPECT_EQ(alone("pooling = \"cls_relu\"\n").at("model.pooling"), "\"cls_relu\"");
  // DistilBERT reads labels behind a relu.
  EXPECT_EQ(alone("pooling = \"mean\"\nnum_segments = 0\n").at("model.pooling"), "\"cls_relu\"");
  EXPECT_EQ(alone("pooling = \"mean\"\nnum_segments = 0\n").at("model.num_segments"), "0");
  // The other task has none of its own.
  const std::string own =
      "[task]\nname = \"masked_lm\"\n[data]\ntrain = [\"train.txt\"]\n"
      "max_text_tokens = 8\n[train]\nmax_steps = 9000\n";
  EXPECT_EQ(model_of(load(own, "alone").options).at("model.pooling"), "\"cls_tanh\"");
}

TEST_F(InitialModel, HasTheRowsOfTheOtherTables) {
  make_run("run", text("[model]\npreset = \"tiny\"\n[tokenizer]\nvocab_multiple = 24\n"));
  const auto rows = [](const LoadedExperiment& loaded) {
    return loaded.options.task.as<TextClassificationOptions>().tokenizer.vocab_multiple;
  };
  EXPECT_EQ(rows(load(text(""), "run")), 24);
  EXPECT_EQ(rows(load(text(""), "run", {"tokenizer.vocab_multiple=8"})), 8);
  EXPECT_EQ(rows(load(text(""), "run", {"train.init_vocabulary=match"})), 8);
}

TEST_F(InitialModel, MayBeThatOfACheckpoint) {
  make_run("run", text(kOddModel));
  std::filesystem::create_directories(dir_ / "run/checkpoints/step_00000003");
  for (const char* place : {"run/checkpoints/step_00000003", "run/checkpoints/step_00000003/"}) {
    EXPECT_EQ(model_of(load(text(""), place).options).at("model.d_model"), "12") << place;
  }
}

TEST_F(InitialModel, OfAnotherKindOrUnreadableLeavesTheDefaults) {
  make_run("pairs", translation("[model]\nd_model = 32\n"));
  const auto loaded = load(text(""), "pairs");
  EXPECT_EQ(model_of(loaded.options).at("model.preset"), "\"base\"");
  EXPECT_EQ(loaded.taken, "");
  dir_.write("broken/config.toml", "[model\n");
  EXPECT_EQ(model_of(load(text(""), "broken").options).at("model.preset"), "\"base\"");
  std::filesystem::create_directories(dir_ / "empty");
  EXPECT_EQ(load(text(""), "empty").taken, "");
}

TEST_F(InitialModel, OfAFolderIsWhatItsReaderDescribes) {
  std::filesystem::create_directories(dir_ / "folder");
  const ReadContext read_context{.describe = [&](const auto& folder, const Experiment& own) {
    OtherModel other{.options = own, .tensors = {}, .name = folder.string()};
    models::BertOptions model;
    model.num_segments = 7;
    other.options.task.as<TextClassificationOptions>().model = model;
    return std::optional(other);
  }};
  const auto loaded = load(text(""), "folder", {}, read_context);
  EXPECT_EQ(model_of(loaded.options).at("model.num_segments"), "7");
  EXPECT_NE(loaded.taken.find(": num_segments = 7"), std::string::npos) << loaded.taken;
}

// The run has its model, and so the other folder may be gone.
TEST_F(InitialModel, IsThatOfTheRunThatGoesOn) {
  make_run("run", text(kOddModel));
  const ReadContext read_context{.run_directory = dir_ / "new"};
  const auto first = load(text(""), "run", {"model.dropout=0.25"}, read_context);
  EXPECT_EQ(first.origins.taken("model.d_model"), true);
  dir_.write("new/config.toml", first.resolved_toml);
  std::filesystem::remove_all(dir_ / "run");
  // Nothing was trained yet.
  testing::failure(ExitCode::kUsage, [&] { load(text(""), "run", {}, read_context); });
  dir_.write("new/checkpoints/step_00000003/manifest.json", "{}");
  const auto again = load(text(""), "run", {}, read_context);
  EXPECT_EQ(again.config_hash, first.config_hash);
  EXPECT_EQ(model_of(again.options).at("model.dropout"), "0.25");
  EXPECT_EQ(again.taken, "");
  // Not for weights from elsewhere.
  testing::failure(ExitCode::kUsage, [&] { load(text(""), "other", {}, read_context); });
}

constexpr const char* kOddPair =
    "[model]\nd_model = 24\nnorm = \"pre\"\ntie_embeddings = \"decoder\"\ndropout = 0.3\n"
    "[model.encoder]\nname = \"lstm\"\nnum_layers = 3\n"
    "[model.decoder]\nnum_layers = 2\nnum_heads = 3\nffn_dim = 20\n";

TEST_F(InitialModel, OfTranslationHasThePartsOfTheRun) {
  make_run("run", translation(kOddPair));
  const auto loaded = load(translation(""), "run");
  EXPECT_EQ(model_of(loaded.options), model_of_run("run"));
  // A part of its own kind has its own keys, and the other one those of the run.
  const auto own =
      load(translation("[model.encoder]\nname = \"transformer\"\nnum_heads = 4\n"), "run");
  const auto model = model_of(own.options);
  EXPECT_EQ(model.at("model.encoder.num_layers"), "6");
  EXPECT_EQ(model.at("model.decoder.num_layers"), "2");
  EXPECT_EQ(model.at("model.d_model"), "24");
}

constexpr const char* kTwoHeads =
    "[[data.heads]]\nhead = \"de\"\ntrain_src = [\"train.src\"]\ntrain_tgt = [\"train.tgt\"]\n"
    "[[data.heads]]\nhead = \"fr\"\ntrain_src = [\"train.src\"]\ntrain_tgt = [\"train.tgt\"]\n";

std::string heads_text(const std::string& model) {
  return "[train]\nmax_steps = 9000\n[data]\nmax_src_tokens = 8\nmax_tgt_tokens = 8\n" +
         std::string(kTwoHeads) + model;
}

TEST_F(InitialModel, OfSeveralHeadsHasItsHeads) {
  const std::string heads =
      "[model]\nd_model = 16\nencoder = { num_layers = 1, num_heads = 2 }\n"
      "[[model.heads]]\nname = \"de\"\ndecoder = { num_layers = 1, num_heads = 2 }\n"
      "[[model.heads]]\nname = \"fr\"\nweight = 0.5\ndecoder = { name = \"lstm\", num_layers = 2 "
      "}\n";
  make_run("run", heads_text(heads));
  const auto loaded = load(heads_text(""), "run");
  EXPECT_EQ(model_of(loaded.options), model_of_run("run"));
  // Its entries are there for the command line.
  const auto weighed = load(heads_text(""), "run", {"model.heads.1.weight=2"});
  EXPECT_EQ(model_of(weighed.options).at("model.heads.1.weight"), "2.0");
  // A list that is given stands alone.
  const auto own =
      load(heads_text("[[model.heads]]\nname = \"fr\"\n[[model.heads]]\nname = \"de\"\n"), "run");
  EXPECT_EQ(model_of(own.options).at("model.heads.0.name"), "\"fr\"");
  EXPECT_EQ(model_of(own.options).at("model.heads.0.decoder.num_layers"), "6");
  EXPECT_EQ(model_of(own.options).at("model.encoder.num_layers"), "1");
}

TEST_F(InitialModel, OfAPartHasTheKeysOfThatPart) {
  make_run("run", translation(kOddPair));
  const std::string weights(4, '\0');
  std::vector<store::TensorView> tensors;
  for (const char* name : {"encoder.layers.0.weight", "decoder.layers.0.weight"}) {
    tensors.push_back({name, store::DType::kF32, {1}, weights});
  }
  dir_.write("run/checkpoints/step_00000003/manifest.json", "{}");
  store::write_safetensors(dir_ / "run/checkpoints/step_00000003/model.safetensors", tensors, {});
  const auto model = [&](const std::string& entry) {
    return model_of(load(translation(""), "run", {"train.init_only=[\"" + entry + "\"]"}).options);
  };
  const auto decoder = model("decoder.*");
  EXPECT_EQ(decoder.at("model.decoder.num_layers"), "2");
  EXPECT_EQ(decoder.at("model.encoder.name"), "\"transformer\"");
  EXPECT_EQ(decoder.at("model.encoder.num_layers"), "6");
  EXPECT_EQ(decoder.at("model.d_model"), "24");
  const auto encoder = model("encoder.*");
  EXPECT_EQ(encoder.at("model.encoder.name"), "\"lstm\"");
  EXPECT_EQ(encoder.at("model.decoder.num_layers"), "6");
}

}  // namespace
}  // namespace stretto::experiment
