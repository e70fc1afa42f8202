#include "tests/picture_family/picture_family.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/length_batches.h"
#include "data/media/media_table.h"
#include "image/image.h"
#include "image/image_file.h"
#include "models/heads/label.h"
#include "models/operations.h"
#include "models/registry.h"
#include "nn/batch_norm.h"
#include "nn/counted.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "nn/watch.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/run_folder.h"
#include "tasks/line_work.h"
#include "tests/tasks/small_family.h"
#include "train/evaluation.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;
using experiment::kPictureAccuracy, experiment::kPictureTop2, experiment::pictures_of;

constexpr const char* kClassFile = "classes.txt";
constexpr int64_t kPixels = kPictureSide * kPictureSide;

using Classes = std::vector<std::string>;

// Data.

/// The names of the folders in these folders; the place of a class is its number.
Classes classes_in(const std::vector<std::string>& folders) {
  std::set<std::string> names;
  for (const auto& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      names.insert(entry.path().filename().string());
    }
  }
  return {names.begin(), names.end()};
}

Assets assets_of(const Classes& classes) {
  return {{kClassFile, join(classes, "\n") + "\n"}};
}

Classes classes_of(const Assets& assets) {
  Classes classes = split(assets.at(kClassFile), '\n');
  classes.pop_back();  // what stands behind the last line end
  return classes;
}

/// The pixels of a grey picture of 8 x 8. Throws Error(kBadData) for any other file.
std::vector<uint8_t> decode(std::string_view bytes, const std::string& name) {
  const image::Image picture = image::decode_image(bytes, name);
  if (picture.height != kPictureSide || picture.width != kPictureSide) {
    throw Error(ExitCode::kBadData, name + ": is no picture of 8 x 8", "resize it");
  }
  const auto plane = picture.plane(0);
  return {plane.begin(), plane.end()};
}

/// Pictures of equal size: one run of equal lengths, so that an epoch shuffles all of them.
class PictureFiles final : public data::LengthSamples {
 public:
  /// @param key  of the folders: "data.train"
  PictureFiles(const experiment::Experiment& experiment, const std::string& key,
               const Classes& classes)
      : table_(open_table(experiment, key)),
        faults_(data::bad_sample_rule(pictures_of(experiment).data), table_->left_out()) {
    for (int64_t sample = 0; sample < size(); ++sample) {
      const std::string name(table_->text(sample));
      labels_.push_back(std::ranges::find(classes, name) - classes.begin());
    }
    if (size() > 0) runs_.add(std::vector<uint32_t>{1}, static_cast<uint64_t>(size()));
  }

  const data::LengthRuns& runs() const override { return runs_; }
  int64_t sample_at(uint64_t position) const override { return static_cast<int64_t>(position); }
  data::Batch empty_batch() const override {
    return {.sample_ids = {}, .columns = {data::PackedTokens{}}};
  }
  void append(int64_t /*epoch*/, int64_t sample, data::Batch& batch) const override {
    batch.sample_ids.push_back(sample);
    batch.column<int64_t>(kPictureClass).append({labels_[static_cast<size_t>(sample)]});
  }

  int64_t size() const { return table_->size(); }
  fs::path path(int64_t sample) const { return table_->path(sample); }
  /// Nothing for one that cannot be decoded any more, and is skipped. Throws as MediaFaults do.
  std::optional<std::vector<uint8_t>> pixels(int64_t sample) const {
    std::optional<std::vector<uint8_t>> decoded;
    const std::string path = table_->path(sample);
    faults_.take(sample, path, [&] { decoded = decode(table_->read(sample), path); });
    return decoded;
  }
  data::LeftOut left_out() const { return faults_.left_out(); }

 private:
  static std::shared_ptr<const data::MediaTable> open_table(
      const experiment::Experiment& experiment, const std::string& key) {
    const auto& options = pictures_of(experiment).data;
    auto folders = experiment::folders_of_pictures(experiment);
    std::erase_if(folders, [&](const auto& folder) { return folder.key != key; });
    return data::open_media({.kind = data::MediaKind::kPicture,
                             .sources = std::move(folders),
                             .bad_samples = data::bad_sample_rule(options)},
                            {.dir = options.cache_dir, .threads = options.threads});
  }

