#include "runs/initial_weights.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>

#include "base/hash.h"
#include "runs/checkpoint_tensors.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "runs/train_state.h"
#include "tests/base/failure.h"
#include "tests/store/checkpoint_fixture.h"

namespace stretto::runs {
namespace {

namespace fs = std::filesystem;
using store::testing::CheckpointTest;
using store::testing::TinyCheckpoint;

/// A model with the tensors of TinyCheckpoint: `w` of so many rows of 3, and `b`.
struct Model : torch::nn::Module {
  explicit Model(int64_t rows, int64_t width = 3) {
    w = register_parameter("w", torch::full({rows, width}, -1.0));
    b = register_parameter("b", torch::full({2}, -1.0));
  }
  torch::Tensor w, b;
};

/// A run with one checkpoint, of step 10, and a tokenizer of one file.
class InitialWeights : public CheckpointTest {
 protected:
  void SetUp() override {
    CheckpointTest::SetUp();
    auto folder = RunFolder::open_for_training(dir_.path());
    folder.write_config("[run]\n", "c0ffee");
    folder.write_assets(kFiles);
    run_id_ = folder.run_id();
    checkpoint_ = save_step(10, run_id_);
  }
  fs::path save_step(int64_t step, const std::string& run_id) const {
    TinyCheckpoint tiny(step, run_id);
    tiny.content.provenance.tokenizer = tokenizer_hashes(kFiles);
    TrainState state;
    state.step = step;
    tiny.content.state_json = state.to_json();
    return store().save(tiny.content);
  }
  /// Error(kBadData) of opening a run or checkpoint.
  static std::string refusal(const fs::path& path, Reading reading) {
    return testing::failure(ExitCode::kBadData, [&] { open_initial_run(path, reading); }).message();
  }
  /// What was said since the last call.
  std::string take_log() {
    const std::string said = ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    log_ += said;
    return said;
  }
  inline static const std::map<std::string, std::string> kFiles{{"src.vocab", "a\nb\n"}};
  inline static const std::map<std::string, std::string> kOther{{"src.vocab", "a\nc\n"}};
  std::string run_id_;
  fs::path checkpoint_;
};

TEST_F(InitialWeights, ARunAndItsCheckpointBringTheSameTokenizerHoweverTheyAreWritten) {
  for (const fs::path& path : {dir_.path(), dir_.path() / "", checkpoint_, checkpoint_ / "",
                               checkpoint_ / "." / ".." / checkpoint_.filename()}) {
    const auto run = open_initial_run(path);
    EXPECT_EQ(run.checkpoint.step, 10) << path;
    EXPECT_EQ(run.tokenizer, kFiles) << path;
    EXPECT_EQ(run.folder.lexically_normal().string(), dir_.path().string()) << path;
  }
}

TEST_F(InitialWeights, ACheckpointOutsideOfARunKnowsTheHashesAlone) {
  const fs::path moved = dir_.path() / "elsewhere";
  fs::rename(checkpoint_, moved);
  const auto run = open_initial_run(moved);
  EXPECT_TRUE(run.folder.empty());
  EXPECT_TRUE(run.tokenizer.empty());
  EXPECT_EQ(tokenizer_of(run), tokenizer_hashes(kFiles));
  require_tokenizer_of(run, tokenizer_hashes(kFiles));
  const Error error = testing::failure(
      ExitCode::kUsage, [&] { require_tokenizer_of(run, tokenizer_hashes(kOther)); });
  EXPECT_NE(std::string(error.what()).find("trained with SHA-256 " + sha256_hex("a\nb\n")),
            std::string::npos)
      << error.what();
}

TEST_F(InitialWeights, AnotherTokenizerIsRefusedBeforeAnythingIsCopied) {
  Model model(2);
  optim::Arena arena(model);
  const Error error = testing::failure(ExitCode::kUsage, [&] {
    initialise_from(open_initial_run(dir_.path()), arena, tokenizer_hashes(kOther));
  });
  EXPECT_NE(error.advice().find("train.init_vocabulary"), std::string::npos) << error.advice();
  EXPECT_EQ(model.w.max().item<float>(), -1);
  initialise_from(open_initial_run(dir_.path()), arena, tokenizer_hashes(kFiles));
  EXPECT_EQ(model.w[0][0].item<float>(), 10);
}

TEST_F(InitialWeights, ValuesThatAreNoNumbersAreRefusedBeforeAnythingIsCopied) {
  TinyCheckpoint tiny(20, run_id_);
  tiny.content.provenance.tokenizer = tokenizer_hashes(kFiles);
  TrainState state;
  state.step = 20;
  tiny.content.state_json = state.to_json();
  tiny.weights[7] = NAN;  // of `b`
  store().save(tiny.content);
  Model model(2);
  optim::Arena arena(model);
  const auto begin = [&](const TakenWeights& taken) {
    initialise_from(open_initial_run(dir_.path()), arena, tokenizer_hashes(kFiles), {}, taken);
  };
  for (const TakenWeights& taken : {TakenWeights{}, TakenWeights{.entries = {"*"}}}) {
    const Error error = testing::failure(ExitCode::kNumeric, [&] { begin(taken); });
    EXPECT_NE(std::string(error.what()).find("`b` has values that are infinite or NaN"),
              std::string::npos)
        << error.what();
    EXPECT_EQ(model.w.max().item<float>(), -1);
  }
  begin({.entries = {"w"}});
  EXPECT_EQ(model.w[0][0].item<float>(), 20);
}

TEST_F(InitialWeights, ARunWhoseTokenizerWasExchangedIsRefused) {
  fs::remove_all(dir_.path() / "tokenizer");
  fs::create_directories(dir_.path() / "tokenizer");
  overwrite(dir_.path() / "tokenizer" / "src.vocab", kOther.at("src.vocab"));
  for (const Reading reading : {Reading::kAll, Reading::kHeads}) {
    const std::string message = refusal(dir_.path(), reading);
    EXPECT_NE(message.find("src.vocab: SHA-256 "), std::string::npos) << message;
  }
}

TEST_F(InitialWeights, HeadsAreReadWithoutTheWeightsBehindThem) {
  const fs::path newest = save_step(20, run_id_);
  std::string bytes = bytes_of(newest / "model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  overwrite(newest / "model.safetensors", bytes);
  const auto heads = open_initial_run(dir_.path(), Reading::kHeads);
  EXPECT_EQ(heads.checkpoint.step, 20);
  EXPECT_EQ(heads.tokenizer, kFiles);
  EXPECT_EQ(heads.folder.string(), dir_.path().string());
  Model model(2), wide(2, 4);
  const auto fits = [&](Model& wanted) {
    require_weights_fit(heads.checkpoint.file("model"), "here", optim::Arena(wanted));
  };
  fits(model);
  EXPECT_TRUE(testing::failure(ExitCode::kBadData, [&] { fits(wide); })
                  .advice()
                  .starts_with("give [model] and [tokenizer] the values of that run (its "
                               "config.toml)"));
  // What was imported has no config.toml; its place is the folder.
  const Error imported = testing::failure(ExitCode::kBadData, [&] {
    require_weights_fit(heads.checkpoint.file("model"), dir_.path().string(), optim::Arena(wide));
  });
  EXPECT_TRUE(imported.advice().starts_with("leave [model] and [tokenizer] out"))
      << imported.advice();
  // Where a checkpoint is damaged, training takes the next, or reports it; so do heads that cannot
  // be read.
  EXPECT_EQ(open_initial_run(dir_.path()).checkpoint.step, 10);
  EXPECT_NE(refusal(newest, Reading::kAll).find("checksum"), std::string::npos);
  EXPECT_EQ(open_initial_run(newest, Reading::kHeads).checkpoint.step, 20);
  overwrite(newest / "manifest.json", "{");
  EXPECT_EQ(open_initial_run(dir_.path(), Reading::kHeads).checkpoint.step, 10);
  refusal(newest, Reading::kHeads);
}

TEST_F(InitialWeights, ACheckpointOfAnotherRunIsRefusedHoweverMuchOfItIsRead) {
  const fs::path foreign = save_step(20, "another-run");
  for (const Reading reading : {Reading::kAll, Reading::kHeads}) {
    for (const fs::path& path : {dir_.path(), foreign}) {
      const std::string message = refusal(path, reading);
      EXPECT_NE(message.find("is a checkpoint of run another-run"), std::string::npos) << message;
    }
  }
}

TEST_F(InitialWeights, MatchedRowsAreTakenAndTheRestStays) {
  Model model(5);
  optim::Arena arena(model);
  // Stored are rows 10, 10.25, 10.5 and 10.75, 11, 11.25.
  const auto match = [](const InitialRun& run) {
    EXPECT_EQ(run.checkpoint.step, 10);
    return std::vector<MatchedTable>{{"w", {1, -1, 0, 1}}};
  };
  initialise_from(open_initial_run(checkpoint_), arena, tokenizer_hashes(kOther), match);
  EXPECT_TRUE(torch::equal(model.w.index({torch::indexing::Slice(), 0}),
                           torch::tensor({10.75f, -1.0f, 10.0f, 10.75f, -1.0f})))
      << model.w;
  EXPECT_EQ(model.b[0].item<float>(), 11.5);
}

TEST_F(InitialWeights, AMatchedTableOfAnotherWidthOrWithTooFewRowsIsRefused) {
  Model wide(2, 4), narrow(2);
  optim::Arena wide_arena(wide), narrow_arena(narrow);
  const auto matches = [](std::vector<int64_t> rows) {
    return [rows](const InitialRun&) { return std::vector<MatchedTable>{{"w", rows}}; };
  };
  const auto refused = [&](optim::Arena& arena, const MatchTables& match) {
    return testing::failure(
               ExitCode::kBadData,
               [&] { initialise_from(open_initial_run(checkpoint_), arena, {}, match); })
        .message();
  };
  EXPECT_NE(refused(wide_arena, matches({0})).find("`w` is [2, 3], the model wants [2, 4]"),
            std::string::npos);
  EXPECT_NE(refused(narrow_arena, matches({2})).find("`w` is [2, 3], the model wants [3, 3]"),
            std::string::npos);
  EXPECT_EQ(narrow.b.max().item<float>(), -1) << "something was copied";
}

TEST_F(InitialWeights, APathThatIsNeitherARunNorACheckpointIsNamedWithWhatItIs) {
  fs::create_directories(dir_ / "empty");
  fs::create_directories(dir_ / "begun/checkpoints");
  overwrite(dir_ / "file", "no weights");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"nothing", " does not exist"},
      {"file", " is a file"},
      {"file/inside", " does not exist"},
      {"empty", " is neither a run folder nor a checkpoint"},
      {"begun", " is a run folder without a checkpoint"}};
  for (const auto& [name, found] : cases) {
    for (const Reading reading : {Reading::kAll, Reading::kHeads}) {
      const fs::path path = dir_ / name;
      const Error error =
          testing::failure(ExitCode::kUsage, [&] { open_initial_run(path, reading); });
      const std::string what = error.what();
      EXPECT_TRUE(what.starts_with("train.init_from: " + path.string() + found)) << what;
      EXPECT_NE(error.advice().find("a run folder that has a checkpoint"), std::string::npos);
      EXPECT_NE(error.advice().find("a model folder of transformers"), std::string::npos);
    }
  }
  overwrite(dir_ / "empty/config.json", "{\"model_type\": \"bert\"}");
  const Error error = testing::failure(ExitCode::kUsage, [&] { open_initial_run(dir_ / "empty"); });
  EXPECT_NE(error.advice().find("stretto import " + (dir_ / "empty").string() + " --run RUN"),
            std::string::npos)
      << error.advice();
}

/// Weights of any shape; names have "/" since those of one module have no dots.
struct Parts : torch::nn::Module {
  explicit Parts(const std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors,
                 float first) {
    for (const auto& [name, shape] : tensors) {
      values[name] = register_parameter(name, torch::full(shape, first));
      first += 1;
    }
  }
  std::map<std::string, torch::Tensor> values;
};

/// A model file with these tensors, which hold 100, 101 and so on.
class PartOfWeights : public CheckpointTest {
 protected:
  store::SafetensorsFile file(
      const std::vector<std::pair<std::string, std::vector<int64_t>>>& tensors) {
    Parts stored(tensors, 100);
    optim::Arena arena(stored);
    Snapshot snapshot;
    snapshot.take(arena, {}, Snapshot::Bytes::kOwn);
    const fs::path path = dir_ / ("weights" + std::to_string(++files_) + ".safetensors");
    store::write_safetensors(path, snapshot.files().front().second, {});
    return store::SafetensorsFile(path);
  }
  static float value(const Parts& model, const std::string& name) {
    return model.values.at(name).min().item<float>();
  }
  int files_ = 0;
};

TEST_F(PartOfWeights, IsTakenByNameAndTheRestStays) {
  const auto stored = file({{"enc/w", {2, 3}}, {"enc/b", {3}}, {"dec/w", {4, 4}}});
  Parts model({{"enc/w", {2, 3}}, {"enc/b", {3}}, {"enc/extra", {5}}, {"dec/w", {7, 2}}}, 1);
  optim::Arena arena(model);
  const auto found = load_some_weights(stored, "there", arena, {.entries = {"enc/*"}});
  EXPECT_EQ(found.num_taken, 2);
  EXPECT_EQ(found.num_tensors, 4);
  EXPECT_EQ(found.missing, std::vector<std::string>{"`enc/extra`"});
  EXPECT_EQ(value(model, "enc/w"), 100);
  EXPECT_EQ(value(model, "enc/b"), 101);
  EXPECT_EQ(value(model, "enc/extra"), 3);
  EXPECT_EQ(value(model, "dec/w"), 4);
}

TEST_F(PartOfWeights, HasOtherNamesThereWhereTheEntrySaysSo) {
  const auto stored = file({{"old/w", {2, 3}}, {"old/b", {3}}, {"enc/b", {3}}});
  Parts model({{"enc/w", {2, 3}}, {"enc/b", {3}}, {"table", {3}}}, 1);
  optim::Arena arena(model);
  load_some_weights(stored, "there", arena, {.entries = {"enc/b", "enc/* = old/*", "table=old/b"}});
  EXPECT_EQ(value(model, "enc/w"), 100);
  EXPECT_EQ(value(model, "enc/b"), 102) << "the first entry that matches";
  EXPECT_EQ(value(model, "table"), 101);
}

TEST_F(PartOfWeights, ListsEachTensorOfAnotherShapeAndTakesNothingThen) {
  const auto stored = file({{"a", {2, 3}}, {"b", {3}}, {"c", {4, 4}}, {"d", {5}}, {"e", {2}}});
  Parts model({{"a", {2, 4}}, {"b", {2}}, {"c", {4, 5}}, {"d", {6}}, {"e", {2}}}, 1);
  optim::Arena arena(model);
  const TakenWeights all{.entries = {"*"}};
  for (const bool load : {false, true}) {
    const Error error = testing::failure(ExitCode::kBadData, [&] {
      load ? load_some_weights(stored, "there", arena, all)
           : require_some_weights_fit(stored, "there", arena, all);
    });
    const std::string what = error.message();
    const std::vector<std::string> wrong{
        "`a` is [2, 3], the model wants [2, 4]", "`c` is [4, 4], the model wants [4, 5]",
        "`b` is [3], the model wants [2]", "`d` is [5], the model wants [6]"};
    for (size_t i = 0; i < wrong.size(); ++i) {
      EXPECT_EQ(what.find(wrong[i]) != std::string::npos, i < 3) << what;
    }
    EXPECT_NE(what.find("; and 1 tensor more"), std::string::npos) << what;
    EXPECT_NE(what.find("`stretto check` lists every tensor"), std::string::npos) << what;
    EXPECT_EQ(error.details(), wrong);
  }
  EXPECT_EQ(value(model, "e"), 5) << "something was copied";
}

TEST_F(PartOfWeights, ThatIsNotThereAtAllIsRefusedWithTheNames) {
  const auto stored = file({{"a", {2, 3}}});
  Parts model({{"a", {2, 3}}, {"enc/w", {2, 3}}, {"enc/b", {3}}}, 1);
  optim::Arena arena(model);
  const Error error = testing::failure(ExitCode::kUsage, [&] {
    load_some_weights(stored, "there", arena, {.entries = {"a", "enc/*", "enc/w"}});
  });
  const std::string what = error.what();
  EXPECT_NE(what.find("train.init_only: `enc/*` takes nothing, there is no `enc/w`, `enc/b`"),
            std::string::npos)
      << what;
  EXPECT_NE(what.find("`enc/w` takes nothing: entries before it"), std::string::npos) << what;
  EXPECT_NE(error.advice().find("PATTERN = SOURCE"), std::string::npos);
  EXPECT_EQ(value(model, "a"), 1);
}

TEST_F(PartOfWeights, TakesATiedTensorByAnyOfItsNames) {
  const TakenWeights taken{.entries = {"enc/*"},
                           .tied = {{"enc/table", "table"}, {"out", "table"}}};
  for (const char* there : {"table", "enc/table"}) {
    const auto stored = file({{there, {2, 3}}, {"enc/w", {3}}});
    Parts model({{"table", {2, 3}}, {"enc/w", {3}}}, 1);
    optim::Arena arena(model);
    EXPECT_EQ(load_some_weights(stored, "there", arena, taken).num_taken, 2);
    EXPECT_EQ(value(model, "table"), 100) << there;
  }
}

TEST_F(PartOfWeights, DoesNotMatchPiecesWithATableOfAnotherVocabulary) {
  const auto stored = file({{"enc/table", {4, 3}}, {"dec/table", {4, 3}}, {"old", {4, 3}}});
  Parts model({{"enc/table", {2, 3}}, {"dec/table", {2, 3}}}, 1);
  optim::Arena arena(model);
  std::vector<MatchedTable> matched{{"enc/table", {0, 3}, "source"},
                                    {"dec/table", {0, 2}, "target"}};
  const TakenWeights crossed{.entries = {"enc/table = dec/table", "dec/table = enc/table"}};
  for (const bool load : {false, true}) {
    const Error error = testing::failure(ExitCode::kUsage, [&] {
      load ? load_some_weights(stored, "there", arena, crossed, matched)
           : require_some_weights_fit(stored, "there", arena, crossed, matched);
    });
    EXPECT_EQ(std::string(error.what()),
              "train.init_only: `enc/table` matches source pieces, and `dec/table` has those of "
              "the target; `dec/table` matches target pieces, and `enc/table` has those of the "
              "source in there");
    EXPECT_NE(error.advice().find("of the same vocabulary"), std::string::npos);
  }
  EXPECT_EQ(value(model, "enc/table"), 1) << "something was copied";

  // A table with another name may have the pieces of either side.
  load_some_weights(stored, "there", arena, {.entries = {"enc/table = old"}}, matched);
  EXPECT_EQ(value(model, "enc/table"), 102);
  for (auto& table : matched) table.vocabulary = "";  // the other run had one vocabulary
  load_some_weights(stored, "there", arena, crossed, matched);
  EXPECT_EQ(value(model, "enc/table"), 101);
  EXPECT_EQ(value(model, "dec/table"), 100);
}

TEST_F(PartOfWeights, TakesFrozenTensorsToo) {
  const auto stored = file({{"enc/w", {2, 3}}, {"dec", {3}}});
  Parts model({{"enc/w", {2, 3}}, {"dec", {3}}}, 1);
  model.values.at("enc/w").set_requires_grad(false);
  optim::Arena arena(model);
  EXPECT_EQ(load_some_weights(stored, "there", arena, {.entries = {"enc/*"}}).num_taken, 1);
  EXPECT_EQ(value(model, "enc/w"), 100);
  load_weights(stored, "there", arena);
  EXPECT_EQ(value(model, "dec"), 101);
}

// Another task's head.

TEST_F(PartOfWeights, ReplaceablePartsMayDifferAndNothingElse) {
  const auto stored = file({{"enc/w", {2, 3}}, {"head/w", {4, 3}}, {"head/old", {4}}});
  const TakenWeights taken{.entries = {}, .replaceable = {"head/*"}};
  Parts model({{"enc/w", {2, 3}}, {"head/w", {5, 3}}, {"head/new", {5}}}, 1);
  optim::Arena arena(model);
  const auto found = load_some_weights(stored, "there", arena, taken);
  EXPECT_EQ(found.num_taken, 1);
  EXPECT_EQ(found.num_tensors, 3);
  EXPECT_EQ(found.anew, (std::vector<std::string>{"head/w", "head/new"}));
  EXPECT_EQ(found.left_over, (std::vector<std::string>{"head/w", "head/old"}));
  EXPECT_EQ(value(model, "enc/w"), 100);
  EXPECT_EQ(value(model, "head/w"), 2);

  Parts same({{"enc/w", {2, 3}}, {"head/w", {4, 3}}}, 1);
  optim::Arena same_arena(same);
  EXPECT_EQ(load_some_weights(stored, "there", same_arena, taken).num_taken, 2);
  EXPECT_EQ(value(same, "head/w"), 101);

  // In another task, a tensor that fits means something else.
  Parts anew({{"enc/w", {2, 3}}, {"head/w", {4, 3}}}, 1);
  optim::Arena anew_arena(anew);
  const auto rest =
      load_some_weights(stored, "there", anew_arena,
                        {.entries = {}, .replaceable = {"head/*"}, .replaces_all = true});
  EXPECT_EQ(rest.num_taken, 1);
  EXPECT_EQ(rest.anew, std::vector<std::string>{"head/w"});
  EXPECT_EQ(rest.left_over, (std::vector<std::string>{"head/w", "head/old"}));
  EXPECT_EQ(value(anew, "enc/w"), 100);
  EXPECT_EQ(value(anew, "head/w"), 2);

  Parts other({{"enc/w", {3, 3}}, {"head/w", {4, 3}}}, 1);
  optim::Arena other_arena(other);
  testing::failure(ExitCode::kBadData,
                   [&] { load_some_weights(stored, "there", other_arena, taken); });
  EXPECT_EQ(value(other, "head/w"), 2);
}

TEST_F(PartOfWeights, CountsWhatTheModelAddsApart) {
  const auto stored = file({{"old/w", {2, 3}}, {"old/adapter", {3}}, {"new/lora", {3}}});
  Parts model({{"new/w", {2, 3}}, {"new/adapter", {3}}, {"new/lora", {3}}}, 1);
  optim::Arena arena(model);
  const TakenWeights renamed{.entries = {"new/* = old/*"},
                             .added = {"new/adapter", "new/lora", "new/other"}};
  const auto found = load_some_weights(stored, "there", arena, renamed);
  EXPECT_EQ(found.num_taken, 2) << "the adapter is there, under another name";
  EXPECT_EQ(found.num_tensors, 2);
  EXPECT_EQ(found.num_added, 1);
  EXPECT_EQ(found.missing, std::vector<std::string>{});
  EXPECT_EQ(value(model, "new/adapter"), 101);
  EXPECT_EQ(value(model, "new/lora"), 3);

  const TakenWeights nothing{.entries = {"new/lora = old/lora"}, .added = {"new/lora"}};
  const Error error = testing::failure(ExitCode::kUsage,
                                       [&] { load_some_weights(stored, "there", arena, nothing); });
  EXPECT_NE(std::string(error.what()).find("takes nothing, there is no `old/lora`"),
            std::string::npos)
      << error.what();
}

TEST_F(InitialWeights, WhatAFamilyKeepsBesideTheTokenizerCountsWhereBothSidesHaveIt) {
  const auto tokenizer = tokenizer_hashes(kFiles);
  auto labelled = tokenizer, reversed = tokenizer, other = tokenizer;
  labelled["names.json"] = "1234";
  reversed["names.json"] = "5678";
  EXPECT_EQ(tokenizer_difference(labelled, labelled), "");
  EXPECT_EQ(tokenizer_difference(labelled, tokenizer), "") << "another task with one tokenizer";
  EXPECT_EQ(tokenizer_difference(tokenizer, labelled), "") << "an early checkpoint";
  EXPECT_EQ(tokenizer_difference(labelled, reversed),
            "names.json: SHA-256 5678, trained with SHA-256 1234");
  // Another tokenizer that was put beside it would be read.
  other["tokenizer.json"] = "90ab";
  EXPECT_EQ(tokenizer_difference(tokenizer, other),
            "tokenizer.json: SHA-256 90ab, trained with no such file");
}

TEST_F(InitialWeights, TrainedWithAnotherOfTheFilesBesideTheTokenizerAreRefusedByItsName) {
  auto run = open_initial_run(dir_.path());
  auto hashes = tokenizer_hashes(kFiles);
  hashes["names.json"] = "1234";
  run.checkpoint.provenance.tokenizer = hashes;
  run.tokenizer.clear();
  require_tokenizer_of(run, hashes);
  hashes["names.json"] = "5678";
  const Error error =
      testing::failure(ExitCode::kUsage, [&] { require_tokenizer_of(run, hashes); });
  EXPECT_NE(std::string(error.what()).find("was trained with another names.json (names.json: "),
            std::string::npos)
      << error.what();
  EXPECT_NE(error.advice().find("whose names.json is that of this run"), std::string::npos);
}

TEST_F(InitialWeights, ARunWithFurtherFilesBringsItsTokenizerAlone) {
  overwrite(dir_.path() / "tokenizer" / "names.json", "[]");
  const auto run = open_initial_run(dir_.path());
  EXPECT_EQ(run.tokenizer.size(), 2U);
  require_tokenizer_of(run, tokenizer_hashes(kFiles));
}

/// The tensors of Model, a linear map with LoRA, and an adapter in a head.
struct AdaptedModel : Model {
  AdaptedModel() : Model(2) {
    const auto map = register_module("map", std::make_shared<torch::nn::Module>());
    map->register_parameter("lora_a", torch::full({1, 3}, 0.5));
    map->register_parameter("lora_b", torch::zeros({2, 1}));
    map->register_buffer("lora_parts", torch::ones({1, 2}));
    const auto head = register_module("head", std::make_shared<torch::nn::Module>());
    const auto adapter = head->register_module("adapter", std::make_shared<torch::nn::Module>());
    const auto down = adapter->register_module("down", std::make_shared<torch::nn::Module>());
    down->register_parameter("weight", torch::full({1, 3}, 0.25));
  }
};

TEST_F(InitialWeights, LoraAndAdaptersOfTheNewModelAreToldAsNew) {
  const auto said_of = [&](const TakenWeights& taken) {
    AdaptedModel model;
    optim::Arena arena(model);
    take_log();
    initialise_from(open_initial_run(checkpoint_), arena, tokenizer_hashes(kFiles), {}, taken);
    EXPECT_EQ(model.b[0].item<float>(), 11.5);
    EXPECT_EQ(model.named_parameters()["map.lora_a"].min().item<float>(), 0.5);
    return take_log();
  };
  const std::string from = " from " + checkpoint_.string(),
                    added = "; 4 tensors of LoRA and adapters are new\n";
  const auto expect_said = [](const std::string& log, const std::string& line) {
    EXPECT_NE(log.find(line), std::string::npos) << line << log;
  };
  expect_said(said_of({.entries = {}}), "weights" + from + added);
  const TakenWeights but_heads{.entries = {}, .replaceable = {"head.*"}, .replaces_all = true};
  const std::string said = said_of(but_heads);
  expect_said(said, "weights of 2 of 2 tensors" + from + added);
  EXPECT_EQ(said.find("begin anew: "), std::string::npos) << said;
  EXPECT_EQ(said.find("left there: "), std::string::npos) << said;
  expect_said(
      said_of({.entries = {"b", "map.*"}}),
      "weights of 1 of 2 tensors" + from + " (train.init_only); the others begin anew" + added);
}

TEST_F(InitialWeights, OnlyWhatIsNamedComesFromTheOtherRun) {
  Model model(2);
  optim::Arena arena(model);
  initialise_from(open_initial_run(dir_.path()), arena, tokenizer_hashes(kFiles), {},
                  {.entries = {"b"}});
  EXPECT_EQ(model.b[0].item<float>(), 11.5);
  EXPECT_EQ(model.w.max().item<float>(), -1);
}

}  // namespace
}  // namespace stretto::runs
