#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "base/error.h"
#include "config/resolved.h"
#include "engine/commands.h"
#include "engine/session.h"
#include "experiment/experiment_schema.h"
#include "families/translation/engine/translation.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_options.h"
#include "optim/arena.h"
#include "runs/checkpoint_tensors.h"
#include "store/checkpoint.h"
#include "store/run_record.h"
#include "tests/base/temp_dir.h"

namespace stretto::engine {
namespace {

namespace fs = std::filesystem;
using experiment::Experiment;

/// An experiment, and a run of it with one checkpoint.
class EngineCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    translation_of(e_).tokenizer.type = "vocab";
    translation_of(e_).tokenizer.src_vocab = dir_.write("words.txt", "a\nb\nc\nd\n");
    translation_of(e_).model.d_model = 16;
    translation_of(e_).model.encoder =
        models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 8};
    translation_of(e_).model.decoder =
        models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 8};
    e_.train.init_from = dir_.path().string();
    save(3);
  }

  /// A checkpoint of the experiment's model as it is made.
  void save(int64_t step) const {
    const auto model =
        tasks::make_translation_model(e_, experiment::make_experiment_tokenizers(e_), at::kCPU)
            .model;
    const optim::Arena arena(*model);
    runs::Snapshot snapshot;
    snapshot.take(arena, {}, runs::Snapshot::Bytes::kBorrowed);
    store::CheckpointStore(dir_.path())
        .save({.step = step,
               .run_id = "run-1",
               .config_hash = "c0ffee",
               .files = snapshot.files(),
               .state_json = "{}"});
  }

  /// Makes the folder a run: with a record, a configuration and a tokenizer.
  void make_it_a_run() {
    store::write_run_record(dir_.path(), {"run-1", {"c0ffee"}, "", "", ""});
    dir_.write("config.toml", "[run]\n");
    for (const auto& [name, bytes] : experiment::make_experiment_tokenizers(e_).assets) {
      dir_.write("tokenizer/" + name, bytes);
    }
  }

  /// The same, of a model whose encoder has so many heads.
  void make_it_a_run_with_heads(int64_t num_heads) {
    Experiment other = e_;
    other.train.init_from.clear();
    other.train.max_steps = 5000;
    translation_of(other).model.encoder.as<models::StackOptions>().num_heads = num_heads;
    make_it_a_run();
    dir_.write("config.toml",
               store::seal_config(config::to_toml(experiment::experiment_schema(other)), "run-1"));
  }

  /// The configuration names another vocabulary, of two more pieces.
  void name_another_vocabulary() {
    translation_of(e_).tokenizer.src_vocab = dir_.write("more.txt", "a\nb\nc\nd\ne\nf\n");
    translation_of(e_).tokenizer.vocab_multiple = 1;
  }

  experiment::Preflight weights(bool full = false) const {
    return run_check({.experiment = {.options = e_}, .weights = true, .full = full});
  }

  testing::TempDir dir_;
  Experiment e_;
};

TEST_F(EngineCheck, WeightsThatFitStopNothingAndAreNotVerified) {
  const auto found = weights();
  EXPECT_TRUE(found.stops.empty()) << found.stops.front().what;
  ASSERT_EQ(found.unread.size(), 1u);
  EXPECT_EQ(found.unread[0].key, "train.init_from");
}

// 4 heads of 4 have the tensors of 2 heads of 8, and compute something else with them.
TEST_F(EngineCheck, WeightsOfAnotherModelWithTheSameShapesStop) {
  make_it_a_run_with_heads(4);
  const auto found = weights();
  ASSERT_EQ(found.stops.size(), 1u);
  EXPECT_EQ(found.stops[0].key, "train.init_from");
  EXPECT_EQ(found.stops[0].code, ExitCode::kUsage);
  EXPECT_NE(found.stops[0].what.find("model.encoder.num_heads: 4 there, 2 here"), std::string::npos)
      << found.stops[0].what;
  e_.train.init_only = {"*"};  // who names tensors gets them
  EXPECT_TRUE(weights().stops.empty());
}