  std::shared_ptr<const data::MediaTable> table_;
  mutable data::MediaFaults faults_;
  std::vector<int64_t> labels_;
  data::LengthRuns runs_;
};

/// A batch with its pixels [B, 1, 8, 8] of bytes and its classes [B]. In training a picture is
/// mirrored, or not, by (seed, epoch, sample).
train::Prepared prepare_pictures(data::Batch batch, const PictureFiles& files,
                                 std::optional<uint64_t> seed) {
  const at::Tensor pixels =
      at::zeros({batch.num_sequences(), 1, kPictureSide, kPictureSide}, at::kByte);
  auto& labels = batch.column<int64_t>(kPictureClass).values;
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    const int64_t sample = batch.sample_ids[static_cast<size_t>(i)];
    const auto decoded = files.pixels(sample);
    if (!decoded) {
      labels[static_cast<size_t>(i)] = -1;
      continue;
    }
    at::Tensor picture = at::tensor(*decoded, at::kByte).view({kPictureSide, kPictureSide});
    if (seed) {
      const uint64_t key =
          mix64(mix64(*seed, static_cast<uint64_t>(batch.epoch)), static_cast<uint64_t>(sample));
      if (RandomStream(key).uniform() < 0.5) picture = picture.flip({1});
    }
    pixels[i][0].copy_(picture);
  }
  train::Prepared made(std::move(batch));
  made.add(pixels);
  made.add(made.column(kPictureClass));
  return made;
}

/// The pictures of a batch that could be decoded.
double num_usable(const data::Batch& batch) {
  const auto& labels = batch.column<int64_t>(kPictureClass).values;
  return static_cast<double>(
      std::ranges::count_if(labels, [](int64_t label) { return label >= 0; }));
}

// The model.

/// A convolution of 3 x 3 over planes [B, C, 8, 8]. Its weight [O, 9 C] is a matrix, as those of
/// other layers are.
class PlaneConvolution : public torch::nn::Module, public nn::Counted {
 public:
  PlaneConvolution(const nn::Init& init, int64_t in, int64_t out) : in_(in) {
    weight_ = register_parameter(
        "weight", init.matrix("weight", out, 9 * in,
                              {.distribution = nn::Distribution::kHeNormal, .number = 1}));
  }
  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor filters = weight_.view({weight_.size(0), in_, 3, 3});
    return nn::watch(*this, at::conv2d(x, filters, {}, /*stride=*/at::IntArrayRef({1, 1}),
                                       /*padding=*/at::IntArrayRef({1, 1})));
  }
  /// For one pixel.
  double operations() const override { return 2 * static_cast<double>(weight_.numel()); }

 private:
  int64_t in_;
  at::Tensor weight_;
};

/// Two convolutions with batch norm, the second around a shortcut; the mean over the plane; logits.
class PictureModel : public torch::nn::Module {
 public:
  PictureModel(const nn::Init& init, int64_t channels, int64_t num_classes) {
    const auto convolution = [&](const std::string& name, int64_t in) {
      return register_module(name,
                             std::make_shared<PlaneConvolution>(init.child(name), in, channels));
    };
    first_ = convolution("first", 1);
    first_norm_ = register_module("first_norm", nn::BatchNorm(init.child("first_norm"), channels));
    second_ = convolution("second", channels);
    second_norm_ =
        register_module("second_norm", nn::BatchNorm(init.child("second_norm"), channels));
    output_ = register_module("output", nn::Linear(init.child("output"), channels, num_classes));
  }

  /// pixels [B, 1, 8, 8] of bytes -> logits [B, classes]
  at::Tensor forward(const at::Tensor& pixels) const {
    at::Tensor x = pixels.to(output_->weight.scalar_type()).div(127.5).sub(1);
    x = at::relu(first_norm_->forward(first_->forward(x)));
    x = at::relu(x + second_norm_->forward(second_->forward(x)));
    return output_->forward(x.mean({2, 3}));
  }
  /// Multiplications and additions for one picture.
  double operations() const {
    return (first_->operations() + second_->operations()) * static_cast<double>(kPixels) +
           models::weight_operations(*output_);
  }
  at::Device device() const { return output_->weight.device(); }

