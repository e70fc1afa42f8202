// Training on a family whose samples are pictures in files, decoded by the loader's threads.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/random_streams.h"
#include "config/field.h"
#include "config/open_part.h"
#include "data/length_batches.h"
#include "data/media/media_table.h"
#include "engine/commands.h"
#include "experiment/data_files.h"
#include "experiment/family_spec.h"
#include "experiment/load_experiment.h"
#include "experiment/score_spec.h"
#include "experiment/task_rules.h"
#include "image/augment.h"
#include "image/image_file.h"
#include "image/resize.h"
#include "image/transform.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "tasks/registry.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/image/pictures.h"

namespace stretto::experiment {
namespace {

struct ColourDataOptions {
  std::vector<std::string> train;
  std::string cache_dir;
  int64_t threads = 1;
  std::string bad_samples = "stop";
  int64_t max_bad_samples = 1000;

  static auto fields() {
    using namespace config;
    using O = ColourDataOptions;
    return Fields{field(&O::train, "train", "folders of pictures", any(), {.is_path = true}),
                  field(&O::cache_dir, "cache_dir", "of the table of pictures", any(),
                        {.change = Change::kFree, .is_path = true}),
                  field(&O::threads, "threads", "that decode pictures", at_least(1),
                        {.change = Change::kFree})}
        .with(data::bad_sample_fields<O>());
  }
};

struct ColourModelOptions {
  int64_t side = 8;

  static auto fields() {
    return config::Fields{config::field(&ColourModelOptions::side, "side",
                                        "of the square that a picture becomes",
                                        config::at_least(1))};
  }
};

struct ColourOptions {
  static constexpr const char* kName = "colours";

  ColourDataOptions data;
  ColourModelOptions model;

  static auto fields() {
    using config::field;
    using O = ColourOptions;
    return config::Fields{field(&O::data, "data", "pictures"),
                          field(&O::model, "model", "the network")};
  }
};

const ColourOptions& colours_of(const Experiment& experiment) {
  return experiment.task.as<ColourOptions>();
}

class ColourRules final : public TaskRules {
 public:
  void check_model(RuleCheck& /*check*/) const override {}
  void check_data(RuleCheck& /*check*/) const override {}
  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return {{.style = report::loss_style()}};
  }
  ValidationData validation_data(const Experiment& /*experiment*/) const override {
    return {.there = true, .name = "a black picture", .keys = {"data.train"}, .remedy = ""};
  }
  BatchBound micro_batch(const Experiment& /*experiment*/) const override { return {}; }
};

const TaskRules& colour_rules() {
  static const ColourRules rules;
  return rules;
}

report::Display colour_display(const Experiment& /*experiment*/) {
  report::Display display;
  display.numbers = {report::loss_style()};
  display.rate = {.key = "pictures_per_second",
                  .unit = "pictures",
                  .short_unit = "pictures",
                  .batch = "pictures"};
  display.loss_unit = {.name = "pictures", .count = "pictures"};
  return display;
}

std::vector<data::DataFile> colour_files(const Experiment& experiment) {
  auto files = files_of_path_keys(experiment);
  std::erase_if(files, [](const auto& file) { return file.key != "data.train"; });
  for (auto& file : files) file.kind = data::DataKind::kTree;
  return files;
}

FamilySpec colour_spec() {
  return {.options = config::open_alternative<ColourOptions>(),
          .also_called = {},
          .rules = &colour_rules,
          .display = &colour_display,
          .data_files = &colour_files};
}

}  // namespace
}  // namespace stretto::experiment

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;
using stretto::testing::failure;

constexpr size_t kPixels = 0, kClass = 1;  // columns

/// Called before each update with its number.
std::function<void(int64_t)>& before_update() {
  static std::function<void(int64_t)> call;
  return call;
}
/// What the last training left out.
data::LeftOut& left_out_last() {
  static data::LeftOut left_out;
  return left_out;
}

/// Pictures as squares of numbers: a random part of each, and its class.
class PictureSamples final : public data::LengthSamples {
 public:
  PictureSamples(const experiment::Experiment& experiment)
      : options_(experiment::colours_of(experiment)),
        seed_(static_cast<uint64_t>(experiment.run.seed)),
        table_(data::open_media({.kind = data::MediaKind::kPicture,
                                 .sources = experiment::colour_files(experiment),
                                 .bad_samples = data::bad_sample_rule(options_.data)},
                                {.dir = options_.data.cache_dir, .threads = 2})),
        faults_(data::bad_sample_rule(options_.data), table_->left_out()) {
    if (table_->size() > 0)
      runs_.add(std::vector<uint32_t>{1}, static_cast<uint64_t>(table_->size()));
  }
  ~PictureSamples() override { left_out_last() = faults_.left_out(); }

