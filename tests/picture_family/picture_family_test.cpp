// Commands on a family whose data are folders of pictures, and whose model has batch norm.
#include "tests/picture_family/picture_family.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/commands.h"
#include "experiment/task_rules.h"
#include "report/metrics_log.h"
#include "report/report_data.h"
#include "store/checkpoint.h"
#include "tasks/registry.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/base/temp_dir.h"
#include "tests/image/pictures.h"
#include "tests/tasks/listed_scores.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;

constexpr int64_t kUpdates = 100;

/// A PNG of stripes, which no mirror turns: rows of light, or columns, or an even grey.
std::string picture_of(const std::string& name, int64_t number) {
  image::test::PngPicture picture{.height = kPictureSide,
                                  .width = kPictureSide,
                                  .color_type = PNG_COLOR_TYPE_GRAY,
                                  .bytes = {}};
  for (int64_t y = 0; y < kPictureSide; ++y) {
    for (int64_t x = 0; x < kPictureSide; ++x) {
      const int64_t place = name == "rows" ? y : name == "columns" ? x : 0;
      const bool is_light = name != "grey" && (place + number) % 2 == 0;
      picture.bytes.push_back(
          static_cast<uint8_t>(is_light ? 200 + number % 50 : 40 + (7 * number + x) % 30));
    }
  }
  return image::test::png_of(picture);
}

class PictureFamilyTest : public ::testing::Test {
 protected:
  PictureFamilyTest() {
    for (const char* name : {"columns", "grey", "rows"}) {
      for (int64_t i = 0; i < 12; ++i) put("train", name, i);
      for (int64_t i = 0; i < 3; ++i) put("valid", name, 20 + i);
    }
  }
  ~PictureFamilyTest() override { before_update() = {}; }
  static void SetUpTestSuite() {
    if (experiment::TaskChoice().select("picture_classes")) return;
    experiment::add_family(experiment::picture_spec());
    add_family({"picture_classes", &picture_family});
  }

  std::string put(const std::string& set, const std::string& name, int64_t number) const {
    return folder_.write(set + "/" + name + "/" + std::to_string(number) + ".png",
                         picture_of(name, number));
  }
  experiment::LoadedExperiment load(const std::vector<std::string>& overrides = {}) const {
    return experiment::load_experiment(recipe_, overrides);
  }
  std::string run(const std::string& name) const { return (folder_ / name).string(); }
  /// @param until  updates; 0 = to the end
  int train(const std::string& name, int64_t until = 0,
            const std::vector<std::string>& overrides = {}) const {
    return engine::run_train(
        {.experiment = load(overrides), .run_directory = run(name), .until = until});
  }
  /// Few updates, with the rule about bad pictures.
  int train_with(const std::string& bad_samples, int64_t most = 1000) const {
    return train("run", 0,
                 {"train.max_steps=20", "data.bad_samples=\"" + bad_samples + "\"",
                  "data.max_bad_samples=" + std::to_string(most)});
  }
  /// In the middle of a run, a file goes that earlier updates have read. @return its path
  std::string lose_a_picture() const {
    const auto lost = folder_ / "train/rows/2.png";
    before_update() = [lost](int64_t update) {
      if (update == 5) fs::remove(lost);
    };
    return lost.string();
  }
  fs::path checkpoint(const std::string& name) const {
    return store::CheckpointStore(run(name)).path_of(kUpdates);
  }
  /// Every tensor of the last checkpoint.
  std::map<std::string, std::string> saved(const std::string& name) const {
    const auto loaded = store::CheckpointStore::load(checkpoint(name));
    std::map<std::string, std::string> tensors;
    for (const auto& [stem, file] : loaded.files) {
      for (const auto& tensor : file.tensors()) {
        tensors[stem + ":" + tensor.name] = std::string(tensor.bytes);
      }
    }
    return tensors;
  }
  nlohmann::json scores(const std::string& name,
                        const std::vector<std::string>& overrides = {}) const {
    return nlohmann::json::parse(stretto::testing::standard_output_of([&] {
      const EvalRequest request{.experiment = load(overrides),
                                .run_directory = run(name),
                                .checkpoint = "last",
                                .json = true};
      EXPECT_EQ(picture_family().eval(request, {}), 0);
    }));
  }
  std::vector<std::string> answers(const std::string& name, const std::vector<std::string>& files,
                                   bool json = false) const {
    const std::string said = stretto::testing::standard_output_of([&] {
      const InferRequest request{.experiment = load(),
                                 .run_directory = run(name),
                                 .checkpoints = "last",
                                 .files = files,
                                 .json = json};
      EXPECT_EQ(picture_family().infer(request, {}), 0);
    });
    std::vector<std::string> lines;
    for (size_t at = 0, end; (end = said.find('\n', at)) != std::string::npos; at = end + 1) {
      lines.push_back(said.substr(at, end - at));
    }
    return lines;
  }

