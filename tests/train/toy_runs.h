#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/checkpoint.h"
#include "tests/base/temp_dir.h"
#include "tests/train/toy_task.h"
#include "train/trainer.h"

/// Runs that remember their weights, for tests of what trains on other weights than it saves.
namespace stretto::train::test {

/// Remembers the weights of each update's last forward pass, and those of each validation.
class Remembering : public ToyTask {
 public:
  Sums loss(const Prepared& batch, const StepContext& context) override {
    in_forward[context.update] = weights();
    return ToyTask::loss(batch, context);
  }
  Validation validate() override {
    validated.push_back(weights());
    return ToyTask::validate();
  }
  /// [P], in double: the parameters one after the other.
  torch::Tensor weights() {
    std::vector<torch::Tensor> all;
    for (const auto& parameter : model().parameters()) all.push_back(parameter.detach().flatten());
    return torch::cat(all).to(torch::kDouble);
  }

  std::map<int64_t, torch::Tensor> in_forward;
  std::vector<torch::Tensor> validated;
};

class ToyRuns : public ::testing::Test {
 protected:
  /// Twelve updates, validated and saved after every fourth.
  TrainerSetup setup(const std::string& name) const {
    auto setup = toy_setup(root_ / name);
    setup.eval.every = 4;
    return setup;
  }

  /// Runs it to its end with signals after the third and the seventh update. @return its hash
  static std::string hash_of_run_in_parts(const TrainerSetup& run) {
    for (const int64_t last : {3, 7, -1}) {
      Remembering task;
      task.signal_at = last;
      EXPECT_EQ(Trainer(task, run).run(), last < 0 ? ExitCode::kOk : ExitCode::kInterrupted);
    }
    return final_hash(run);
  }

  testing::TempDir root_;
};

/// Every tensor of the checkpoint of step 12: "model:weight" -> bytes.
inline std::map<std::string, std::string> tensors_of(const TrainerSetup& run) {
  const auto path = store::CheckpointStore(run.run_directory).path_of(12);
  const auto loaded = store::CheckpointStore::load(path);
  std::map<std::string, std::string> all;
  for (const auto& [stem, file] : loaded.files) {
    for (const auto& tensor : file.tensors()) {
      all[stem + ":" + tensor.name] = std::string(tensor.bytes.data(), tensor.bytes.size());
    }
  }
  return all;
}

/// The tensors PREFIX + name of a checkpoint, as Remembering::weights() has those of the model.
inline torch::Tensor values_of(const std::map<std::string, std::string>& tensors,
                               const std::string& prefix, Remembering& task) {
  std::vector<torch::Tensor> all;
  for (const auto& item : task.model().named_parameters()) {
    std::string bytes = tensors.at(prefix + item.key());
    all.push_back(torch::from_blob(bytes.data(), {item.value().numel()}).clone());
  }
  return torch::cat(all).to(torch::kDouble);
}

}  // namespace stretto::train::test
