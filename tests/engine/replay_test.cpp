#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/pairs/pair_columns.h"
#include "engine/commands.h"
#include "engine/engine_entry.h"
#include "engine/session.h"
#include "families/translation/engine/translation.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_options.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "tests/parallel/refusing_allocator.h"
#include "train/forensics/forensics_report.h"

namespace stretto::engine {
namespace {

constexpr int64_t kStep = 5;

/// 60 pairs; each has a word of its own.
std::string corpus_text(const std::string& verb) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    const std::string word = std::string(1, static_cast<char>('a' + i % 26)) +
                             static_cast<char>('a' + i / 26) + static_cast<char>('q' + i % 7);
    text += "the " + word + " " + verb + " the house";
    if (i % 3 == 0) text += " and " + word;
    text += "\n";
  }
  return text;
}

/// A run folder as training leaves it, with a report of an update that never happened.
class ReplayCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    auto& e = experiment_;
    e.run = {.seed = 3, .threads = 1, .device = "cpu"};
    translation_of(e).data.train_src = {folder_.write("train.src", corpus_text("sees"))};
    translation_of(e).data.train_tgt = {folder_.write("train.tgt", corpus_text("sieht"))};
    translation_of(e).data.max_tokens = 160;
    translation_of(e).data.cache_dir = (folder_.path() / "cache").string();
    translation_of(e).tokenizer.vocab_size = 160;
    translation_of(e).model.d_model = 16;
    translation_of(e).model.encoder =
        models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
    translation_of(e).model.decoder =
        models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
    translation_of(e).model.norm = "pre";
    translation_of(e).model.tie_embeddings = "decoder";
    begin_run();
  }

  void begin_run() {
    const auto& e = experiment_;
    std::filesystem::remove_all(folder_.path() / "run");
    auto run = runs::RunFolder::open_for_training(folder_.path() / "run");
    run.write_config("[run]\nseed = 3\n", "hash");
    auto tokenizers = make_experiment_tokenizers(e);
    run.write_assets(tokenizers.assets);
    run_id_ = run.run_id();
    task_ = std::make_unique<tasks::TranslationTask>(
        e, tasks::make_translation_model(e, std::move(tokenizers), at::kCPU));
    arena_ = std::make_unique<optim::Arena>(task_->model());
  }

  torch::Tensor weight(const std::string& name) {
    for (const auto& slot : arena_->slots()) {
      if (slot.name == name) return optim::Arena::view(arena_->params(), slot);
    }
    throw std::logic_error("no weight " + name);
  }

  /// A source token that only one sentence has.
  struct Rare {
    int64_t token = 0, sample = 0;
    data::Position position;
  };
  Rare rare_token() {
    std::map<int64_t, std::set<int64_t>> samples;
    std::map<int64_t, Rare> last;
    const auto& batches = task_->train_batches();
    for (int64_t index = 0; index < batches.num_batches(); ++index) {
      const auto batch = batches.load(0, index);
      for (int64_t i = 0; i < batch.num_sequences(); ++i) {
        for (int32_t at = data::source(batch).offsets[i]; at < data::source(batch).offsets[i + 1];
             ++at) {
          samples[data::source(batch).values[at]].insert(batch.sample_ids[i]);
          last[data::source(batch).values[at]] = {
              data::source(batch).values[at], batch.sample_ids[i], {0, index}};
        }
      }
    }
    for (const auto& [token, where] : samples) {
      if (where.size() == 1) return last.at(token);
    }
    throw std::logic_error("each token occurs in several sentences");
  }

  data::Batch load(data::Position at) { return task_->train_batches().load(at.epoch, at.index); }

  /// What training would write after an update of these micro-batches.
  std::string write(const std::vector<data::Position>& positions,
                    kernels::Compute compute = kernels::Compute::kFp32) {
    std::vector<data::Batch> batches;
    for (const auto& at : positions) batches.push_back(load(at));
    return write(positions, batches, compute);
  }

  std::string write(const std::vector<data::Position>& positions,
                    const std::vector<data::Batch>& batches, kernels::Compute compute) {
    const auto report = train::examine(*task_, *arena_, batches, {.seed = 3, .update = kStep - 1},
                                       /*loss_scale=*/8, compute);
    const train::UpdateRecord record{.run_id = run_id_,
                                     .config_hash = "hash",
                                     .step = kStep,
                                     .rank = rank_,
                                     .world_size = world_size_,
                                     .positions = positions,
                                     .lr = 1e-3,
                                     .checkpoint = {},
                                     .loss_scales = {8},
                                     .device = "cpu",
                                     .tokenizer = tokenizer_,
                                     .weights_hash = weights_hash_};
    const train::ReportText text{rank_,
                                 train::report_to_json(report, record, train::weights_name(kStep))};
    return train::write_reports(folder_.path() / "run", kStep, {text}, *arena_).front().string();
  }

  struct ReplayResult {
    int code = -1;
    std::string out;
    nlohmann::json json() const { return nlohmann::json::parse(out); }
  };
  ReplayResult replay(const std::string& file, bool json) {
    ReplayResult result;
    result.out = stretto::testing::standard_output_of([&] {
      result.code = run_replay({.experiment = {.options = experiment_},
                                .run_directory = (folder_.path() / "run").string(),
                                .file = file,
                                .json = json});
    });
    return result;
  }

  bool refused(const std::string& file, const std::string& reason) {
    try {
      replay(file, /*json=*/true);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
      return true;
    }
    return false;
  }

  stretto::testing::TempDir folder_;
  experiment::Experiment experiment_;
  std::string run_id_, weights_hash_;
  int64_t rank_ = 0, world_size_ = 1;
  std::map<std::string, std::string> tokenizer_;
  std::unique_ptr<tasks::TranslationTask> task_;
  std::unique_ptr<optim::Arena> arena_;
};

