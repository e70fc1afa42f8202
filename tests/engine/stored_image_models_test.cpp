// Models of pictures of other packages, and what PyTorch computed with them:
// tests/interchange/store_image_models.py wrote both. So imports and exports are compared where
// there is no Python.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "engine/commands.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "families/image_classification/engine/image_run.h"
#include "runs/run_folder.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"

namespace stretto::engine {
namespace {

namespace fs = std::filesystem;

constexpr float kLogitTolerance = 1e-4F;

experiment::LoadedExperiment experiment_of_run(const fs::path& run) {
  return experiment::load_stored_experiment(experiment::read_run_config(run),
                                            (run / "config.toml").string(), {});
}

/// Two pictures of this size, as the script has them.
at::Tensor stored_pixels(int64_t size) {
  const at::Tensor numbers = at::arange(2 * 3 * size * size, at::kLong);
  return ((numbers * 7919).remainder(1009).to(at::kFloat) / 504.5 - 1).view({2, 3, size, size});
}

at::Tensor logits_of_run(const fs::path& run, const at::Tensor& pixels) {
  const auto loaded = experiment_of_run(run);
  const auto images =
      tasks::load_image_run(loaded.options, runs::RunFolder::open(run), "", at::kCPU);
  auto& model = *images.models.front();
  model.eval();
  const at::NoGradGuard no_grad;
  return model.forward({.pixels = pixels}, {}).to(at::kFloat);
}

class StoredImageModels : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const fs::path assets = fs::path(STRETTO_SOURCE_DIR) / "tests/assets/image_models";
    const auto listed = parse_json(read_file(assets / "stored.json"), "stored.json", 0);
    for (const auto& model : listed.at("models")) {
      if (model.at("name") == GetParam()) stored_ = model;
    }
    ASSERT_FALSE(stored_.is_null()) << GetParam();
    import_as("run", assets / GetParam());
  }

  void import_as(const std::string& name, const fs::path& place) {
    run_ = dir_ / name;
    const auto told = stretto::testing::standard_output_of(
        [&] { run_import({.folder = place.string(), .run_directory = run_.string()}); });
    const auto model_class = stored_.at("class").get<std::string>();
    if (name == "run") {
      EXPECT_NE(told.find(model_class), std::string::npos) << told;
    }
  }

  /// Imports what `stretto export` writes of the run, which is the run from now on.
  void export_and_import(const std::string& format, const std::string& file = "") {
    const fs::path exported = dir_ / (format + "_exported");
    stretto::testing::standard_output_of([&] {
      run_export({.experiment = experiment_of_run(run_),
                  .run_directory = run_.string(),
                  .format = format,
                  .folder = exported.string()});
    });
    import_as(format + "_again", file.empty() ? exported : exported / file);
  }

  void expect_stored_logits() const {
    std::vector<at::Tensor> rows;
    for (const auto& row : stored_.at("logits")) {
      rows.push_back(at::tensor(row.get<std::vector<float>>(), at::kFloat));
    }
    const at::Tensor got = logits_of_run(run_, stored_pixels(stored_.at("size").get<int64_t>()));
    const at::Tensor wanted = at::stack(rows);
    ASSERT_EQ(got.sizes(), wanted.sizes());
    EXPECT_LE((got - wanted).abs().max().item<float>(), kLogitTolerance);
  }

 private:
  const testing::TempDir dir_;
  fs::path run_;
  nlohmann::json stored_;
};

TEST_P(StoredImageModels, ComputeWhatPyTorchDoes) {
  expect_stored_logits();
}

TEST_P(StoredImageModels, AreExportedAsTheyWere) {
  const std::string name = GetParam();
  if (name == "timm_vit") {
    export_and_import("timm");
  } else if (name == "cifar.th") {
    export_and_import("torchvision", "model.safetensors");
  } else {
    export_and_import("hf");
  }
  expect_stored_logits();
}

INSTANTIATE_TEST_SUITE_P(Each, StoredImageModels,
                         ::testing::Values("resnet", "vit", "timm_vit", "cifar.th"),
                         [](const auto& tested) {
                           const std::string name = tested.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace
}  // namespace stretto::engine
