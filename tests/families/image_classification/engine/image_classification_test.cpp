#include "families/image_classification/engine/image_classification.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/commands.h"
#include "experiment/load_experiment.h"
#include "families/image_classification/engine/image_classification_family.h"
#include "families/image_classification/engine/image_run.h"
#include "image/encode_png.h"
#include "report/metrics_log.h"
#include "report/report_data.h"
#include "store/checkpoint.h"
#include "tests/base/failure.h"
#include "tests/base/standard_output.h"
#include "tests/families/image_classification/striped_pictures.h"
#include "tests/tasks/listed_scores.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;

using Words = std::vector<std::string>;

class ImageClassificationTest : public ::testing::Test {
 protected:
  ImageClassificationTest() {
    testing::put_pictures(folder_, "train", 12);
    testing::put_pictures(folder_, "valid", 3, 20);
  }

  experiment::LoadedExperiment load(const Words& overrides = {}) const {
    return experiment::load_experiment(recipe_, overrides);
  }
  std::string run(const std::string& name) const { return (folder_ / name).string(); }
  int train(const std::string& name, const Words& overrides = {}, int64_t until = 0) const {
    return engine::run_train(
        {.experiment = load(overrides), .run_directory = run(name), .until = until});
  }
  std::unique_ptr<FamilyTask> task(const Words& overrides = {}) const {
    const auto loaded = load(overrides);
    const auto& family = image_classification_family();
    return family.make_task(loaded.options, family.first_assets(loaded), {});
  }
  /// Every tensor of the last checkpoint.
  std::map<std::string, std::string> saved(const std::string& name) const {
    const store::CheckpointStore checkpoints(run(name));
    const auto loaded =
        store::CheckpointStore::load(checkpoints.path_of(checkpoints.steps().back()));
    std::map<std::string, std::string> tensors;
    for (const auto& [stem, file] : loaded.files) {
      for (const auto& tensor : file.tensors()) {
        tensors[stem + ":" + tensor.name] = std::string(tensor.bytes);
      }
    }
    return tensors;
  }
  nlohmann::json scores(const std::string& name, const Words& overrides = {}) const {
    return nlohmann::json::parse(stretto::testing::standard_output_of([&] {
      const EvalRequest request{.experiment = load(overrides),
                                .run_directory = run(name),
                                .checkpoint = "last",
                                .json = true};
      EXPECT_EQ(image_classification_family().eval(request, {}), 0);
    }));
  }
  Words answers(const std::string& name, const Words& files, bool json = false) const {
    const std::string said = stretto::testing::standard_output_of([&] {
      const InferRequest request{.experiment = load(),
                                 .run_directory = run(name),
                                 .checkpoints = "last",
                                 .files = files,
                                 .json = json};
      EXPECT_EQ(image_classification_family().infer(request, {}), 0);
    });
    Words lines;
    for (size_t at = 0, end; (end = said.find('\n', at)) != std::string::npos; at = end + 1) {
      lines.push_back(said.substr(at, end - at));
    }
    return lines;
  }
  double loss_of(FamilyTask& task, const data::Batch& batch) const {
    return task.loss(task.prepare(batch), {}).losses.front().item<double>();
  }

  testing::TempDir folder_;
  const std::string recipe_ = folder_.write("pictures.toml", R"(
[run]
seed = 1
threads = 1
device = "cpu"
[task]
name = "image_classification"
[data]
train = ["train"]
valid = ["valid"]
cache_dir = "cache"
max_samples = 9
[augment]
image_size = 16
crop = "pad"
padding = 2
[model]
name = "resnet"
preset = "none"
depth = 8
base_width = 8
[optim]
name = "adam"
lr = 0.01
[schedule]
name = "constant"
warmup_steps = 2
[train]
max_steps = 60
save_every = 30
[eval]
every = 30
[report]
every = 1
samples = 2
tensorboard = false
)");
};

TEST_F(ImageClassificationTest, LearnsToTellPicturesApart) {
  EXPECT_EQ(train("run"), 0);
  const auto json = scores("run");
  EXPECT_EQ(json.at("accuracy"), 1.0);
  EXPECT_EQ(json.at("top5"), 1.0);
  EXPECT_LT(json.at("loss"), 0.3);
}

TEST_F(ImageClassificationTest, ARunInPartsEndsWithTheBitsOfAWholeOne) {
  const Words mixed{"augment.mixup_alpha=0.2", "augment.cutmix_alpha=1", "train.ema_decay=0.9",
                    "augment.train_sizes=[\"2 24\"]"};
  EXPECT_EQ(train("whole", mixed), 0);
  for (const int64_t until : {7, 30, 41, 0}) EXPECT_EQ(train("parts", mixed, until), 0);
  EXPECT_EQ(saved("parts"), saved("whole"));
}