 private:
  std::shared_ptr<PlaneConvolution> first_, second_;
  nn::BatchNorm first_norm_{nullptr}, second_norm_{nullptr};
  nn::Linear output_{nullptr};
};

std::shared_ptr<PictureModel> make_picture_model(const experiment::Experiment& experiment,
                                                 const Classes& classes, at::Device device) {
  return std::make_shared<PictureModel>(
      nn::Init(static_cast<uint64_t>(experiment.run.seed), device),
      pictures_of(experiment).model.channels, std::ssize(classes));
}

// Scores.

/// The numbers of a picture, as columns of a table.
enum PictureNumber : int64_t { kLossOf = 0, kIsUsable, kIsRight, kIsInTop2, kGuess, kNumNumbers };

/// Pictures in batches for evaluation.
struct PictureSet {
  std::shared_ptr<const PictureFiles> files;
  std::unique_ptr<data::BatchSource> batches;
};

PictureSet picture_set(const experiment::Experiment& experiment, const Classes& classes) {
  auto files = std::make_shared<const PictureFiles>(experiment, "data.valid", classes);
  const int64_t max_samples = pictures_of(experiment).data.max_samples;
  auto batches = data::make_length_batches(files, {.max_rows = {0}, .max_samples = max_samples},
                                           data::Shuffle::kNo, /*seed=*/0);
  return {std::move(files), std::move(batches)};
}

train::ScoreTable score_pictures(const PictureModel& model, const PictureSet& set,
                                 const CommandContext& context) {
  const train::EvaluationSetup setup{
      .device = context.device, .group = context.group, .prepare = [&](data::Batch batch) {
        return prepare_pictures(std::move(batch), *set.files, std::nullopt);
      }};
  const auto score = [&](int64_t /*part*/, std::span<const train::Prepared> batches,
                         train::ScoreTable& table) {
    const train::Prepared& batch = batches.front();
    const at::Tensor logits = model.forward(batch.tensor(0)), labels = batch.tensor(1);
    const at::Tensor usable = labels.ge(0), wanted = labels.clamp_min(0);
    const auto fill = [&](PictureNumber number, const at::Tensor& values) {
      table.fill(batch.batch().sample_ids, number, values.to(at::kDouble) * usable);
    };
    fill(kLossOf, models::label_cross_entropy(logits, wanted).each);
    fill(kIsUsable, usable);
    fill(kIsRight, models::is_in_top(logits, wanted, 1));
    fill(kIsInTop2, models::is_in_top(logits, wanted, 2));
    fill(kGuess, logits.argmax(1));
  };
  return train::evaluate(train::parts_of(*set.batches),
                         train::ScoreTable(set.files->size(), kNumNumbers), setup, score);
}

std::vector<train::Score> scores_of(const train::ScoreTable& table) {
  const double usable = std::max(1.0, table.sum(kIsUsable));
  return {{.name = "loss", .value = table.sum(kLossOf) / usable},
          {.name = kPictureAccuracy, .value = table.sum(kIsRight) / usable},
          {.name = kPictureTop2, .value = table.sum(kIsInTop2) / usable}};
}

// Training.

