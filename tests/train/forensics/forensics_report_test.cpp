#include "train/forensics/forensics_report.h"

#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "store/safetensors.h"
#include "tests/train/forensics/examined.h"
#include "train/forensics/forensics.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;
using test::batch_of, test::kInf, test::look, test::RootsTask, test::TransformerTask;
using test::TwoLossesTask, test::weight;

class ForensicsReport : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = fs::temp_directory_path() /
           ("stretto_forensics_" + std::to_string(::getpid()) + "_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(run_);
    fs::create_directories(run_);
    record_ = {.run_id = "abc",
               .config_hash = "0123",
               .step = 7,
               .positions = {{.epoch = 1, .index = 5}, {.epoch = 1, .index = 6}},
               .lr = 5e-4,
               .checkpoint = "step_00000005",
               .loss_scales = {128, 64},
               .device = "cpu"};
  }
  void TearDown() override { fs::remove_all(run_); }

  /// The report of one rank alone.
  fs::path write(const NonfiniteReport& report, const optim::Arena& arena) const {
    const ReportText text{record_.rank,
                          report_to_json(report, record_, weights_name(record_.step))};
    return write_reports(run_, record_.step, {text}, arena).front();
  }

  fs::path run_;
  UpdateRecord record_;
};

TEST_F(ForensicsReport, SurvivesTheFileWithTheWeightsBesideIt) {
  TransformerTask task;
  optim::Arena arena(task.model());
  weight(arena, "encoder.embedding.weight")[4 + 9].fill_(2e38F);
  weight(arena, "decoder.final_norm.bias")[0] = kInf;
  const auto report = look(task, arena, {batch_of({1, 2}), batch_of({3, 9})}, 64);
  const auto file = write(report, arena);
  EXPECT_EQ(file, run_ / "forensics" / "step_00000007.json");

  const auto saved = read_report(file);
  EXPECT_EQ(saved.record, record_);
  EXPECT_EQ(saved.report.first, report.first);
  EXPECT_EQ(saved.report.weights, report.weights);
  EXPECT_EQ(saved.report.gradients, report.gradients);
  EXPECT_EQ(saved.report.layers, report.layers);
  EXPECT_EQ(saved.report.layers.size(), 8U);
  EXPECT_EQ(saved.report.samples, report.samples);
  EXPECT_EQ(saved.report.context.seed, 1U);
  EXPECT_EQ(saved.report.context.update, 6);
  EXPECT_EQ(report_to_json(saved.report, saved.record, "x"), report_to_json(report, record_, "x"));
  EXPECT_EQ(saved.weights, run_ / "forensics" / "step_00000007.safetensors");
  const store::SafetensorsFile weights(saved.weights);
  ASSERT_EQ(weights.tensors().size(), arena.slots().size());
  for (const auto& slot : arena.slots()) {
    const auto own = optim::Arena::view(arena.params(), slot).contiguous();
    EXPECT_EQ(weights.find(slot.name)->bytes,
              std::string_view(static_cast<const char*>(own.const_data_ptr()), own.nbytes()))
        << slot.name;
  }
}

TEST_F(ForensicsReport, KeepsWhatSeveralLossesWereDividedBy) {
  TwoLossesTask several;
  optim::Arena arena(several.model());
  const auto report = look(several, arena, {batch_of({1}), batch_of({2})});
  EXPECT_EQ(read_report(write(report, arena)).report.divisors, (std::vector<double>{2e6, 2e6}));
  RootsTask one;
  optim::Arena roots(one.model());
  const auto file = write(look(one, roots, {batch_of({4}), batch_of({0})}), roots);
  EXPECT_TRUE(read_report(file).report.divisors.empty());
  EXPECT_FALSE(nlohmann::json::parse(read_file(file, 1 << 20)).contains("divisors"));
}

TEST_F(ForensicsReport, AnotherOneOnTheSameStepLeavesTheFirst) {
  RootsTask task;
  optim::Arena arena(task.model());
  const auto report = look(task, arena, {batch_of({4}), batch_of({0})});
  std::vector<std::string> names;
  for (const std::vector<int64_t>& ranks : {std::vector<int64_t>{0}, {0, 2}, {2}}) {
    record_.lr += 1;
    std::vector<ReportText> reports;
    for (const int64_t rank : ranks) {
      reports.push_back({rank, report_to_json(report, record_, weights_name(record_.step))});
    }
    const auto files = write_reports(run_, record_.step, reports, arena);
    for (const auto& file : files) {
      names.push_back(file.stem().string());
      EXPECT_EQ(read_report(file).record, record_);
      EXPECT_TRUE(fs::exists(read_report(file).weights));
      EXPECT_EQ(reports_beside(file).size(), ranks.size());
    }
    names.push_back(read_report(files[0]).weights.filename().string());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"step_00000007", "step_00000007.safetensors",
                                             "step_00000007-2", "step_00000007-2.rank2",
                                             "step_00000007-2.safetensors", "step_00000007-3.rank2",
                                             "step_00000007-3.safetensors"}));
}

