// Commands on a family whose data are a folder of pictures, and files behind a manifest.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cli/foreign_paths.h"
#include "config/field.h"
#include "config/open_part.h"
#include "data/manifest.h"
#include "engine/commands.h"
#include "experiment/data_files.h"
#include "experiment/family_spec.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "tasks/registry.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/tasks/small_family.h"
#include "tests/train/recurrent_task.h"

namespace stretto::experiment {
namespace {

/// `[data]`: the library has no such family yet. The task learns numbers that need no file.
struct PictureDataOptions {
  std::vector<std::string> train, valid, test;

  static auto fields() {
    using namespace config;
    using O = PictureDataOptions;
    return Fields{
        field(&O::train, "train", "folders of pictures", any(), {.is_path = true}),
        field(&O::valid, "valid", "files whose rows name pictures", any(), {.is_path = true}),
        field(&O::test, "test", "files whose rows name pictures", any(),
              {.change = Change::kFree, .is_path = true})};
  }
};

struct PictureModelOptions {
  int64_t width = 1;

  static auto fields() {
    return config::Fields{
        config::field(&PictureModelOptions::width, "width", "of the model", config::at_least(1))};
  }
};

struct PictureOptions {
  static constexpr const char* kName = "listed_pictures";

  PictureDataOptions data;
  PictureModelOptions model;

  static auto fields() {
    using config::field;
    using O = PictureOptions;
    return config::Fields{field(&O::data, "data", "pictures"),
                          field(&O::model, "model", "the network")};
  }
};

class PictureRules final : public SmallRules {
 public:
  ValidationData validation_data(const Experiment& /*experiment*/) const override {
    return {.there = true, .name = "pictures", .keys = {"data.valid"}, .remedy = ""};
  }
  bool has_carry(const Experiment& /*experiment*/) const override { return true; }
};

const TaskRules& picture_rules() {
  static const PictureRules rules;
  return rules;
}

std::vector<data::DataFile> picture_files(const Experiment& experiment) {
  auto files = files_of_path_keys(experiment);
  for (auto& file : files) {
    const bool is_folder = file.key == "data.train";
    file.kind = is_folder ? data::DataKind::kTree : data::DataKind::kManifest;
    if (!is_folder) file.rows = data::rows_with({.name = "path"});
  }
  return files;
}

FamilySpec picture_spec() {
  return {.options = config::open_alternative<PictureOptions>(),
          .also_called = {},
          .rules = &picture_rules,
          .display = [](const Experiment& /*experiment*/) { return small_display("numbers"); },
          .data_files = &picture_files};
}

}  // namespace
}  // namespace stretto::experiment

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;

using PictureTask = SmallTask<train::test::RecurrentOf<FamilyTask>>;

class PictureFamily : public SmallFamily {
 public:
  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& /*experiment*/,
                                        const Assets& /*assets*/,
                                        const CommandContext& /*context*/) const override {
    return std::make_unique<PictureTask>();
  }
  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& /*experiment*/) const override {
    PictureTask task;
    return optim::names_of(optim::Arena(task.model(), optim::Arena::Gradients::kNone));
  }
};

const Family& picture_family() {
  static const PictureFamily family;
  return family;
}

class ListedFamilyTest : public ::testing::Test {
 protected:
  ListedFamilyTest() {
    for (const char* name : {"cats/1.jpg", "cats/2.jpg", "dogs/1.jpg"}) put(name, name);
    folder_.write("valid/birds/1.jpg", "one");
    folder_.write("valid/birds/2.jpg", "two");
    folder_.write("valid/list.tsv", "label\tpath\nbird\tbirds/1.jpg\nbird\tbirds/2.jpg\n");
  }
  static void SetUpTestSuite() {
    if (experiment::TaskChoice().select("listed_pictures")) return;
    experiment::add_family(experiment::picture_spec());
    add_family({"listed_pictures", &picture_family});
  }

  void put(const std::string& name, const std::string& text) const {
    folder_.write("pictures/" + name, text);
  }
  fs::path picture(const std::string& name) const { return folder_ / "pictures" / name; }
  experiment::LoadedExperiment load(const std::vector<std::string>& overrides = {}) const {
    return experiment::load_experiment(recipe_, overrides);
  }
  int train(int64_t until, bool accept = false) const {
    return engine::run_train({.experiment = load(),
                              .run_directory = run_.string(),
                              .accept_data = accept,
                              .until = until});
  }
  /// What a resume is refused with.
  std::string refusal() const {
    return failure(ExitCode::kBadData, [&] { train(8); }).message();
  }

  testing::TempDir folder_;
  const fs::path run_ = folder_ / "run";
  const std::string recipe_ = folder_.write("pictures.toml", R"(
[run]
seed = 1
threads = 1
device = "cpu"
[task]
name = "listed_pictures"
[data]
train = ["pictures"]
valid = ["valid/list.tsv"]
[optim]
lr = 0.05
[schedule]
name = "constant"
warmup_steps = 2
[train]
max_steps = 12
save_every = 4
update_freq = 6
[eval]
every = 4
[report]
every = 1
tensorboard = false
html = false
)");
};