  testing::TempDir folder_;
  const std::string recipe_ = folder_.write("pictures.toml", R"(
[run]
seed = 1
threads = 1
device = "cpu"
[task]
name = "picture_classes"
[data]
train = ["train"]
valid = ["valid"]
cache_dir = "cache"
max_samples = 9
[optim]
name = "adam"
lr = 0.02
[schedule]
name = "constant"
warmup_steps = 2
[train]
max_steps = 100
save_every = 50
[eval]
every = 50
[report]
every = 1
samples = 2
tensorboard = false
)");
};

TEST_F(PictureFamilyTest, LearnsToTellPicturesApart) {
  EXPECT_EQ(train("run"), 0);
  const auto json = scores("run");
  EXPECT_EQ(json.at("accuracy"), 1.0);
  EXPECT_EQ(json.at("top2"), 1.0);
  EXPECT_LT(json.at("loss"), 0.3);
}

TEST_F(PictureFamilyTest, ARunInPartsEndsWithTheBitsOfAWholeOneAugmentationToo) {
  EXPECT_EQ(train("whole"), 0);
  for (const int64_t until : {7, 50, 73, 0}) EXPECT_EQ(train("parts", until), 0);
  EXPECT_EQ(saved("parts"), saved("whole"));
  EXPECT_TRUE(saved("whole").contains("model:first_norm.running_mean"));
  EXPECT_EQ(train("threads", 0, {"data.threads=1"}), 0);
  EXPECT_EQ(saved("threads"), saved("whole"));
}

TEST_F(PictureFamilyTest, AugmentationIsOfTheEpochAndTheSample) {
  const auto loaded = load();
  const auto& family = picture_family();
  const auto task = family.make_task(loaded.options, family.first_assets(loaded), {});
  const auto& source = task->train_batches();
  const data::Batch first = source.load_for_training(0, 0);
  const auto pixels = [&](const data::Batch& batch) { return task->prepare(batch).tensor(0); };
  EXPECT_TRUE(at::equal(pixels(first), pixels(first)));
  EXPECT_TRUE(at::equal(pixels(data::part(first, 3, 5)), pixels(first).slice(0, 3, 5)));
  std::set<std::string> seen;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    data::Batch again = first;
    again.epoch = epoch;
    const at::Tensor of_epoch = pixels(again).contiguous();
    seen.emplace(static_cast<const char*>(of_epoch.const_data_ptr()), of_epoch.nbytes());
  }
  EXPECT_GT(seen.size(), 10u) << "mirrored in some epochs, and not in others";
}

TEST_F(PictureFamilyTest, APictureThatCannotBeReadIsFoundBeforeTraining) {
  folder_.write("train/rows/13.png", "no picture");
  const auto error = failure(ExitCode::kBadData, [&] { train_with("stop"); });
  EXPECT_NE(error.message().find((folder_ / "train").string() +
                                 ": rows/13.png: is no picture that can be read"),
            std::string::npos)
      << error.message();
  EXPECT_EQ(train_with("skip"), 0);
  EXPECT_EQ(left_out_last().count, 1);
}

TEST_F(PictureFamilyTest, APictureThatVanishesEndsTraining) {
  const std::string lost = lose_a_picture();
  const auto error = failure(ExitCode::kBadData, [&] { train_with("stop"); });
  EXPECT_NE(error.message().find(lost + ": is not there any more"), std::string::npos)
      << error.message();
}

TEST_F(PictureFamilyTest, OrItIsLeftOutOfTheLossAndCountedOnce) {
  const std::string lost = lose_a_picture();
  EXPECT_EQ(train_with("skip"), 0);
  EXPECT_EQ(left_out_last().count, 1);
  EXPECT_EQ(left_out_last().first.front().file, lost);
  double pictures = 0, unreadable = 0;
  for (const auto& event : report::read_metrics(fs::path(run("run")) / "metrics.jsonl")) {
    if (event.event != "train") continue;
    pictures += event.number("pictures").value();
    unreadable += event.number("unreadable_pictures").value();
  }
  EXPECT_EQ(pictures, 9 * 20) << "it keeps its place";
  EXPECT_GE(unreadable, 2) << "once in an epoch of four updates, but while loaded ahead";
  EXPECT_LE(unreadable, 4);
}