TEST_F(ReplayCommand, ReproducesAnOverflowWithItsModuleSampleAndSentence) {
  const Rare rare = rare_token();
  weight("encoder.embedding.weight")[rare.token].fill_(2e38F);
  const int64_t other = rare.position.index == 0 ? 1 : 0;
  const auto file = write({{.epoch = 0, .index = other}, rare.position});
  const auto result = replay(file, /*json=*/true);
  EXPECT_EQ(result.code, 0);
  const auto json = result.json();
  EXPECT_TRUE(json.at("reproduced").get<bool>());
  EXPECT_TRUE(json.at("same_tensor").get<bool>());
  EXPECT_EQ(json.at("step").get<int64_t>(), kStep);
  ASSERT_EQ(json.at("trials").size(), 1U);  // it ran in fp32 already
  const auto& trial = json.at("trials").at(0);
  EXPECT_EQ(trial.at("first").at("name"), "encoder.embedding");
  EXPECT_EQ(trial.at("micro_batch").get<int64_t>(), 1);
  EXPECT_EQ(trial.at("samples").get<std::vector<int64_t>>(), (std::vector<int64_t>{rare.sample}));
  ASSERT_EQ(json.at("sentences").size(), 1U);
  EXPECT_TRUE(json.at("sentences").at(0).at("source").get<std::string>().starts_with("the "));
  EXPECT_NE(json.at("sentences").at(0).at("target").get<std::string>().find(" sieht the house"),
            std::string::npos);

  const auto text = replay(file, /*json=*/false);
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("\nas recorded: not finite, first the output of encoder.embedding"),
            std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("\nsample " + std::to_string(rare.sample) + ": the "), std::string::npos);
  EXPECT_TRUE(text.out.ends_with("\nreproduced\n")) << text.out;
}

TEST_F(ReplayCommand, TakesThePartsOfAMicroBatchThatWasSplit) {
  const Rare rare = rare_token();
  weight("encoder.embedding.weight")[rare.token].fill_(2e38F);
  const auto whole = load(rare.position);
  const int64_t middle = whole.num_sequences() / 2;
  const std::vector<data::Batch> halves{data::part(whole, 0, middle),
                                        data::part(whole, middle, whole.num_sequences())};
  const auto file = write({rare.position, rare.position}, halves, kernels::Compute::kFp32);
  const auto json = replay(file, /*json=*/true).json();
  EXPECT_TRUE(json.at("same_tensor").get<bool>());
  const auto& ids = halves[0].sample_ids;
  const bool in_first = std::find(ids.begin(), ids.end(), rare.sample) != ids.end();
  EXPECT_EQ(json.at("trials").at(0).at("micro_batch").get<int64_t>(), in_first ? 0 : 1);
}

TEST_F(ReplayCommand, SaysThatTheValuesAreFiniteNow) {
  const auto file = write({{.epoch = 2, .index = 0}});
  const auto result = replay(file, /*json=*/false);
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(result.out.ends_with("not reproduced: the values are finite now\n")) << result.out;
  EXPECT_FALSE(replay(file, /*json=*/true).json().at("reproduced").get<bool>());
}