TEST_F(ForensicsReport, OtherRanksHaveNamesOfTheirOwnAndShareTheWeights) {
  RootsTask task;
  optim::Arena arena(task.model());
  record_.rank = 2;
  record_.world_size = 3;
  const auto report = look(task, arena, {batch_of({4}), batch_of({0})});
  const auto file = write(report, arena);
  EXPECT_EQ(file.filename(), "step_00000007.rank2.json");
  EXPECT_EQ(read_report(file).weights.filename(), "step_00000007.safetensors");
}

TEST_F(ForensicsReport, OnlyTheLastHundredLossScalesAreKept) {
  for (int i = 0; i < 150; ++i) record_.loss_scales.push_back(i);
  RootsTask task;
  optim::Arena arena(task.model());
  const auto report = look(task, arena, {batch_of({4}), batch_of({0})});
  const auto scales = read_report(write(report, arena)).record.loss_scales;
  ASSERT_EQ(scales.size(), 100U);
  EXPECT_EQ(scales.front(), 50);
  EXPECT_EQ(scales.back(), 149);
}

TEST_F(ForensicsReport, FilesThatAreNoReportsAreRefused) {
  const auto refused = [&](const std::string& text) {
    write_file_atomic(run_ / "x.json", text);
    try {
      read_report(run_ / "x.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
      EXPECT_NE(std::string(error.what()).find("x.json"), std::string::npos) << error.what();
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused("{"));
  EXPECT_TRUE(refused("[]"));
  EXPECT_TRUE(refused("{\"step\": 1}"));
  EXPECT_TRUE(refused("{\"format\": \"stretto forensics\", \"version\": 2}"));
  EXPECT_TRUE(refused("{\"format\": \"stretto forensics\", \"version\": 1, \"step\": 1}"));
  EXPECT_THROW(read_report(run_ / "none.json"), Error);
}

// As earlier versions wrote it: without `layer_gradients`.
TEST_F(ForensicsReport, OneWithoutLayersIsStillRead) {
  TransformerTask task;
  optim::Arena arena(task.model());
  weight(arena, "encoder.embedding.weight")[4 + 9].fill_(2e38F);
  const auto report = look(task, arena, {batch_of({1, 2}), batch_of({3, 9})}, 64);
  const auto file = write(report, arena);
  auto json = nlohmann::ordered_json::parse(read_file(file, 1 << 20));
  ASSERT_EQ(json.erase("layer_gradients"), 1U);
  EXPECT_EQ(json.at("version"), 1);
  write_file_atomic(file, json.dump());
  const auto saved = read_report(file);
  EXPECT_TRUE(saved.report.layers.empty());
  EXPECT_EQ(saved.report.gradients, report.gradients);
  EXPECT_EQ(saved.report.first, report.first);
  EXPECT_EQ(report_to_text(saved.report, saved.record).find("by layer"), std::string::npos);
  // The same bytes but for the layers.
  json["layer_gradients"] = nlohmann::ordered_json::array();
  EXPECT_EQ(nlohmann::json::parse(report_to_json(saved.report, saved.record, json.at("weights"))),
            nlohmann::json::parse(json.dump()));
}

TEST_F(ForensicsReport, TheParagraphShowsTheLargestLayers) {
  NonfiniteReport report{.first = {TensorKind::kSum, "a.layers.1.up.weight", ""},
                         .layers = {{"a.embedding", 0.5, 0},
                                    {"a.layers.0", 4, 0},
                                    {"a.layers.1", 0.25, 12},
                                    {"a.layers.2", 3, 0}}};
  const auto text = report_to_text(report, record_);
  EXPECT_NE(text.find("\n  by layer: a.layers.1 12 not finite, a.layers.0 4 (2^2), "
                      "a.layers.2 3 (2^1)\n"),
            std::string::npos)
      << text;
}

TEST_F(ForensicsReport, TheParagraphNamesModuleSamplesAndRemedy) {
  TransformerTask task;
  optim::Arena arena(task.model());
  const auto calm = report_to_text(look(task, arena, {batch_of({1}), batch_of({2})}), record_);
  EXPECT_NE(calm.find("doubt the machine"), std::string::npos) << calm;

  weight(arena, "encoder.embedding.weight")[4 + 9].fill_(2e38F);
  const auto one = report_to_text(look(task, arena, {batch_of({1}), batch_of({3, 9, 4})}), record_);
  EXPECT_NE(one.find("step 7: first not finite was the output of encoder.embedding (forward)"),
            std::string::npos)
      << one;
  EXPECT_NE(one.find("micro-batch 2 of 2 (epoch 2, index 6): of its 3 samples 1 alone makes it "
                     "so, sample 9\n"),
            std::string::npos)
      << one;

  weight(arena, "decoder.final_norm.bias")[0] = kInf;
  const auto spoilt = report_to_text(look(task, arena, {batch_of({1}), batch_of({2})}), record_);
  EXPECT_NE(spoilt.find("not finite themselves: decoder.final_norm.bias (1)"), std::string::npos)
      << spoilt;
  EXPECT_NE(spoilt.find("\n  the weights are spoilt: try "), std::string::npos) << spoilt;
}

}  // namespace
}  // namespace stretto::train