// As the names of the checkpoint's tensors say.
TEST_F(EngineCheck, WeightsOfAnotherModelAreWarnedOfWhereTheyAreTaken) {
  make_it_a_run_with_heads(4);
  const auto told = [&](const std::string& entry) {
    e_.train.init_only = {entry};
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(weights().stops.empty());
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string heads = "model.encoder.num_heads: 4 there, 2 here";
  EXPECT_NE(told("encoder.*").find(heads), std::string::npos);
  EXPECT_EQ(told("decoder.*").find("belong to another model"), std::string::npos);
}

TEST_F(EngineCheck, WhatShapesHideAndWhatTheyShowIsToldAtOnce) {
  make_it_a_run_with_heads(4);
  translation_of(e_).model.encoder.as<models::StackOptions>().ffn_dim = 24;
  const auto found = weights();
  ASSERT_EQ(found.stops.size(), 2u);
  EXPECT_NE(found.stops[0].what.find("model.encoder.num_heads: 4 there, 2 here"), std::string::npos)
      << found.stops[0].what;
  EXPECT_NE(found.stops[1].what.find(
                "`encoder.layers.0.ffn.up.weight` is [8, 16], the model wants [24, 16]"),
            std::string::npos)
      << found.stops[1].what;
  EXPECT_EQ(experiment::problems_of(found.stops, {}).size(), 2u);
  EXPECT_EQ(experiment::exit_code_of(found.stops), ExitCode::kUsage);
}

TEST_F(EngineCheck, WeightsOfAnotherShapeOrNameAreListed) {
  translation_of(e_).model.encoder.as<models::StackOptions>().ffn_dim = 24;
  translation_of(e_).model.decoder.as<models::StackOptions>().num_layers = 2;
  const auto found = weights();
  ASSERT_EQ(found.stops.size(), 1u);
  const auto& stop = found.stops[0];
  EXPECT_EQ(stop.key, "train.init_from");
  EXPECT_EQ(stop.code, ExitCode::kBadData);
  EXPECT_EQ(stop.stage, experiment::Stage::kWeights);
  for (const char* word : {"`encoder.layers.0.ffn.up.weight` is [8, 16], the model wants [24, 16]",
                           "more", "step_00000003/model.safetensors"}) {
    EXPECT_NE(stop.what.find(word), std::string::npos) << stop.what;
  }
  EXPECT_NE(stop.hint.find("`stretto check` lists every tensor"), std::string::npos) << stop.hint;
  ASSERT_GT(stop.details.size(), 6U);
  EXPECT_EQ(stop.details[0],
            "`encoder.layers.0.ffn.up.weight` is [8, 16], the model wants [24, 16]");
  EXPECT_EQ(stop.details.back().rfind("`decoder.layers.1.", 0), 0U) << stop.details.back();
  const auto problems = experiment::problems_of(found.stops, {});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].details, stop.details);
}

// By the rules of `check`, before training makes a folder.
TEST_F(EngineCheck, PatternsTextAndWeightsStopAStartTogether) {
  translation_of(e_).data.train_src = {dir_.write("train.src", "a b\nc d\n")};
  translation_of(e_).data.train_tgt = {dir_.write("train.tgt", "a b\n")};
  translation_of(e_).model.encoder.as<models::StackOptions>().ffn_dim = 24;
  translation_of(e_).model.decoder.as<models::StackOptions>().num_layers = 2;
  e_.optim.groups = {"encodr.* lr_scale=0.5"};
  std::string text;
  ::testing::internal::CaptureStderr();
  try {
    experiment::require_sound_start({.options = e_}, {.tensors = tensor_names, .check = run_check});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    text = error.what();
  }
  const std::string told = ::testing::internal::GetCapturedStderr();
  for (const char* word :
       {"`encodr.*` matches no parameter", "train.src has 2",
        "`encoder.layers.0.ffn.up.weight` is [8, 16], the model wants [24, 16]", "3 errors"}) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  }
  EXPECT_EQ(told.rfind("`train.init_from` (default), in full:\n", 0), 0U) << told;
  const auto found = weights();
  ASSERT_EQ(found.stops.size(), 1u);
  for (const auto& line : found.stops[0].details) {
    EXPECT_NE(told.find("\n  " + line + "\n"), std::string::npos) << told;
  }
}

