// tasks/smaller_run.h with an encoder of text: what is written is a run like any other.
#include "tasks/smaller_run.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "compress/masks.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "families/masked_lm/engine/masked_lm_family.h"
#include "families/masked_lm/masked_lm_options.h"
#include "interchange/described_experiment.h"
#include "runs/module_weights.h"
#include "runs/run_folder.h"
#include "runs/stored_masks.h"
#include "runs/train_state.h"
#include "store/checkpoint.h"
#include "tests/base/temp_dir.h"
#include "tests/families/masked_lm/small_masked_lm.h"

namespace stretto::tasks {
namespace {

/// A run of two layers with two heads and 32 units each, and a checkpoint with first weights.
class SmallerRunTest : public ::testing::Test {
 protected:
  SmallerRunTest() {
    experiment::Experiment described;
    described.task = experiment::MaskedLmOptions{};
    auto& own = described.task.as<experiment::MaskedLmOptions>();
    stretto::testing::make_small(own, folder_, 100, 20);
    own.model.num_layers = 2;
    interchange::complete_described(described);
    loaded_ = experiment::load_stored_experiment(
        config::to_toml(experiment::experiment_schema(described)), "test", {});
    assets_ = family_.first_assets(loaded_);
    auto run = runs::RunFolder::open_for_training(run_);
    run.write_assets(assets_);
    run.write_config(loaded_.resolved_toml, loaded_.config_hash);
    save(run.run_id());
  }

  // With a sixth of the matrices pruned.
  void save(const std::string& run_id) {
    const auto network = family_.make_network(loaded_.options, assets_, /*draws_weights=*/true);
    std::vector<std::pair<std::string, torch::Tensor>> matrices;
    for (const auto& item : network->named_parameters()) {
      if (item.value().dim() == 2) matrices.emplace_back(item.key(), item.value().detach());
    }
    const auto masks = compress::prune_tensors(matrices, 1.0 / 6, "layer");
    store::CheckpointContent content;
    content.step = 3;
    content.run_id = run_id;
    content.config_hash = loaded_.config_hash;
    std::vector<store::TensorView> views;
    for (const auto& item : network->named_parameters()) {
      const torch::Tensor& values = item.value();
      views.push_back({item.key(),
                       store::DType::kF32,
                       values.sizes().vec(),
                       {static_cast<const char*>(values.const_data_ptr()), values.nbytes()}});
    }
    content.files.emplace_back("model", views);
    content.files.emplace_back(runs::kMasksFile, runs::mask_views(masks));
    content.state_json = runs::TrainState{}.to_json();
    store::CheckpointStore(run_).save(content);
  }

  SmallerRunRequest request(const std::string& name, int64_t micro_batches = 0) const {
    return {.run_directory = run_.string(),
            .checkpoint = "",
            .removal = {.layers = 0.5, .units = 0.5, .heads = 0.5},
            .micro_batches = micro_batches,
            .output = folder_ / name};
  }

  const Family& family_ = masked_lm_family();
  testing::TempDir folder_;
  std::filesystem::path run_ = folder_ / "run";
  experiment::LoadedExperiment loaded_;
  Assets assets_;
};

TEST_F(SmallerRunTest, IsARunOfAModelWithItsOwnConfiguration) {
  for (const int64_t micro_batches : {0, 2}) {
    const auto asked = request("smaller" + std::to_string(micro_batches), micro_batches);
    const auto stacks = write_smaller_run(asked);
    ASSERT_EQ(stacks.size(), 1U);
    EXPECT_EQ(stacks[0].before.num_layers, 2);
    EXPECT_EQ(stacks[0].after.num_layers, 1);
    const auto loaded = experiment::load_stored_experiment(
        experiment::read_run_config(asked.output), "smaller", {});
    const auto& model = loaded.options.task.as<experiment::MaskedLmOptions>().model;
    EXPECT_EQ(model.num_layers, 1);
    EXPECT_EQ(model.ffn_dim, 16);
    EXPECT_EQ(model.num_heads, 1);
    EXPECT_EQ(model.head_dim, 8);
    const auto folder = runs::RunFolder::open(asked.output);
    EXPECT_EQ(folder.read_assets(), assets_);
    const auto checkpoint =
        store::CheckpointStore::load(store::CheckpointStore(asked.output).path_of(0));
    const auto network = family_.make_network(loaded.options, assets_, /*draws_weights=*/true);
    runs::load_weights(checkpoint, *network);
    // What was pruned is still zero, and known to be.
    const auto parameters = network->named_parameters();
    const auto masks = runs::stored_masks(checkpoint);
    EXPECT_FALSE(masks.empty());
    for (const auto& [name, bits] : masks) {
      const torch::Tensor values = parameters[name].detach().flatten();
      const auto marks = compress::unpack_mask(bits, values.numel());
      for (size_t i = 0; i < marks.size(); ++i) {
        EXPECT_EQ(marks[i] == 1, values[static_cast<int64_t>(i)].item<float>() == 0)
            << name << " " << i;
      }
    }
  }
}

TEST_F(SmallerRunTest, RefusesToTakeAllAwayAndLeavesNothingBehind) {
  auto asked = request("nothing");
  asked.removal = {.layers = 1};
  EXPECT_THROW(write_smaller_run(asked), Error);
  EXPECT_FALSE(std::filesystem::exists(asked.output));
  auto taken = request("run");
  EXPECT_THROW(write_smaller_run(taken), Error) << "a run is there";
}

}  // namespace
}  // namespace stretto::tasks
