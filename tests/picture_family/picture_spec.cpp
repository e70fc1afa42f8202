#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "config/open_part.h"
#include "experiment/data_files.h"
#include "experiment/score_spec.h"
#include "experiment/task_rules.h"
#include "interchange/described_experiment.h"
#include "interchange/model_folders.h"
#include "report/display.h"
#include "store/weight_files.h"
#include "tests/picture_family/picture_family.h"
#include "tests/tasks/small_family.h"

namespace stretto::experiment {
namespace {

std::vector<ScoreSpec> picture_scores() {
  return {{.style = report::loss_style()},
          {.style = {.name = kPictureAccuracy, .higher_is_better = true}},
          {.style = {.name = kPictureTop2, .higher_is_better = true, .of_validation = true}}};
}

class PictureClassRules final : public SmallRules {
 public:
  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return picture_scores();
  }
  ValidationData validation_data(const Experiment& experiment) const override {
    return {.there = !pictures_of(experiment).data.valid.empty(),
            .name = "pictures for validation",
            .keys = {"data.valid"},
            .remedy = "set data.valid"};
  }
  BatchBound micro_batch(const Experiment& experiment) const override {
    return {.key = "data.max_samples",
            .value = pictures_of(experiment).data.max_samples,
            .unit = "pictures"};
  }
  bool has_batch_norm(const Experiment& /*experiment*/) const override { return true; }
};

const TaskRules& picture_class_rules() {
  static const PictureClassRules rules;
  return rules;
}

report::Display display_of_pictures(const Experiment& /*experiment*/) {
  report::Display display = small_display("pictures");
  display.numbers = styles_of(picture_scores());
  return display;
}

/// Folders whose model_type is the name of the family: names of tensors are the same there.
class PictureFolders final : public interchange::ModelFolders {
 public:
  std::vector<std::string> model_types() const override { return {PictureOptions::kName}; }
  interchange::FolderWords words() const override {
    return {.model = "a model of pictures", .models = "models of pictures", .classes = "Pictures"};
  }
  bool trains(const interchange::ConfigReader& /*config*/) const override { return true; }
  bool claims(const interchange::ConfigReader& /*config*/,
              const interchange::ImportOptions& /*options*/) const override {
    return true;
  }
  interchange::ImportedRun read(const std::filesystem::path& folder,
                                const interchange::ImportOptions& /*options*/) const override {
    interchange::ImportedRun run;
    run.model_class = "Pictures";
    run.experiment = interchange::described_experiment(PictureOptions());
    run.assets["classes.txt"] = read_file(folder / "classes.txt");
    run.files = std::make_shared<const store::WeightFiles>(folder);
    run.tensors = run.files->tensors();
    return run;
  }
  experiment::OtherModel describe(const std::filesystem::path& /*folder*/,
                                  const interchange::ImportOptions& /*options*/) const override {
    throw Error(ExitCode::kUsage, "no run begins with such a folder", "import it");
  }
};

const interchange::ModelFolders& picture_folders() {
  static const PictureFolders folders;
  return folders;
}

}  // namespace

std::vector<data::DataFile> folders_of_pictures(const Experiment& experiment) {
  auto files = files_of_path_keys(experiment);
  for (auto& file : files) file.kind = data::DataKind::kTree;
  return files;
}

FamilySpec picture_spec() {
  return {.options = config::open_alternative<PictureOptions>(),
          .also_called = {},
          .rules = &picture_class_rules,
          .display = &display_of_pictures,
          .plan = FamilyPlan{.work = [](const Experiment& experiment) -> PlannedWork {
            return {.units = static_cast<double>(pictures_of(experiment).data.max_samples)};
          }},
          .folders = &picture_folders,
          .data_files = &folders_of_pictures};
}

}  // namespace stretto::experiment