  const data::LengthRuns& runs() const override { return runs_; }
  int64_t sample_at(uint64_t position) const override { return static_cast<int64_t>(position); }
  data::Batch empty_batch() const override {
    data::Batch batch;
    batch.columns = {data::Ragged<float>{.values = {}, .offsets = {0}, .width = width()},
                     data::PackedTokens{}};
    return batch;
  }
  void append(int64_t epoch, int64_t sample, data::Batch& batch) const override {
    std::vector<float> pixels(static_cast<size_t>(width()));
    const std::string path = table_->path(sample);
    const bool is_there = faults_.take(sample, path, [&] {
      const auto picture = image::decode_image(table_->read(sample), path);
      auto random = streams::augmentation(seed_, epoch, sample);
      const auto part = image::draw_crop(picture.height, picture.width, {}, random);
      const int64_t side = options_.model.side;
      image::normalise(image::resized(picture, part, side, side), {}, pixels);
    });
    if (!is_there) return;
    batch.sample_ids.push_back(sample);
    batch.column<float>(kPixels).append(pixels);
    batch.column<int64_t>(kClass).append(
        std::vector<int64_t>{table_->text(sample) == "bright" ? 1 : 0});
  }
  int64_t width() const { return image::kChannels * options_.model.side * options_.model.side; }

 private:
  experiment::ColourOptions options_;
  uint64_t seed_;
  std::shared_ptr<const data::MediaTable> table_;
  mutable data::MediaFaults faults_;
  data::LengthRuns runs_;
};

class ColourTask final : public FamilyTask {
 public:
  ColourTask(const experiment::Experiment& experiment)
      : threads_(experiment::colours_of(experiment).data.threads),
        samples_(std::make_shared<PictureSamples>(experiment)),
        train_(data::make_length_batches(samples_, {.max_rows = {0}, .max_samples = 2},
                                         data::Shuffle::kEachEpoch,
                                         static_cast<uint64_t>(experiment.run.seed))) {
    torch::manual_seed(3);
    linear_ = net_.register_module("linear", torch::nn::Linear(samples_->width(), 2));
  }

  torch::nn::Module& model() override { return net_; }
  const data::BatchSource& train_batches() override { return *train_; }
  std::vector<std::string> counters() const override { return {"pictures"}; }
  train::Prepared prepare(data::Batch batch) const override {
    train::Prepared prepared(std::move(batch));
    prepared.add(prepared.column(kPixels));
    prepared.add(prepared.column(kClass));
    return prepared;
  }
  train::Sums loss(const train::Prepared& batch, const train::StepContext& context) override {
    if (before_update()) before_update()(context.update);
    return {.losses = {loss_of(batch.tensor(0), batch.tensor(1))},
            .counts = {batch.batch().num_sequences()}};
  }
  std::vector<double> weights(const data::Batch& batch) const override {
    return {static_cast<double>(batch.num_sequences())};
  }
  bool can_validate() const override { return true; }
  train::Validation validate() override {
    const torch::NoGradGuard no_grad;
    const auto loss = loss_of(torch::zeros({1, samples_->width()}), torch::zeros({1}, at::kLong));
    return {.scores = {{.name = "loss", .value = loss.item<double>()}},
            .counts = {{"pictures", 1}}};
  }
  std::map<std::string, std::string> assets() const override { return {}; }

  std::vector<distributed::Fact> data_facts() const override { return {}; }
  void require_known_data(bool /*warn*/) const override {}
  std::vector<std::pair<std::string, std::string>> facts() const override { return {}; }
  data::Loading loading() const override { return {.depth = 2, .threads = threads_}; }
  int64_t update_bound() const override { return 1; }
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& /*run*/) const override {
    return {};
  }

 private:
  at::Tensor loss_of(const at::Tensor& pixels, const at::Tensor& classes) {
    return at::cross_entropy_loss(linear_(pixels), classes, {}, at::Reduction::Sum);
  }

  int64_t threads_;
  std::shared_ptr<PictureSamples> samples_;
  std::unique_ptr<data::BatchSource> train_;
  torch::nn::Module net_;
  torch::nn::Linear linear_{nullptr};
};

class ColourFamily final : public Family {
 public:
  Assets first_assets(const experiment::LoadedExperiment& /*experiment*/) const override {
    return {};
  }
  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& /*assets*/,
                                        const CommandContext& /*context*/) const override {
    return std::make_unique<ColourTask>(experiment);
  }
  int eval(const EvalRequest& /*request*/, const CommandContext& /*context*/) const override {
    return 0;
  }
  int infer(const InferRequest& /*request*/, const CommandContext& /*context*/) const override {
    return 0;
  }
  std::string memory_advice(MemoryUse /*use*/) const override { return "use fewer pictures"; }
  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const override {
    torch::nn::Module net;
    const int64_t side = experiment::colours_of(experiment).model.side;
    net.register_module("linear", torch::nn::Linear(image::kChannels * side * side, 2));
    return optim::names_of(optim::Arena(net, optim::Arena::Gradients::kNone));
  }
  models::ModelCost model_cost(const CostRequest& /*request*/) const override { return {}; }
  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& /*experiment*/,
                                                  const Assets& /*assets*/,
                                                  bool /*draws_weights*/) const override {
    return nullptr;
  }
  void check_weights(const experiment::CheckRequest& /*request*/,
                     experiment::Preflight& /*found*/) const override {}
  void require_room(const fs::path& /*place*/, const experiment::Experiment& /*other*/,
                    const experiment::Experiment& /*own*/) const override {}
};

