#include "experiment/load_experiment.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "config/describe.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/rules.h"
#include "experiment/same_experiment.h"
#include "experiment/schedule_length.h"
#include "families/translation/translation_options.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/experiment/recipes.h"

namespace stretto::experiment {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

/// A folder with a configuration and the files that it names.
struct Bench {
  TempDir folder;
  std::string config;

  explicit Bench(const std::string& more = "") {
    for (const char* name : {"train.src", "train.tgt", "valid.src", "valid.tgt"}) {
      folder.write(name, "a\n");
    }
    config = folder.write("my.toml",
                          "[data]\n"
                          "train_src = [\"train.src\"]\ntrain_tgt = [\"train.tgt\"]\n"
                          "valid_src = [\"valid.src\"]\nvalid_tgt = [\"valid.tgt\"]\n"
                          "[train]\nmax_steps = 9000\n" +
                              more);
  }
};

template <class Call>
std::string message_of(const Call& call) {
  return testing::failure(ExitCode::kUsage, call).message();
}

TEST(LoadExperiment, GivesOptionsAndAResolvedCopyWithAbsolutePaths) {
  const Bench bench;
  const auto loaded = load_experiment(bench.config, {"optim.lr=7e-4"});
  EXPECT_EQ(loaded.options.optim.lr, 7e-4);
  EXPECT_EQ(translation_of(loaded.options).data.train_src.front(),
            (bench.folder.path() / "train.src").string());
  EXPECT_NE(loaded.resolved_toml.find("lr = 0.0007  # default 0.0005; peak learning rate"),
            std::string::npos);
  EXPECT_EQ(loaded.config_hash.size(), 16u);
}

TEST(LoadExperiment, RefusesACoverageOfCharactersThatSentencePieceDoesNotTake) {
  const Bench bench;
  const auto loaded = load_experiment(bench.config, {"tokenizer.character_coverage=0.98"});
  EXPECT_EQ(translation_of(loaded.options).tokenizer.character_coverage, 0.98);
  const auto message =
      message_of([&] { load_experiment(bench.config, {"tokenizer.character_coverage=0.97"}); });
  EXPECT_NE(message.find("`tokenizer.character_coverage` must be in [0.98, 1], got 0.97"),
            std::string::npos)
      << message;
}

TEST(LoadExperiment, TheResolvedCopyReadsBackToTheSameExperimentFromAnywhere) {
  const Bench bench("[schedule]\nname = \"cosine\"\n");
  const auto loaded = load_experiment(bench.config, {"data.train_weights=0.25"});
  const auto again = load_stored_experiment(loaded.resolved_toml, "/elsewhere/config.toml", {});
  EXPECT_EQ(again.resolved_toml, loaded.resolved_toml);
  EXPECT_EQ(again.config_hash, loaded.config_hash);
  EXPECT_TRUE(
      differences_from(loaded.resolved_toml, "x/config.toml", again.options, false).empty());
}

TEST(LoadExperiment, AStoredExperimentNeedsNoTrainingDataButTheFilesOfOverrides) {
  std::string resolved;
  {
    const Bench bench;
    resolved = load_experiment(bench.config, {}).resolved_toml;
  }
  EXPECT_NO_THROW(load_stored_experiment(resolved, "r/config.toml", {}));
  const auto message = message_of([&] {
    load_stored_experiment(resolved, "r/config.toml",
                           {"data.test_src=/no/a", "data.test_tgt=/no/b"});
  });
  EXPECT_NE(message.find("no file /no/a"), std::string::npos) << message;
}

TEST(LoadExperiment, HashesDependOnFixedKeysOnly) {
  const Bench bench;
  const auto hash = [&](const std::vector<std::string>& overrides) {
    return load_experiment(bench.config, overrides).config_hash;
  };
  const auto base = hash({});
  EXPECT_EQ(hash({"train.max_steps=8000", "train.keep_last=7", "run.threads=3", "report.every=1"}),
            base);
  EXPECT_NE(hash({"optim.lr=0.1"}), base);
  EXPECT_NE(hash({"run.seed=2"}), base);
}

TEST(LoadExperiment, TheLengthOfARunIsFixedWhereItShapesTheSchedule) {
  const Bench bench;
  for (const char* name : {"linear", "cosine", "polynomial", "tri_stage"}) {
    const std::string schedule = std::string("schedule.name=") + name;
    const auto stored = load_experiment(bench.config, {schedule});
    const auto longer = load_experiment(bench.config, {schedule, "train.max_steps=10000"});
    EXPECT_NE(stored.config_hash, longer.config_hash);
    EXPECT_EQ(differences_from(stored.resolved_toml, "r/config.toml", longer.options, false),
              (std::vector<std::string>{"train.max_steps: 9000 in the run, 10000 now"}));
    EXPECT_TRUE(
        differences_from(stored.resolved_toml, "r/config.toml", longer.options, true).empty());
    const auto pinned = load_experiment(bench.config, {schedule, "schedule.total_steps=9000"});
    const auto pinned_longer = load_experiment(
        bench.config, {schedule, "schedule.total_steps=9000", "train.max_steps=10000"});
    EXPECT_EQ(pinned.config_hash, pinned_longer.config_hash);
    EXPECT_TRUE(
        differences_from(pinned.resolved_toml, "r/config.toml", pinned_longer.options, false)
            .empty());
  }
}

TEST(LoadExperiment, EpochsAreFixedWhereTheScheduleEndsWithThem) {
  const Bench bench;
  const std::string steps = "train.max_steps=0", three = "train.max_epochs=3",
                    four = "train.max_epochs=4";
  struct Row {
    std::vector<std::string> overrides;
    bool fixed;
  };
  for (const Row& row :
       {Row{{"schedule.name=cosine", steps}, true}, Row{{"schedule.warmup_ratio=0.1", steps}, true},
        Row{{"schedule.name=cosine", "schedule.total_steps=9000", steps}, false},
        Row{{"schedule.name=cosine"}, false}, Row{{steps}, false}}) {
    const auto with = [&](const std::string& epochs) {
      auto overrides = row.overrides;
      overrides.push_back(epochs);
      return load_experiment(bench.config, overrides);
    };
    const auto stored = with(three), now = with(four);
    EXPECT_EQ(stored.config_hash != now.config_hash, row.fixed) << row.overrides.front();
    EXPECT_EQ(differences_from(stored.resolved_toml, "r/config.toml", now.options, false),
              (row.fixed ? std::vector<std::string>{"train.max_epochs: 3 in the run, 4 now"}
                         : std::vector<std::string>{}));
    EXPECT_TRUE(differences_from(stored.resolved_toml, "r/config.toml", now.options, true).empty());
  }
}

TEST(LoadExperiment, AShareOfAllUpdatesTakesThePlaceOfTheDefaultWarmUp) {
  const Bench bench;
  const auto loaded = load_experiment(bench.config, {"schedule.warmup_ratio=0.1"});
  EXPECT_EQ(loaded.options.schedule.warmup_steps, 0);
  EXPECT_EQ(loaded.options.schedule.warmup_updates(9000), 900);
  const auto again = load_stored_experiment(loaded.resolved_toml, "/elsewhere/config.toml", {});
  EXPECT_EQ(again.config_hash, loaded.config_hash);
  const auto message = message_of([&] {
    load_experiment(bench.config, {"schedule.warmup_ratio=0.1", "schedule.warmup_steps=4000"});
  });
  EXPECT_NE(message.find("stands beside schedule.warmup_steps = 4000"), std::string::npos)
      << message;
  EXPECT_NO_THROW(
      load_experiment(bench.config, {"schedule.warmup_ratio=0.1", "schedule.warmup_steps=0"}));
}

TEST(LoadExperiment, TheIntervalOfValidationIsFixedWhereValidationsShapeTheRun) {
  const Bench bench;
  struct Row {
    std::vector<std::string> overrides;
    bool fixed;
  };
  for (const Row& row : {Row{{}, false}, Row{{"schedule.name=plateau"}, true},
                         Row{{"train.patience=3"}, true}, Row{{"schedule.name=cosine"}, false}}) {
    auto other = row.overrides;
    other.emplace_back("eval.every=500");
    const auto stored = load_experiment(bench.config, row.overrides);
    const auto now = load_experiment(bench.config, other);
    EXPECT_EQ(stored.config_hash != now.config_hash, row.fixed);
    // Not even to make the run longer.
    for (const bool extend : {false, true}) {
      EXPECT_EQ(differences_from(stored.resolved_toml, "r/config.toml", now.options, extend),
                (row.fixed ? std::vector<std::string>{"eval.every: 1000 in the run, 500 now"}
                           : std::vector<std::string>{}));
    }
  }
}

TEST(LoadExperiment, DifferencesNameKeyAndBothValues) {
  const Bench bench;
  const auto stored = load_experiment(bench.config, {});
  const auto now = load_experiment(bench.config, {"optim.lr=0.001", "optim.name=adamw"});
  EXPECT_EQ(differences_from(stored.resolved_toml, "r/config.toml", now.options, false),
            (std::vector<std::string>{"optim.name: \"adam\" in the run, \"adamw\" now",
                                      "optim.lr: 0.0005 in the run, 0.001 now"}));
}

/// A run folder of a configuration, and how it stands to another one.
struct RunBench : Bench {
  fs::path run = folder.path() / "run";
  LoadedExperiment before = load_experiment(config, {});