class PictureClassTask : public SmallTask<FamilyTask> {
 public:
  PictureClassTask(const experiment::Experiment& experiment, const Classes& classes,
                   const CommandContext& context)
      : options_(pictures_of(experiment)),
        seed_(static_cast<uint64_t>(experiment.run.seed)),
        num_shown_(experiment.report.samples),
        update_bound_(options_.data.max_samples * experiment.train.update_freq),
        classes_(classes),
        context_(context),
        model_(make_picture_model(experiment, classes, context.device)),
        files_(std::make_shared<const PictureFiles>(experiment, "data.train", classes)),
        train_(data::make_length_batches(
            files_, {.max_rows = {0}, .max_samples = options_.data.max_samples},
            data::Shuffle::kEachEpoch, seed_)),
        valid_(picture_set(experiment, classes)) {}
  ~PictureClassTask() override { left_out_last() = files_->left_out(); }

  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return *train_; }
  std::vector<std::string> statistics() const override { return {"right"}; }
  std::vector<std::string> counters() const override { return {"pictures", "unreadable pictures"}; }

  train::Prepared prepare(data::Batch batch) const override {
    return prepare_pictures(std::move(batch), *files_, seed_);
  }
  train::Sums loss(const train::Prepared& batch, const train::StepContext& context) override {
    if (before_update()) before_update()(context.update);
    const at::Tensor logits = model_->forward(batch.tensor(0)), labels = batch.tensor(1);
    const at::Tensor usable = labels.ge(0), wanted = labels.clamp_min(0);
    const auto count = batch.batch().num_sequences();
    return {.losses = {(models::label_cross_entropy(logits, wanted).each * usable).sum()},
            .statistics = {models::is_in_top(logits, wanted, 1).logical_and(usable).sum()},
            .counts = {count, count - static_cast<int64_t>(num_usable(batch))}};
  }
  std::vector<double> weights(const data::Batch& batch) const override {
    return {num_usable(batch)};
  }
  std::vector<train::Score> measures(const train::Totals& totals) const override {
    return {{.name = kPictureAccuracy,
             .value = totals.statistics.front() / std::max(1.0, totals.weights.front())}};
  }

  bool can_validate() const override { return valid_.files->size() > 0; }
  train::Validation validate() override {
    const train::ScoreTable table = score_pictures(*model_, valid_, context_);
    train::Validation result{.scores = scores_of(table),
                             .counts = {{"pictures", valid_.files->size()}}};
    for (int64_t i = 0; i < std::min(num_shown_, valid_.files->size()); ++i) {
      const fs::path path = valid_.files->path(i);
      const auto guess = static_cast<size_t>(table.row(i)[kGuess]);
      result.samples.emplace_back(
          report::MediaSample{.mime = "image/png",
                              .bytes = {},
                              .words = path.filename().string(),
                              .note = "this test draws no picture",
                              .rows = {{"Label", path.parent_path().filename().string()},
                                       {"Predicted", classes_.at(guess)},
                                       {"Loss", fixed(table.row(i)[kLossOf], 3)}}});
    }
    return result;
  }
  Assets assets() const override { return assets_of(classes_); }

  std::vector<distributed::Fact> data_facts() const override {
    return {{"pictures", std::to_string(files_->size())}};
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"parameters", with_thousands(models::num_parameters(*model_))}};
  }
  data::Loading loading() const override { return {.depth = 4, .threads = options_.data.threads}; }
  int64_t update_bound() const override { return update_bound_; }

 private:
  const experiment::PictureOptions options_;
  const uint64_t seed_;
  const int64_t num_shown_, update_bound_;
  const Classes classes_;
  const CommandContext context_;
  std::shared_ptr<PictureModel> model_;
  std::shared_ptr<const PictureFiles> files_;
  std::unique_ptr<data::BatchSource> train_;
  PictureSet valid_;
};

// Commands.

struct PictureRun {
  Classes classes;
  std::shared_ptr<PictureModel> model;
};

PictureRun load_picture_run(const experiment::Experiment& experiment, const std::string& directory,
                            const std::string& selector, at::Device device) {
  const auto folder = runs::RunFolder::open(directory);
  const auto checkpoint = runs::open_checkpoint(folder.directory(), selector);
  PictureRun run{.classes = classes_of(folder.read_assets()), .model = nullptr};
  run.model = make_picture_model(experiment, run.classes, device);
  runs::load_weights(checkpoint, *run.model);
  run.model->eval();
  return run;
}

/// A file of the command line on its way through the model.
struct PictureLine : WorkLine {
  std::vector<uint8_t> pixels = {};
  int64_t label = 0;
  double probability = 0;
};

/// The files that the command names, one a line.
class PicturePaths final : public LineSource<PictureLine> {
 public:
  explicit PicturePaths(const std::vector<std::string>& files) : files_(files) {}
  bool next(PictureLine& line) override {
    if (next_ == files_.size()) return false;
    line.input.text = line.input.place = files_[next_++];
    return true;
  }
  bool ready() override { return true; }

 private:
  const std::vector<std::string>& files_;
  size_t next_ = 0;
};

class PictureAnswers final : public LineFamily<PictureLine> {
 public:
  PictureAnswers(const PictureRun& run, bool as_json) : run_(run), as_json_(as_json) {}