TEST_F(ListedFamilyTest, SaysWhichKeysAreFoldersAndManifests) {
  const std::string test = "data.test=" + (folder_ / "valid/list.tsv").string();
  const auto files = experiment::data_files_of(load({test}).options);
  ASSERT_EQ(files.size(), 2u) << "test data are not compared";
  EXPECT_EQ(files[0],
            (data::DataFile{"data.train", (folder_ / "pictures").string(), data::DataKind::kTree}));
  EXPECT_EQ(files[1], (data::DataFile{"data.valid", (folder_ / "valid/list.tsv").string(),
                                      data::DataKind::kManifest}));
  EXPECT_EQ(experiment::all_data_files_of(load({test}).options).size(), 3u);
}

TEST_F(ListedFamilyTest, ARunGoesOnWithTheSamePicturesAlone) {
  EXPECT_EQ(train(4), 0);
  const std::string place = "data.train: " + (folder_ / "pictures").string() + ": ";
  const auto expect_refused = [&](const std::string& what) {
    const std::string said = refusal();
    EXPECT_NE(said.find("the data have changed since the run in " + run_.string()),
              std::string::npos)
        << said;
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  put("cats/2.jpg", "another");
  expect_refused(place + "cats/2.jpg has changed (7 bytes now, 10 then)\n");
  put("cats/2.jpg", "cats/2.jpg");
  put("cats/3.jpg", "");
  expect_refused(place + "cats/3.jpg is new\n");
  fs::rename(picture("cats/3.jpg"), picture("cats/2.jpg"));
  expect_refused(place + "cats/2.jpg has changed (0 bytes now, 10 then)\n");
  fs::remove(picture("cats/2.jpg"));
  expect_refused(place + "cats/2.jpg is gone\n");
  put("dogs/2.jpg", "cats/2.jpg");
  expect_refused(place + "cats/2.jpg has the name dogs/2.jpg now\n");
  fs::rename(picture("dogs/2.jpg"), picture("cats/2.jpg"));
  EXPECT_EQ(train(8), 0) << "put back, they are the same";
}

TEST_F(ListedFamilyTest, ARunGoesOnWithTheSameFilesBehindAManifestAlone) {
  EXPECT_EQ(train(4), 0);
  const std::string list = (folder_ / "valid/list.tsv").string();
  const std::string bird = (folder_ / "valid/birds/2.jpg").string();
  folder_.write("valid/birds/2.jpg", "owt");
  EXPECT_NE(
      refusal().find("data.valid: " + list + ": line 3 names " + bird + ", which has changed\n"),
      std::string::npos)
      << refusal();
  fs::remove(bird);
  EXPECT_NE(refusal().find(list + ":3: names " + bird + ", which is not there"), std::string::npos)
      << refusal();
  folder_.write("valid/birds/2.jpg", "two");
  folder_.write("valid/list.tsv", "label\tpath\nbird\tbirds/1.jpg\n");
  EXPECT_NE(refusal().find("data.valid: " + list + ": ends after line 2 (2 lines now, 3 then)\n"),
            std::string::npos)
      << refusal();
  EXPECT_EQ(train(8, /*accept=*/true), 0);
  EXPECT_EQ(train(0), 0);
}

TEST_F(ListedFamilyTest, AFolderOfPicturesHasNoLinks) {
  fs::create_symlink(folder_ / "valid/birds/1.jpg", picture("cats/4.jpg"));
  const auto error = failure(ExitCode::kUsage, [&] { train(4); });
  EXPECT_NE(error.message().find(picture("cats/4.jpg").string() + ": is a symbolic link"),
            std::string::npos)
      << error.message();
}

TEST_F(ListedFamilyTest, AForeignRunReadsNoFilesThatItsManifestOrALinkLeadsTo) {
  const auto copy = [&](const char* from, const char* to) {
    fs::copy(folder_ / from, folder_ / to, fs::copy_options::recursive);
  };
  EXPECT_EQ(train(4), 0);
  // As if somebody else had packed it: all data lie in it, and nobody's mark.
  copy("pictures", "run/pictures");
  copy("valid", "run/valid");
  const std::string config = folder_.write("run/config.toml", R"(
[task]
name = "listed_pictures"
[data]
train = ["pictures"]
valid = ["valid/list.tsv"]
[schedule]
warmup_steps = 2
[train]
max_steps = 12
)");
  const auto taken = [&] {
    auto experiment = experiment::load_experiment(config, {});
    std::vector<std::string> keys;
    for (const auto& one : cli::take_foreign_paths(experiment, run_)) keys.push_back(one.key);
    return keys;
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(taken(), Keys{});
  folder_.write("run/valid/list.tsv", "label\tpath\nbird\t../../valid/birds/1.jpg\n");
  EXPECT_EQ(taken(), Keys{"data.valid"});
  folder_.write("run/valid/list.tsv", "label\tpath\nbird\t/etc/passwd\n");
  EXPECT_EQ(taken(), Keys{"data.valid"});
  folder_.write("run/valid/list.tsv", "no such column\n");
  EXPECT_EQ(taken(), Keys{"data.valid"});
  fs::create_symlink("/etc/passwd", folder_ / "run/pictures/5.jpg");
  EXPECT_EQ(taken(), (Keys{"data.train", "data.valid"}));
}

}  // namespace
}  // namespace stretto::tasks