  RunBench() { folder.write("run/config.toml", before.resolved_toml); }
  RunState run_state(const std::vector<std::string>& overrides) const {
    return require_same_experiment(run, load_experiment(config, overrides), false);
  }
  std::string refusal(const std::vector<std::string>& overrides) const {
    return message_of([&] { run_state(overrides); });
  }
};

TEST(SameExperiment, ARunThatTrainedNothingMayBeBegunAnew) {
  const RunBench bench;
  EXPECT_FALSE(bench.run_state({}).anew);
  EXPECT_TRUE(bench.run_state({}).begins);
  EXPECT_FALSE(bench.run_state({"run.threads=1"}).anew) << "that key is free";
  EXPECT_TRUE(bench.run_state({"optim.lr=0.25"}).anew);
  bench.folder.write("run/tokenizer/joint.model", "");
  bench.folder.write("run/checkpoints/.tmp-step_00000001/model.safetensors", "");
  bench.folder.write("run/metrics.jsonl", "");
  EXPECT_TRUE(bench.run_state({"optim.lr=0.25"}).anew);
  bench.folder.write("run/metrics.jsonl", "{\"step\":0,\"epoch\":0,\"event\":\"end\"}\n");
  EXPECT_TRUE(bench.run_state({"optim.lr=0.25"}).anew);
  std::filesystem::remove(bench.run / "config.toml");
  EXPECT_FALSE(bench.run_state({"optim.lr=0.25"}).anew) << "there is no run";
  EXPECT_TRUE(bench.run_state({"optim.lr=0.25"}).begins);
}

TEST(SameExperiment, ATokenizerIsUsedAgainOnlyForTheSettingsAndTextThatMadeIt) {
  const RunBench bench;
  bench.folder.write("other.src", "b\n");
  bench.folder.write("another/config.toml", "");
  struct Row {
    std::vector<std::string> overrides;
    bool keeps;
  };
  for (const Row& row : std::vector<Row>{
           {{"optim.lr=0.25", "model.dropout=0"}, true},
           {{"tokenizer.vocab_size=700"}, false},
           {{"optim.lr=0.25", "tokenizer.algorithm=unigram"}, false},
           {{"run.seed=7"}, false},
           {{"data.train_src=" + (bench.folder.path() / "other.src").string()}, false},
           {{"train.init_from=" + (bench.folder.path() / "another").string()}, false},
           {{"train.init_from=" + (bench.folder.path() / "another").string(),
             "train.init_vocabulary=match"},
            false},
       }) {
    const RunState run_state = bench.run_state(row.overrides);
    EXPECT_TRUE(run_state.anew) << row.overrides.back();
    EXPECT_EQ(run_state.keeps_tokenizer, row.keeps) << row.overrides.back();
  }
  EXPECT_TRUE(bench.run_state({}).keeps_tokenizer);
}

// A folder that an older program spoilt, or whose keys are gone, does not block anything either.
TEST(SameExperiment, AStoredConfigurationThatIsRefusedNowIsAnotherOne) {
  const RunBench bench;
  bench.folder.write("run/config.toml", "[optim]\ngroups = [\"encodr.* lr_scale=0.5\"]\n");
  const RunState run_state = bench.run_state({});
  EXPECT_TRUE(run_state.anew);
  EXPECT_FALSE(run_state.keeps_tokenizer);
}

TEST(SameExperiment, WhatWasTrainedBelongsToItsConfiguration) {
  for (const auto& [file, text] : std::vector<std::pair<std::string, std::string>>{
           {"run/checkpoints/step_00000001/model.safetensors", ""},
           {"run/checkpoints/bad-step_00000001/model.safetensors", ""},
           {"run/checkpoints/undone-step_00000001/model.safetensors", ""},
           {"run/checkpoints/averaged/model.safetensors", ""},
           {"run/metrics.jsonl", "{\"step\":100,\"epoch\":1,\"event\":\"train\"}\n"},
           {"run/metrics.jsonl", "what is this?\n"},
       }) {
    const RunBench bench;
    bench.folder.write(file, text);
    EXPECT_EQ(bench.refusal({"tokenizer.vocab_size=700"}),
              bench.run.string() +
                  " holds a run of another configuration:\n"
                  "  tokenizer.vocab_size: 8000 in the run, 700 now\n"
                  "  train into another folder with --run, or give the old values")
        << file;
    EXPECT_FALSE(bench.run_state({}).anew) << file;
    EXPECT_FALSE(bench.run_state({}).begins) << file;
  }
}

TEST(LoadExperiment, TellsTypesRangesRulesAndFilesTogether) {
  const Bench bench(
      "[optim]\nbeta1 = 1.5\nlr = \"fast\"\n[model]\nencoder = { num_heads = 7 }\n"
      "[tokenizer]\nmodel = \"gone.model\"\n");
  EXPECT_EQ(message_of([&] { load_experiment(bench.config, {}); }),
            bench.config +
                ":9:1: `optim.beta1` must be in [0, 1), got 1.5\n"
                "  decay of the first moment (adam, adamw, lazy_adam, radam, lamb; novograd, "
                "usually 0.95; muon, of what adamw steps) (number, "
                "default 0.9)\n"
                "error: " +
                bench.config +
                ":10:1: `optim.lr` must be a number, got the string \"fast\"\n"
                "  \"fast\" is not a number; peak learning rate; with lr_scaling: at a batch of "
                "reference_batch (number, default 0.0005)\n"
                "error: " +
                bench.config +
                ":12:13: `model.encoder.num_heads`: 7 heads do not divide "
                "model.d_model = 512\n"
                "  choose num_heads so that d_model / num_heads is a whole number\n"
                "error: " +
                bench.config + ":14:1: `tokenizer.model`: no file " +
                (bench.folder.path() / "gone.model").string() +
                "\n"
                "  relative paths are relative to the file that states them\n"
                "4 errors");
}

TEST(LoadExperiment, ASyntaxErrorIsNotDrownedInRules) {
  const Bench bench("[optim\n");
  const auto message = message_of([&] { load_experiment(bench.config, {}); });
  EXPECT_EQ(message.find("never stop"), std::string::npos) << message;
  EXPECT_NE(message.find("my.toml:8:7"), std::string::npos) << message;
}

TEST(LoadExperiment, NotesFormerNamesOfFilesThatSomebodyWrote) {
  const Bench bench("[model]\nname = \"transformer\"\n");
  const auto texts = [](const LoadedExperiment& loaded) {
    std::vector<std::string> all;
    for (const auto& note : loaded.origins.notes()) all.push_back(note.what);
    return all;
  };
  const std::string model =
      "`model.name = \"transformer\"` is now `\"encoder_decoder\"`; it is still read";
  const std::string data = "`data.max_sentences` is now `data.max_samples`; it is still read";
  const std::string given = "data.max_sentences=8";
  EXPECT_EQ(texts(load_experiment(bench.config, {given})), (std::vector<std::string>{model, data}));
  // A run folder's own file is no place that a user needs to know.
  const std::string stored = read_file(bench.config);
  EXPECT_EQ(texts(load_stored_experiment(stored, bench.config, {})), std::vector<std::string>{});
  EXPECT_EQ(texts(load_stored_experiment(stored, bench.config, {given})),
            std::vector<std::string>{data});
}

TEST(LoadExperiment, ASchedulesWidthOfAnOldFileIsReadAndIsTheSameExperiment) {
  const Bench bench("[schedule]\nname = \"noam\"\n[model]\nd_model = 256\n");
  const auto now = load_experiment(bench.config, {});
  EXPECT_TRUE(now.origins.notes().empty());
  EXPECT_EQ(now.resolved_toml.find("noam has the width"), std::string::npos);
  const auto before = load_experiment(bench.config, {"schedule.d_model=256"});
  ASSERT_EQ(before.origins.notes().size(), 1u);
  EXPECT_EQ(before.origins.notes()[0].text(),
            "command line, `schedule.d_model=256`: `schedule.d_model` is not needed any more: noam "
            "has the width from the model; leave it out");
  EXPECT_EQ(before.config_hash, now.config_hash);
  EXPECT_EQ(stated_config_hash(now.resolved_toml, "r/config.toml"), now.config_hash);
  EXPECT_EQ(stated_config_hash(before.resolved_toml, "r/config.toml"), now.config_hash);
  EXPECT_TRUE(differences_from(before.resolved_toml, "r/config.toml", now.options, false).empty());
  const auto message = message_of([&] { load_experiment(bench.config, {"schedule.d_model=512"}); });
  EXPECT_NE(message.find("`schedule.d_model`: 512 is not model.d_model = 256"), std::string::npos)
      << message;
  // With other schedules it was hashed, and never read.
  const std::string other = "schedule.name=cosine";
  const auto plain = load_experiment(bench.config, {other});
  EXPECT_EQ(load_experiment(bench.config, {other, "schedule.d_model=512"}).config_hash,
            plain.config_hash);
  const auto unread = load_experiment(bench.config, {other, "schedule.d_model=300"});
  EXPECT_NE(unread.config_hash, plain.config_hash);
  EXPECT_EQ(stated_config_hash(unread.resolved_toml, "r/config.toml"), unread.config_hash);
}

TEST(LoadExperiment, EveryRecipeIsSoundButForItsFiles) {
  const auto recipes = stretto::testing::shipped_recipes(STRETTO_SOURCE_DIR);
  EXPECT_GE(recipes.size(), 5u);
  for (const auto& path : recipes) {
    Experiment options, fallback;
    std::vector<config::Problem> problems;
    const auto origins = config::load_file(path, {}, experiment_schema(options),
                                           experiment_schema(fallback), problems);
    resolve_defaults(options, origins);
    check_rules(options, origins, problems);
    for (const auto& problem : problems) ADD_FAILURE() << problem.place << ": " << problem.what;
    for (const auto& note : origins.notes()) ADD_FAILURE() << note.text();
  }
}

TEST(LoadExperiment, TheRecipesOfScalingNmtChooseThePapersPrecision) {
  for (const char* name : {"wmt16_en_de_base.toml", "wmt16_en_de_big.toml"}) {
    Experiment options, fallback;
    std::vector<config::Problem> problems;
    config::load_file(fs::path(STRETTO_SOURCE_DIR) / "configs" / "translation" / name, {},
                      experiment_schema(options), experiment_schema(fallback), problems);
    EXPECT_TRUE(problems.empty()) << name;
    EXPECT_EQ(options.train.precision, "auto_fp16") << name;
    EXPECT_EQ(options.train.loss_scale.name, "auto") << name << ": fairseq's with fp16";
    EXPECT_EQ(translation_of(options).tokenizer.type, "vocab") << name;
    EXPECT_EQ(translation_of(options).tokenizer.vocab_size, 32768) << name;
  }
}

TEST(LoadExperiment, TheReferenceInTheManualIsFresh) {
  Experiment defaults;
  const std::string fresh = config::reference_markdown(experiment_schema(defaults));
  const fs::path page = fs::path(STRETTO_SOURCE_DIR) / "docs" / "config.md";
  EXPECT_TRUE(read_file(page) == fresh)
      << "docs/config.md is stale: stretto describe --markdown > docs/config.md";
}

TEST(LoadExperiment, DefaultsBesideAnExperimentAreThoseOfItsParts) {
  Experiment present, fallback;
  ASSERT_TRUE(translation_of(present).model.decoder.select("lstm"));
  translation_of(present).model.decoder.as<models::LstmDecoderOptions>().num_layers = 7;
  const auto schema = experiment_schema(present);
  const auto defaults = defaults_beside(schema, fallback);
  for (const auto& key : schema.keys) EXPECT_NE(defaults.find(key.path), nullptr) << key.path;
  EXPECT_EQ(config::value_text(defaults.find("model.decoder.num_layers")->value), "2");
  EXPECT_EQ(config::value_text(defaults.find("model.encoder.num_layers")->value), "6");
}

TEST(LoadExperiment, ARunThatAveragesMoreCheckpointsThanTheDefaultKeepsIsReadAgain) {
  const Bench bench;
  const auto loaded = load_experiment(bench.config, {"train.average_last=10"});
  EXPECT_EQ(loaded.options.train.keep_last, 10);
  const auto again = load_stored_experiment(loaded.resolved_toml, "/run/config.toml", {});
  EXPECT_EQ(again.options.train.keep_last, 10);
  EXPECT_EQ(again.config_hash, loaded.config_hash);
  // As it was stored when the default stood there.
  std::string former = loaded.resolved_toml;
  const size_t at = former.find("keep_last = 10");
  ASSERT_NE(at, std::string::npos);
  former.replace(at, 14, "keep_last = 2");
  EXPECT_EQ(load_stored_experiment(former, "/run/config.toml", {}).options.train.keep_last, 10);
}

TEST(LoadExperiment, TheJsonSchemaKnowsEveryKey) {
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  const auto json = nlohmann::json::parse(config::json_schema(schema));
  for (const auto& key : schema.keys) {
    std::string pointer = json.contains("anyOf") ? "/anyOf/0" : "";  // a file for each task
    for (size_t at = 0; at <= key.path.size();) {
      const size_t dot = std::min(key.path.find('.', at), key.path.size());
      // A section that is one of several parts has a table for each, the default's first.
      const auto* parts = at > 0 ? schema.find_switch(key.path.substr(0, at - 1)) : nullptr;
      if (parts != nullptr && !parts->below.empty()) pointer += "/anyOf/0";
      pointer += "/properties/" + key.path.substr(at, dot - at);
      at = dot + 1;
    }
    EXPECT_TRUE(json.contains(nlohmann::json::json_pointer(pointer))) << key.path;
  }
}

TEST(LoadExperiment, EveryDefaultIsInItsOwnRange) {
  Experiment defaults;
  for (const auto& key : experiment_schema(defaults).keys) {
    EXPECT_EQ(config::range_error(key), "") << key.path;
    EXPECT_FALSE(key.help.empty()) << key.path;
  }
}

}  // namespace
}  // namespace stretto::experiment