TEST_F(PictureFamilyTest, MoreThanAllowedEndTraining) {
  lose_a_picture();
  const auto error = failure(ExitCode::kBadData, [&] { train_with("skip", /*most=*/0); });
  EXPECT_NE(error.message().find("more than data.max_bad_samples = 0"), std::string::npos)
      << error.message();
}

TEST_F(PictureFamilyTest, ScoresDoNotDependOnWhatIsInABatch) {
  EXPECT_EQ(train("run"), 0);
  const auto together = scores("run"), alone = scores("run", {"data.max_samples=1"});
  EXPECT_NEAR(together.at("loss").get<double>(), alone.at("loss").get<double>(), 1e-5);
  EXPECT_EQ(together.at("accuracy"), alone.at("accuracy"));
}

TEST_F(PictureFamilyTest, FilesAreAnsweredInTheirOrder) {
  EXPECT_EQ(train("run"), 0);
  const std::vector<std::string> files{put("new", "rows", 40), folder_.write("new/text", "abc"),
                                       put("new", "columns", 41), put("new", "grey", 42),
                                       put("new", "rows", 43)};
  EXPECT_EQ(answers("run", files),
            (std::vector<std::string>{"rows", "", "columns", "grey", "rows"}));
  const auto json = answers("run", files, /*json=*/true);
  ASSERT_EQ(json.size(), files.size());
  EXPECT_GT(nlohmann::json::parse(json[0]).at("probability").get<double>(), 0.5);
  EXPECT_EQ(nlohmann::json::parse(json[1]).at("problem"), "it is no picture");
}

TEST_F(PictureFamilyTest, TheReportShowsPicturesWithWhatIsToldOfThem) {
  EXPECT_EQ(train("run"), 0);
  report::ReportContent content;
  report::read_report_data(fs::path(run("run")) / report::kReportDataFile, content);
  ASSERT_EQ(content.samples.size(), 2u);
  const auto& sample = std::get<report::MediaSample>(content.samples.front());
  ASSERT_EQ(sample.rows.size(), 3u);
  EXPECT_EQ(sample.rows[0], (std::pair<std::string, std::string>{"Label", "columns"}));
  EXPECT_EQ(sample.rows[1], (std::pair<std::string, std::string>{"Predicted", "columns"}));
}

TEST_F(PictureFamilyTest, PlanCountsTheOperationsOfAPicture) {
  constexpr double kPixels = 64, kTaps = 9, kChannels = 6, kClasses = 2;
  const double forward =
      2 * (kPixels * kTaps * (kChannels + kChannels * kChannels) + kChannels * kClasses);
  const auto cost = engine::model_cost({.experiment = load().options});
  EXPECT_DOUBLE_EQ(cost.training_flops, 3 * forward);
}

TEST_F(PictureFamilyTest, NoProcessesShareAMicroBatchOfABatchNorm) {
  EXPECT_FALSE(experiment::may_cut_micro_batches(load().options));
}

TEST_F(PictureFamilyTest, ItsNumbersAreThoseOfItsList) {
  const auto loaded = load();
  const auto& family = picture_family();
  const auto task = family.make_task(loaded.options, family.first_assets(loaded), {});
  task->model().eval();
  expect_listed(task->validate(), loaded.options);
}

class ImportedPictures : public PictureFamilyTest {
 protected:
  /// The weights of a run as somebody else's model.
  std::string folder_of(const std::string& name) const {
    folder_.write("other/config.json", R"({"model_type": "picture_classes"})");
    folder_.write("other/classes.txt", "columns\ngrey\nrows\n");
    fs::copy_file(checkpoint(name) / "model.safetensors", folder_ / "other/model.safetensors");
    return (folder_ / "other").string();
  }
};

TEST_F(ImportedPictures, KeepTheRunningStatisticsOfTheirBatchNorms) {
  EXPECT_EQ(train("run"), 0);
  const std::string said = stretto::testing::standard_output_of([&] {
    EXPECT_EQ(engine::run_import({.folder = folder_of("run"), .run_directory = run("imported")}),
              0);
  });
  EXPECT_NE(said.find("Pictures, "), std::string::npos) << said;
  EXPECT_EQ(said.find("piece"), std::string::npos) << said;
  EXPECT_EQ(scores("imported"), scores("run"));
  const auto tensors =
      store::CheckpointStore::load(store::CheckpointStore(run("imported")).path_of(0));
  EXPECT_NE(tensors.file("model").find("second_norm.running_var"), nullptr);
}

}  // namespace
}  // namespace stretto::tasks