// The allocator's own exception, which says "DefaultCPUAllocator: …": the command line sees none of
// libtorch's types.
TEST_F(ReplayCommand, LeavesTheEngineWithAdviceWhereThereIsNoMemory) {
  const auto file = write({{.epoch = 2, .index = 0}});
  const test::RefusingScope scope;
  test::refusal().above = 4096;
  try {
    stretto_engine.replay({.experiment = {.options = experiment_},
                           .run_directory = (folder_.path() / "run").string(),
                           .file = file,
                           .json = true});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kOutOfMemory) << error.what();
    EXPECT_TRUE(std::string(error.what()).starts_with("out of memory: ")) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    EXPECT_NE(error.advice().find("run.device=cpu"), std::string::npos) << error.advice();
  }
}

TEST_F(ReplayCommand, SaysThatOneProcessCannotShowASumOverProcesses) {
  const auto file = write({{.epoch = 2, .index = 0}});
  auto json = nlohmann::json::parse(std::ifstream(file));
  json["world_size"] = 2;
  json["first"]["kind"] = "sum_of_gradients";
  json["first"]["name"] = "output.weight over 2 processes";
  std::ofstream(file) << json.dump();
  const auto result = replay(file, /*json=*/false);
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(result.out.ends_with(
      "\nnot reproduced: the values are finite now; training saw it in the sum over processes "
      "alone, which one process cannot show\n"))
      << result.out;
  EXPECT_EQ(result.out.find("doubt the machine"), std::string::npos) << result.out;
}

TEST_F(ReplayCommand, SaysWhenHalfPrecisionAloneOverflows) {
  // Finite in fp16, products are not. Half of the columns: a normalised row sums to zero.
  weight("encoder.layers.0.ffn.up.weight").slice(1, 0, 8).fill_(4e4F);
  const auto file = write({{.epoch = 0, .index = 0}}, kernels::Compute::kFp16);
  const auto result = replay(file, /*json=*/true);
  EXPECT_EQ(result.code, 0);
  const auto trials = result.json().at("trials");
  ASSERT_EQ(trials.size(), 3U);
  EXPECT_EQ(trials[0].at("first").at("name"), "encoder.layers.0.ffn.up");
  EXPECT_EQ(trials[0].at("precision"), "fp16");
  EXPECT_EQ(trials[0].at("loss_scale").get<double>(), 8);
  EXPECT_EQ(trials[1].at("loss_scale").get<double>(), 1);
  EXPECT_FALSE(trials[1].at("finite").get<bool>());
  EXPECT_EQ(trials[2].at("precision"), "fp32");
  EXPECT_TRUE(trials[2].at("finite").get<bool>());
}

TEST_F(ReplayCommand, DoesNotBlameHalfPrecisionForWhatFp32DoesNotMend) {
  weight("encoder.embedding.weight")[rare_token().token].fill_(2e38F);
  const auto file = write({rare_token().position}, kernels::Compute::kFp16);
  experiment_.optim.clip_norm = 1;
  const auto ill = replay(file, /*json=*/false).out;
  EXPECT_NE(ill.find("\n  in fp32 it is not finite either: "), std::string::npos) << ill;
  EXPECT_EQ(ill.find("train.precision"), std::string::npos) << ill;
  EXPECT_EQ(ill.find("clip_norm"), std::string::npos) << ill;
}

TEST_F(ReplayCommand, NamesTheCheckpointOfTheReportWhileItIsThere) {
  weight("decoder.final_norm.bias")[0] = std::numeric_limits<float>::infinity();
  const auto file = write({{.epoch = 0, .index = 0}});
  auto json = nlohmann::json::parse(std::ifstream(file));
  json["checkpoint"] = "step_00000004";
  std::ofstream(file) << json.dump();
  EXPECT_NE(replay(file, /*json=*/false).out.find("a new run (--run NEW)"), std::string::npos);
  const auto checkpoint = folder_.path() / "run" / "checkpoints" / "step_00000004";
  std::filesystem::create_directories(checkpoint);
  const auto text = replay(file, /*json=*/false).out;
  EXPECT_NE(text.find("(--run NEW train.init_from=" + checkpoint.string() + ")"), std::string::npos)
      << text;
}