TEST_F(EngineCheck, TheOtherRunsTokenizerIsTakenAndMustBeThere) {
  make_it_a_run();
  translation_of(e_).tokenizer = {};
  translation_of(e_).tokenizer.vocab_size = 30;  // yields
  EXPECT_TRUE(weights().stops.empty()) << weights().stops.front().what;
  fs::remove_all(dir_ / "tokenizer");
  const auto found = weights();
  ASSERT_EQ(found.stops.size(), 1u);
  EXPECT_EQ(found.stops[0].code, ExitCode::kUsage);
  EXPECT_NE(found.stops[0].what.find("there is no tokenizer beside"), std::string::npos);
}

TEST_F(EngineCheck, TextIsLookedAtWithTheTokenizerThatIsTakenAlong) {
  make_it_a_run();
  translation_of(e_).tokenizer = {};
  e_.train.init_from = (dir_ / "checkpoints/step_00000003").string();
  translation_of(e_).data.train_src = {dir_.write("train.src", "a b\nc d\n")};
  translation_of(e_).data.train_tgt = {dir_.write("train.tgt", "a e\nf g\n")};
  const auto look = [&] {
    return run_check({.experiment = {.options = e_}, .weights = true, .text = true, .full = true});
  };
  const auto found = look();
  ASSERT_EQ(found.stops.size(), 1u);
  EXPECT_EQ(found.stops[0].key, "data.train_src");
  EXPECT_EQ(found.stops[0].stage, experiment::Stage::kTraining);
  EXPECT_NE(found.stops[0].what.find("75.0 % of the target's tokens are `<unk>`"),
            std::string::npos)
      << found.stops[0].what;
  translation_of(e_).data.max_unknown = 1;
  EXPECT_TRUE(look().stops.empty()) << look().stops.front().what;
  translation_of(e_).data.max_tgt_tokens = 2;
  EXPECT_NE(look().stops.at(0).what.find("empty corpus"), std::string::npos);
}

TEST_F(EngineCheck, AnotherTokenizerThanThatOfTheWeightsIsAStop) {
  make_it_a_run();
  EXPECT_TRUE(weights().stops.empty()) << weights().stops.front().what;
  name_another_vocabulary();
  const auto found = weights();
  ASSERT_EQ(found.stops.size(), 1u);
  EXPECT_EQ(found.stops[0].code, ExitCode::kUsage);
  EXPECT_NE(found.stops[0].what.find("was trained with another tokenizer"), std::string::npos)
      << found.stops[0].what;
}

TEST_F(EngineCheck, MatchedPiecesMayBeOfAnyNumber) {
  make_it_a_run();
  name_another_vocabulary();
  e_.train.init_from = (dir_ / "checkpoints/step_00000003").string();
  e_.train.init_vocabulary = "match";
  for (const bool full : {false, true}) {
    EXPECT_TRUE(weights(full).stops.empty()) << weights(full).stops.front().what;
  }
  // One that is to be trained is not known yet: all but the number of rows must fit.
  translation_of(e_).tokenizer = {};
  translation_of(e_).tokenizer.vocab_size = 500;
  EXPECT_TRUE(weights().stops.empty()) << weights().stops.front().what;
  translation_of(e_).model.d_model = 32;
  auto found = weights();
  ASSERT_EQ(found.stops.size(), 1u);
  EXPECT_EQ(found.stops[0].code, ExitCode::kBadData);
  translation_of(e_).model.d_model = 16;
  fs::remove_all(dir_ / "tokenizer");
  found = weights();
  ASSERT_EQ(found.stops.size(), 1u);
  EXPECT_NE(found.stops[0].what.find("no tokenizer beside"), std::string::npos);
}