const Family& colour_family() {
  static const ColourFamily family;
  return family;
}

class MediaFamilyTest : public ::testing::Test {
 protected:
  MediaFamilyTest() {
    for (int i = 0; i < 5; ++i) {
      put("dark/" + std::to_string(i) + ".png", static_cast<uint8_t>(20 * i));
      put("bright/" + std::to_string(i) + ".png", static_cast<uint8_t>(255 - 20 * i));
    }
  }
  ~MediaFamilyTest() override { before_update() = {}; }
  static void SetUpTestSuite() {
    if (experiment::TaskChoice().select("colours")) return;
    experiment::add_family(experiment::colour_spec());
    add_family({"colours", &colour_family});
  }

  void put(const std::string& name, uint8_t value) const {
    image::Image picture = image::test::speckled(12, 16);
    for (uint8_t& pixel : picture.pixels) pixel = static_cast<uint8_t>((pixel + 7 * value) / 8);
    folder_.write("pictures/" + name, image::test::png_of(picture));
  }
  int train(const std::string& run, std::vector<std::string> overrides = {}) const {
    overrides.push_back("data.cache_dir=" + (folder_ / "cache").string());
    return engine::run_train({.experiment = experiment::load_experiment(recipe_, overrides),
                              .run_directory = (folder_ / run).string()});
  }
  /// The bytes of all tensors: in front of them, the file names its run.
  std::string weights_of(const std::string& run) const {
    const auto file = read_file(folder_ / run / "checkpoints/step_00000020/model.safetensors");
    uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof header);
    return file.substr(sizeof header + header);
  }
  /// In the middle of a run, a file goes that earlier updates have read.
  void lose_a_picture() const {
    before_update() = [this](int64_t update) {
      if (update == 5) fs::remove(folder_ / "pictures/dark/2.png");
    };
  }

  testing::TempDir folder_;
  const std::string recipe_ = folder_.write("colours.toml", R"(
[run]
seed = 1
threads = 1
device = "cpu"
[task]
name = "colours"
[data]
train = ["pictures"]
[optim]
lr = 0.05
[schedule]
name = "constant"
warmup_steps = 2
[train]
max_steps = 20
save_every = 10
[eval]
every = 10
[report]
every = 1
tensorboard = false
html = false
)");
};

TEST_F(MediaFamilyTest, ThreadsDecodePicturesAndChangeNothing) {
  EXPECT_EQ(train("one"), 0);
  EXPECT_EQ(train("three", {"data.threads=3"}), 0);
  EXPECT_EQ(weights_of("one"), weights_of("three"));
  EXPECT_EQ(left_out_last().count, 0);
}

TEST_F(MediaFamilyTest, APictureThatVanishesEndsTraining) {
  lose_a_picture();
  const auto error = failure(ExitCode::kBadData, [&] { train("run"); });
  EXPECT_NE(
      error.message().find((folder_ / "pictures/dark/2.png").string() + ": is not there any more"),
      std::string::npos)
      << error.message();
}

TEST_F(MediaFamilyTest, OrItIsLeftOutAndCountedOnce) {
  lose_a_picture();
  EXPECT_EQ(train("run", {"data.bad_samples=\"skip\""}), 0);
  EXPECT_EQ(left_out_last().count, 1);
  EXPECT_EQ(left_out_last().first.front().file, (folder_ / "pictures/dark/2.png").string());
}

TEST_F(MediaFamilyTest, MoreThanAllowedEndTraining) {
  lose_a_picture();
  const auto error = failure(ExitCode::kBadData, [&] {
    train("run", {"data.bad_samples=\"skip\"", "data.max_bad_samples=0"});
  });
  EXPECT_NE(error.message().find("more than data.max_bad_samples = 0"), std::string::npos)
      << error.message();
}

TEST_F(MediaFamilyTest, APictureThatCannotBeReadIsFoundBeforeTraining) {
  folder_.write("pictures/dark/6.png", "no picture");
  const auto error = failure(ExitCode::kBadData, [&] { train("run"); });
  EXPECT_NE(error.message().find((folder_ / "pictures").string() +
                                 ": dark/6.png: is no picture that can be read"),
            std::string::npos)
      << error.message();
  EXPECT_EQ(train("run", {"data.bad_samples=\"skip\""}), 0);
  EXPECT_EQ(left_out_last().count, 1);
}

}  // namespace
}  // namespace stretto::tasks