  size_t bytes(const PictureLine& /*line*/) const override { return kPixels; }
  void prepare(PictureLine& line) const override {
    try {
      line.pixels = decode(read_file(line.input.text), line.input.text);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kBadData) throw;
      line.input.problem = "it is no picture";
    }
  }
  int64_t cost(const PictureLine& /*line*/) const override { return 1; }
  void run(std::span<PictureLine* const> lines,
           const std::function<void()>& /*beat*/) const override {
    std::vector<at::Tensor> pixels;
    for (const PictureLine* line : lines) {
      pixels.push_back(at::tensor(line->pixels, at::kByte).view({1, kPictureSide, kPictureSide}));
    }
    const at::Tensor p =
        run_.model->forward(at::stack(pixels).to(run_.model->device())).softmax(1).cpu();
    for (size_t i = 0; i < lines.size(); ++i) {
      const at::Tensor own = p[static_cast<int64_t>(i)];
      lines[i]->label = own.argmax().item<int64_t>();
      lines[i]->probability = own.max().item<double>();
    }
  }
  bool is_finite(const PictureLine& line) const override { return std::isfinite(line.probability); }
  void write(std::span<const PictureLine> lines) override {
    for (const PictureLine& line : lines) {
      const bool is_there = line.input.problem.empty();
      const std::string name = is_there ? run_.classes.at(static_cast<size_t>(line.label)) : "";
      if (!as_json_) {
        std::cout << shown_on_stdout(name) << "\n";
      } else if (is_there) {
        std::cout << json_line({{"label", name}, {"probability", line.probability}});
      } else {
        std::cout << json_line({{"problem", line.input.problem}});
      }
    }
  }

 private:
  const PictureRun& run_;
  const bool as_json_;
};

class PictureFamily : public SmallFamily {
 public:
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override {
    return assets_of(classes_in(pictures_of(experiment.options).data.train));
  }
  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    return std::make_unique<PictureClassTask>(experiment, classes_of(assets), context);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    const PictureRun run = load_picture_run(request.experiment.options, request.run_directory,
                                            request.checkpoint, context.device);
    const PictureSet set = picture_set(request.experiment.options, run.classes);
    nlohmann::ordered_json json;
    for (const auto& score : scores_of(score_pictures(*run.model, set, context))) {
      json[score.name] = score.value;
    }
    if (context.group.is_root()) std::cout << json_line(json);
    flush_stdout();
    return 0;
  }

  int infer(const InferRequest& request, const CommandContext& context) const override {
    const PictureRun run = load_picture_run(request.experiment.options, request.run_directory,
                                            request.checkpoints, context.device);
    PictureAnswers answers(run, request.json);
    LineWork<PictureLine> work(
        answers, {.files = request.files,
                  .files_are_lines = true,
                  .run = request.run_directory,
                  .device = context.device,
                  .max_bytes = 3 * kPixels,
                  .batches = {.max_cost = 2},
                  .words = {.answer = "the class of this picture", .problem = "it has no class"}});
    PicturePaths paths(request.files);
    work.run(paths);
    work.finish();
    return 0;
  }

  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const override {
    return optim::names_of(optim::Arena(*described(experiment), optim::Arena::Gradients::kNone));
  }
  models::ModelCost model_cost(const CostRequest& request) const override {
    const auto model = described(request.experiment);
    return {.parameters = models::num_parameters(*model),
            .training_flops = 3 * model->operations()};
  }
  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                  const Assets& assets,
                                                  bool draws_weights) const override {
    return make_picture_model(experiment, classes_of(assets), draws_weights ? at::kCPU : at::kMeta);
  }

 private:
  static std::shared_ptr<PictureModel> described(const experiment::Experiment& experiment) {
    return make_picture_model(experiment, Classes(2), at::kMeta);
  }
};

}  // namespace

std::function<void(int64_t)>& before_update() {
  static std::function<void(int64_t)> call;
  return call;
}

data::LeftOut& left_out_last() {
  static data::LeftOut left_out;
  return left_out;
}

const Family& picture_family() {
  static const PictureFamily family;
  return family;
}

}  // namespace stretto::tasks