// The other run has a vocabulary for each side; `c` is piece 6 of its source and 4 of its target.
TEST_F(EngineCheck, PiecesAreNotMatchedWithATableOfTheOtherSide) {
  translation_of(e_).tokenizer.tgt_vocab = dir_.write("targets.txt", "c\nd\ne\nf\n");
  translation_of(e_).model.tie_embeddings = "decoder";
  save(4);
  make_it_a_run();
  e_.train.init_from = (dir_ / "checkpoints/step_00000004").string();
  e_.train.init_vocabulary = "match";
  const auto refusal = [&](const std::vector<std::string>& entries) -> std::string {
    e_.train.init_only = entries;
    const auto stops = weights().stops;
    return stops.empty() ? "" : stops.front().what;
  };
  EXPECT_EQ(refusal({"*"}), "");
  EXPECT_NE(refusal({"decoder.embedding.weight = encoder.embedding.weight"})
                .find("`decoder.embedding.weight` matches target pieces, and "
                      "`encoder.embedding.weight` has those of the source"),
            std::string::npos);
  // One table for both sides is found there by the encoder's name first.
  translation_of(e_).tokenizer.tgt_vocab.clear();
  translation_of(e_).model.tie_embeddings = "all";
  EXPECT_NE(refusal({"*"}).find("`embedding.weight` matches target pieces, and "
                                "`encoder.embedding.weight` has those of the source"),
            std::string::npos);
  EXPECT_EQ(refusal({"embedding.weight = decoder.embedding.weight", "*"}), "");
}

TEST_F(EngineCheck, NoCheckpointAndNoFolderAreToldAsTrainingTellsThem) {
  e_.train.init_from = (dir_ / "nothing").string();
  EXPECT_EQ(weights().stops.at(0).code, ExitCode::kUsage);
  fs::create_directories(dir_ / "empty");
  e_.train.init_from = (dir_ / "empty").string();
  EXPECT_EQ(weights().stops.at(0).code, ExitCode::kUsage);
  EXPECT_EQ(weights(/*full=*/true).stops.at(0).code, ExitCode::kUsage);
}

TEST_F(EngineCheck, DamageIsFoundWhenAllIsVerified) {
  e_.train.init_from = (dir_ / "checkpoints/step_00000003").string();
  EXPECT_TRUE(weights(/*full=*/true).stops.empty());
  EXPECT_TRUE(weights(/*full=*/true).unread.empty());
  const fs::path file = dir_ / "checkpoints/step_00000003/model.safetensors";
  std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
  bytes.seekp(-1, std::ios::end);
  bytes.put('x');
  bytes.close();
  const auto found = weights(/*full=*/true);
  ASSERT_EQ(found.stops.size(), 1u);
  EXPECT_NE(found.stops[0].what.find("checksum"), std::string::npos) << found.stops[0].what;
}

TEST_F(EngineCheck, ADeviceThatIsNotThereIsAStop) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "there is one";
  e_.run.device = "cuda";
  const auto device = run_check({.experiment = {.options = e_}, .machine = true}).stops;
  ASSERT_EQ(device.size(), 1u);
  EXPECT_EQ(device[0].key, "run.device");
  EXPECT_EQ(device[0].code, ExitCode::kUsage);
  e_.dist.backend = "nccl";
  const auto both = run_check({.experiment = {.options = e_}, .machine = true}).stops;
  ASSERT_EQ(both.size(), 1u) << "one GPU is missing, not two";
  EXPECT_EQ(both[0].key, "run.device");
  e_.run.device = "cpu";
  const auto backend = run_check({.experiment = {.options = e_}, .machine = true}).stops;
  ASSERT_EQ(backend.size(), 1u);
  EXPECT_EQ(backend[0].key, "dist.backend");
}

}  // namespace
}  // namespace stretto::engine