TEST_F(ReplayCommand, DividesSeveralLossesAsTheUpdateDid) {
  auto& text = translation_of(experiment_).data;
  auto& model = translation_of(experiment_).model;
  for (const char* name : {"de", "fr"}) {
    data::HeadDataOptions head{.head = name};
    head.train_src = text.train_src;
    head.train_tgt = text.train_tgt;
    text.heads.push_back(head);
    model.heads.push_back({.name = name, .decoder = model.decoder});
  }
  text.train_src.clear();
  text.train_tgt.clear();
  begin_run();
  std::vector<data::Position> epoch;
  for (int64_t index = 0; index < task_->train_batches().num_batches(); ++index) {
    epoch.push_back({.epoch = 0, .index = index});
  }
  const auto file = write(epoch);
  auto json = nlohmann::json::parse(std::ifstream(file));
  ASSERT_EQ(json.at("divisors").size(), 2U);
  EXPECT_EQ(replay(file, /*json=*/true).code, 1) << "it is finite";
  const auto divide_by = [&](const std::vector<double>& divisors) {
    json["divisors"] = divisors;
    std::ofstream(file) << json.dump();
  };
  divide_by({1e-37, 1e37});  // the first loss overflows
  const auto overflow = replay(file, /*json=*/true);
  EXPECT_EQ(overflow.code, 0);
  EXPECT_EQ(overflow.json().at("trials").at(0).at("first").at("name"), "loss");
  divide_by({1});
  EXPECT_TRUE(refused(file, "divisors of 1 loss, the run has 2"));
  divide_by({0, 0});
  EXPECT_TRUE(refused(file, "a divisor that no update divides by"));
  divide_by({-1, 2});
  EXPECT_TRUE(refused(file, "a divisor that no update divides by"));
  json.erase("divisors");  // as earlier versions wrote it
  std::ofstream(file) << json.dump();
  EXPECT_EQ(replay(file, /*json=*/true).code, 1);
}

TEST_F(ReplayCommand, ReportsOfAnotherRunOrOtherTextAreRefused) {
  const auto file = write({{.epoch = 0, .index = 0}});
  translation_of(experiment_).data.max_tokens = 200;
  EXPECT_TRUE(refused(file, "holds other sentences"));
  translation_of(experiment_).data.max_tokens = 160;
  EXPECT_EQ(replay(file, true).code, 1);
  run_id_ = "another";
  EXPECT_TRUE(refused(write({{.epoch = 0, .index = 0}}), "another run"));
}

TEST_F(ReplayCommand, AReportMadeWithAnotherTokenizerIsRefused) {
  tokenizer_ = runs::tokenizer_hashes(task_->assets());
  ASSERT_FALSE(tokenizer_.empty());
  EXPECT_EQ(replay(write({{.epoch = 0, .index = 0}}), /*json=*/true).code, 1);
  const std::string name = tokenizer_.begin()->first;
  tokenizer_[name] = "1234";
  const auto file = write({{.epoch = 0, .index = 0}});
  EXPECT_TRUE(refused(file, "made with another tokenizer"));
  EXPECT_TRUE(refused(file, (folder_.path() / "run" / "tokenizer" / name).string()));
  EXPECT_TRUE(refused(file, "trained with SHA-256 1234"));
}

TEST_F(ReplayCommand, SaysThatItIsOneOfSeveralRanks) {
  EXPECT_EQ(replay(write({{.epoch = 0, .index = 0}}), false).out.find("rank 0 of"),
            std::string::npos);
  rank_ = 2;
  world_size_ = 4;
  const auto file = write({{.epoch = 0, .index = 0}});
  const auto alone = replay(file, /*json=*/false);
  EXPECT_NE(alone.out.find("\nrank 2 of 4 processes: its micro-batches run again, those of the "
                           "others do not; no other rank wrote a report of this update\n"),
            std::string::npos)
      << alone.out;
  const std::filesystem::path path(file);
  const std::string name = path.filename().string();
  const std::string other = name.substr(0, name.find('.')) + ".rank3.json";
  stretto::write_file_atomic(path.parent_path() / other, "{}");
  EXPECT_NE(replay(file, false).out.find("other ranks' reports beside it: " + other),
            std::string::npos);
  const auto json = replay(file, /*json=*/true).json();
  EXPECT_EQ(json.at("rank"), 2);
  EXPECT_EQ(json.at("world_size"), 4);
  EXPECT_EQ(json.at("other_reports"), nlohmann::json({other}));
}

TEST_F(ReplayCommand, SaysWhenTheRankHadOtherWeights) {
  const auto warned = [&] {
    ::testing::internal::CaptureStderr();
    replay(write({{.epoch = 0, .index = 0}}), /*json=*/true);
    return ::testing::internal::GetCapturedStderr().find("had other weights") != std::string::npos;
  };
  weights_hash_ = hex64(arena_->weights_hash());
  EXPECT_FALSE(warned());
  weights_hash_ = hex64(arena_->weights_hash() + 1);
  EXPECT_TRUE(warned());
}

}  // namespace
}  // namespace stretto::engine
