#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/text_input.h"
#include "families/image_classification/engine/commands.h"
#include "families/image_classification/engine/image_pixels.h"
#include "families/image_classification/engine/image_run.h"
#include "families/image_classification/engine/image_scores.h"
#include "families/image_classification/image_sizes.h"
#include "families/image_classification/requests.h"
#include "image/image_file.h"
#include "image/views.h"
#include "tasks/line_work.h"

namespace stretto::tasks {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUsualNumber = 5;  // of classes in JSON

/// A picture on its way through the models.
struct PictureLine : WorkLine {
  at::Tensor pixels = {};  ///< [V, 3, S, S]
  struct Guess {
    int64_t label = 0;
    double probability = 0;
  };
  std::vector<Guess> guesses = {};  ///< most probable ones first
  bool is_finite = true;
};

/// The files of the command line, a picture each.
class PictureFiles final : public LineSource<PictureLine> {
 public:
  explicit PictureFiles(const std::vector<std::string>& files) : files_(files) {}
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

/// Names what is on pictures.
class PictureNamer final : public LineFamily<PictureLine> {
 public:
  PictureNamer(const InferRequest& request, const ImageRun& run, at::Device device)
      : as_json_(request.json),
        own_(request.own.as<ImageInferArguments>()),
        options_(experiment::images_of(request.experiment.options)),
        run_(run),
        device_(device),
        num_views_(image::num_test_views(options_.augment)),
        size_(experiment::test_size_of(options_)),
        weights_(image::test_weights(options_.augment)) {}

  /// Bytes of a line's pixels.
  size_t line_bytes() const {
    return static_cast<size_t>(num_views_ * image::kChannels * size_ * size_) * sizeof(float);
  }

  size_t bytes(const PictureLine& line) const override {
    return line_bytes() + line.input.text.size();
  }

  void prepare(PictureLine& line) const override {
    try {
      const auto decoded = image::decode_image(file_of(line.input.text), line.input.text,
                                               image::test_decode_options(options_.augment));
      line.pixels = empty_pixels(num_views_, size_);
      write_test_views(decoded, options_, 0, line.pixels);
    } catch (const Error& error) {
      if (error.code() == ExitCode::kInternal) throw;
      line.input.problem = error.what();
    }
  }

  int64_t cost(const PictureLine& /*line*/) const override { return 1; }

  void run(std::span<PictureLine* const> lines,
           const std::function<void()>& /*beat*/) const override {
    std::vector<at::Tensor> pixels;
    for (const PictureLine* line : lines) pixels.push_back(line->pixels);
    const auto outputs = image_outputs(run_.models, at::cat(pixels).to(device_), weights_);
    const int64_t number = std::min(num_told(), run_.classes.size());
    const auto [highest, labels] =
        outputs.logits.softmax(1).to(at::kCPU, at::kDouble).topk(number, 1);
    const at::Tensor overflowed = outputs.overflowed.to(at::kCPU);
    for (int64_t i = 0; i < std::ssize(lines); ++i) {
      PictureLine& line = *lines[static_cast<size_t>(i)];
      for (int64_t k = 0; k < number; ++k) {
        line.guesses.push_back(
            {.label = labels[i][k].item<int64_t>(), .probability = highest[i][k].item<double>()});
      }
      line.is_finite = overflowed[i].item<double>() == 0;
      line.pixels = at::Tensor();
    }
  }

  bool is_finite(const PictureLine& line) const override { return line.is_finite; }

  void write(std::span<const PictureLine> lines) override {
    for (const PictureLine& line : lines) {
      std::cout << (as_json_ ? json_of(line) : text_of(line) + "\n");
    }
  }

 private:
  /// The bytes of a file. Throws Error(kBadData) for what is no file that can be read.
  static std::string file_of(const std::string& path) {
    std::error_code failed;
    if (path.empty()) throw Error(ExitCode::kBadData, "an empty path", "name a picture");
    if (fs::is_directory(path, failed)) {
      throw Error(ExitCode::kBadData, path + ": is a folder", "name the pictures in it");
    }
    if (!fs::is_regular_file(path, failed)) {
      throw Error(ExitCode::kBadData, path + ": is no file", "name a picture");
    }
    return read_file(path, image::kMaxImageBytes);
  }

  int64_t num_told() const {
    if (own_.nbest > 0) return own_.nbest;
    return as_json_ ? kUsualNumber : 1;
  }

  const std::string& name_of(const PictureLine::Guess& guess) const {
    return run_.classes.name(guess.label);
  }

  std::string text_of(const PictureLine& line) const {
    std::vector<std::string> parts;
    for (const auto& guess : line.guesses) {
      parts.push_back(shown_on_stdout(name_of(guess)) +
                      (own_.scores ? "=" + fixed(guess.probability, 6) : ""));
    }
    return join(parts, "\t");
  }

  std::string json_of(const PictureLine& line) const {
    nlohmann::ordered_json json{{"file", line.input.text}};
    if (!line.input.problem.empty()) {
      json["problem"] = line.input.problem;
      return json_line(json);
    }
    json["label"] = name_of(line.guesses.front());
    json["probability"] = line.guesses.front().probability;
    auto top = nlohmann::ordered_json::array();
    for (const auto& guess : line.guesses) {
      top.push_back({{"label", name_of(guess)}, {"probability", guess.probability}});
    }
    json["top"] = std::move(top);
    return json_line(json);
  }

  const bool as_json_;
  const ImageInferArguments own_;
  const experiment::ImageClassificationOptions& options_;
  const ImageRun& run_;
  const at::Device device_;
  const int64_t num_views_, size_;
  const std::vector<double> weights_;
};

bool reads_paths(const std::vector<std::string>& files) {
  return files.empty() || std::ranges::find(files, "-") != files.end();
}

}  // namespace

int infer_images(const InferRequest& request, const CommandContext& context) {
  const bool lines = reads_paths(request.files);
  if (lines && request.files.size() > 1) {
    throw Error(ExitCode::kUsage, "-: stdin has the paths of pictures, one a line",
                "name pictures, or give - alone");
  }
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto run =
      load_image_run(request.experiment.options, folder, request.checkpoints, context.device);
  const auto& options = experiment::images_of(request.experiment.options);
  PictureNamer namer(request, run, context.device);
  const int64_t most =
      options.eval.max_samples > 0 ? options.eval.max_samples : options.data.max_samples;
  LineWork<PictureLine> work(
      namer, {.files = request.files,
              .files_are_lines = !lines,
              .run = request.run_directory,
              .device = context.device,
              .max_lines = 1024,
              .max_bytes = size_t{256} << 20,
              .batches = {.max_cost = most, .for_all_threads = true},
              .words = {.answer = "the class of this picture", .problem = "it gets no class"},
              .stats = request.stats});
  if (lines) {
    data::TextInput input(request.files);
    TextSource<PictureLine> source(input);
    work.run(source);
  } else {
    PictureFiles source(request.files);
    work.run(source);
  }
  work.finish();
  return 0;
}

}  // namespace stretto::tasks