TEST_F(ImageClassificationTest, TheLossIsTheSumOfThatOfEachPicture) {
  const auto loaded = experiment::load_experiment(folder_.write("vit.toml", R"(
[task]
name = "image_classification"
[data]
train = ["train"]
cache_dir = "cache"
max_samples = 9
[augment]
image_size = 16
crop = "pad"
padding = 2
mixup_alpha = 1.0
[model]
name = "vit"
preset = "none"
num_layers = 1
d_model = 32
num_heads = 2
patch_size = 4
image_size = 16
[loss]
label_smoothing = 0.1
[optim]
name = "adam"
[schedule]
warmup_steps = 2
[train]
max_steps = 60
)"),
                                                  {});
  const auto& family = image_classification_family();
  const auto task = family.make_task(loaded.options, family.first_assets(loaded), {});
  const data::Batch batch = task->train_batches().load_for_training(0, 0);
  double parts = 0, weights = 0;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const data::Batch one = data::part(batch, i, i + 1);
    parts += loss_of(*task, one);
    weights += task->weights(one).front();
  }
  EXPECT_NEAR(parts, loss_of(*task, batch), 1e-4);
  EXPECT_EQ(weights, task->weights(batch).front());
}

TEST_F(ImageClassificationTest, ALoneLastPictureIsRefusedUnderBatchNorm) {
  const auto error = failure(ExitCode::kUsage, [&] { task({"data.max_samples=7"}); });
  EXPECT_NE(error.message().find("the last micro-batch of an epoch of 36 pictures has one picture"),
            std::string::npos)
      << error.message();
  EXPECT_NO_THROW(task({"data.max_samples=7", "data.drop_last=true"}));
  EXPECT_NO_THROW(task({"data.max_samples=7", "dist.batch_norm=\"all\""}));
}

TEST_F(ImageClassificationTest, ScoresDoNotDependOnWhatIsInABatch) {
  EXPECT_EQ(train("run"), 0);
  const auto together = scores("run"), alone = scores("run", {"eval.max_samples=1"});
  EXPECT_NEAR(together.at("loss").get<double>(), alone.at("loss").get<double>(), 1e-5);
  EXPECT_EQ(together.at("accuracy"), alone.at("accuracy"));
}

TEST_F(ImageClassificationTest, ViewsAreAveragedInTheirProbabilities) {
  EXPECT_EQ(train("run"), 0);
  const auto one = scores("run"), flipped = scores("run", {"augment.test_flip=true"});
  EXPECT_NE(one.at("loss"), flipped.at("loss"));
  EXPECT_EQ(flipped.at("accuracy"), 1.0);
}

TEST_F(ImageClassificationTest, FilesAreAnsweredInTheirOrder) {
  EXPECT_EQ(train("run"), 0);
  const Words files{testing::put_picture(folder_, "new", "rows", 40),
                    folder_.write("new/text", "abc"),
                    testing::put_picture(folder_, "new", "columns", 41), run("new"),
                    folder_.write("new/empty", "")};
  EXPECT_EQ(answers("run", files), (Words{"rows", "", "columns", "", ""}));
  const auto json = answers("run", files, /*json=*/true);
  ASSERT_EQ(json.size(), files.size());
  const auto first = nlohmann::json::parse(json[0]);
  EXPECT_EQ(first.at("label"), "rows");
  EXPECT_GT(first.at("probability").get<double>(), 0.5);
  EXPECT_EQ(first.at("top").size(), 3U);
  EXPECT_NE(nlohmann::json::parse(json[3]).at("problem").get<std::string>().find("is a folder"),
            std::string::npos);
}

TEST_F(ImageClassificationTest, TheReportShowsWhatTheModelSeesAndTheMostWrongPictures) {
  EXPECT_EQ(train("run"), 0);
  report::ReportContent content;
  report::read_report_data(fs::path(run("run")) / report::kReportDataFile, content);
  ASSERT_EQ(content.samples.size(), 5U);
  EXPECT_EQ(std::get<report::MatrixSample>(content.samples[0]).rows,
            (Words{"columns", "grey", "rows"}));
  for (size_t i = 1; i < 5; ++i) {
    const auto& sample = std::get<report::MediaSample>(content.samples[i]);
    EXPECT_EQ(sample.mime, "image/png");
    EXPECT_FALSE(sample.bytes.empty()) << sample.note;
  }
  const auto& wrong = std::get<report::MediaSample>(content.samples[3]);
  ASSERT_EQ(wrong.rows.size(), 3U);
  EXPECT_EQ(wrong.rows[0].first, "Class");
  EXPECT_EQ(wrong.rows[1].first, "Predicted");
}

TEST_F(ImageClassificationTest, APictureThatVanishesIsLeftOutOfTheLossAndCounted) {
  const Words words{"data.bad_samples=\"skip\"", "train.max_steps=8", "data.threads=1",
                    "data.prefetch=1"};
  const auto loaded = load(words);
  const auto& family = image_classification_family();
  const auto task = family.make_task(loaded.options, family.first_assets(loaded), {});
  const data::Batch batch = task->train_batches().load_for_training(0, 0);
  const auto place = task->show(batch, 0).front().second;
  fs::remove(place);
  const auto made = task->prepare(batch);
  EXPECT_EQ(task->weights(made).front(), 8);
  const auto sums = task->loss(made, {});
  EXPECT_EQ(sums.counts, (std::vector<int64_t>{9, 1}));
}

TEST_F(ImageClassificationTest, AnotherRunsLayersAreTakenAndItsHeadIfItHasTheClasses) {
  EXPECT_EQ(train("first"), 0);
  const Words same{"train.init_from=\"" + run("first") + "\"", "train.max_steps=1",
                   "schedule.warmup_steps=0"};
  EXPECT_EQ(train("same", same), 0);
  testing::put_picture(folder_, "train", "spots", 1);
  testing::put_picture(folder_, "train", "spots", 2);
  EXPECT_EQ(train("more", same), 0);
  EXPECT_EQ(saved("more").at("model:head.bias").size(), 4 * sizeof(float));
  experiment::Preflight found;
  image_classification_family().check_weights({.experiment = load(same), .weights = true}, found);
  EXPECT_TRUE(found.stops.empty()) << found.stops.front().what;
}

TEST_F(ImageClassificationTest, ItsNumbersAreThoseOfItsList) {
  const auto loaded = load();
  const auto made = task();
  made->model().eval();
  expect_listed(made->validate(), loaded.options);
}

constexpr const char* kAirbench = R"(
[task]
name = "image_classification"
[data]
train = ["train"]
cache_dir = "cache"
max_samples = 9
[augment]
image_size = 16
[model]
name = "airbench"
preset = "none"
width1 = 8
width2 = 8
width3 = 8
convolutions = 2
whiten_images = 20
[optim]
name = "adam"
[schedule]
warmup_steps = 2
[train]
max_steps = 60
)";

TEST_F(ImageClassificationTest, AirbenchBeginsWithFiltersThatWhitenItsPictures) {
  const auto loaded = experiment::load_experiment(folder_.write("airbench.toml", kAirbench), {});
  const auto& family = image_classification_family();
  const auto assets = family.first_assets(loaded);
  const auto one = family.make_task(loaded.options, assets, {}),
             other = family.make_task(loaded.options, assets, {});
  const auto filters = [](FamilyTask& made) {
    return dynamic_cast<models::ImageModel&>(made.model()).first_filters();
  };
  EXPECT_TRUE(at::equal(filters(*one), filters(*other)));
  auto plain = loaded.options;
  plain.task.as<experiment::ImageClassificationOptions>()
      .model.as<models::AirbenchOptions>()
      .whiten_images = 0;
  const auto drawn = family.make_task(plain, assets, {});
  EXPECT_FALSE(at::equal(filters(*one), filters(*drawn)));
}

// Files come class by class: 20 pictures of 36 are not the first two classes.
TEST_F(ImageClassificationTest, AirbenchWhitensPicturesOfAllClasses) {
  for (const std::string name : {"columns", "grey", "rows"}) {
    for (int64_t i = 0; i < 12; ++i) {
      const auto shown = testing::striped_picture(name == "rows" ? "columns" : name, i);
      folder_.write("other/" + name + "/" + std::to_string(i) + ".png", image::encode_png(shown));
    }
  }
  const std::string recipe = folder_.write("airbench.toml", kAirbench);
  const auto& family = image_classification_family();
  const auto filters_of = [&](const std::string& set) {
    const auto loaded = experiment::load_experiment(recipe, {"data.train=[\"" + run(set) + "\"]"});
    const auto made = family.make_task(loaded.options, family.first_assets(loaded), {});
    return dynamic_cast<models::ImageModel&>(made->model()).first_filters().clone();
  };
  EXPECT_TRUE(at::equal(filters_of("train"), filters_of("train")));
  EXPECT_FALSE(at::equal(filters_of("train"), filters_of("other")));
}

}  // namespace
}  // namespace stretto::tasks
