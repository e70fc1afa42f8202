// Tacotron 2 with random weights on random frames, training and free running:
// benchmarks/tacotron_beside_torch.py compares.
//
//     tacotron_bench --lengths=FRAMES:SYMBOLS,… [--work=train|speak] [--reduction=R] [--limit=N]
//     [--repeats=N] [--threads=N] [--device=cuda]
//
// train: forward, losses and backward of one batch, no optimizer; speak: each sentence writes
// `limit` frames. Prints the seconds of each repeat, the first one too.
#include <ATen/Parallel.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/bench.h"
#include "models/packed.h"
#include "models/synthesis/synthesis_losses.h"
#include "models/synthesis/synthesis_model.h"

namespace stretto::models {
namespace {

constexpr int64_t kSymbols = 148, kMels = 80;  // torchaudio's

struct Settings : benchmarks::CommonSettings {
  std::vector<std::pair<int64_t, int64_t>> lengths;  ///< frames and symbols of each sentence
  std::string work = "train";
  int64_t reduction = 1, limit = 200, repeats = 5, threads = 2;

  bool take(std::string_view argument) {
    if (const auto value = benchmarks::value_of(argument, "--work")) {
      work = *value;
      return work == "train" || work == "speak";
    }
    if (const auto value = benchmarks::value_of(argument, "--lengths")) return take_lengths(*value);
    return CommonSettings::take(argument) ||
           benchmarks::take_number(argument, "--reduction", reduction) ||
           benchmarks::take_number(argument, "--limit", limit) ||
           benchmarks::take_number(argument, "--repeats", repeats) ||
           benchmarks::take_number(argument, "--threads", threads);
  }

 private:
  bool take_lengths(std::string_view text) {
    const char *at = text.data(), *end = text.data() + text.size();
    while (at < end) {
      std::pair<int64_t, int64_t> one;
      const auto frames = std::from_chars(at, end, one.first);
      if (frames.ec != std::errc() || frames.ptr == end || *frames.ptr != ':') return false;
      const auto symbols = std::from_chars(frames.ptr + 1, end, one.second);
      if (symbols.ec != std::errc() || one.first < 1 || one.second < 1) return false;
      lengths.push_back(one);
      at = symbols.ptr == end ? end : symbols.ptr + 1;
    }
    return !lengths.empty();
  }
};

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings) {
    Tacotron2Options options;
    options.reduction = settings.reduction;
    model_ = make_synthesis_model({.model = options,
                                   .num_symbols = kSymbols,
                                   .parts = {.num_mels = kMels},
                                   .device = settings.device()});
    data::PackedTokens text;
    data::Ragged<float> frames;
    frames.width = kMels;
    std::vector<int64_t> ids;
    for (const auto& [length, symbols] : settings.lengths) {
      std::vector<int64_t> sentence;
      for (int64_t i = 0; i < symbols; ++i) sentence.push_back(1 + (i * 37 + length) % 147);
      text.append(sentence);
      const at::Tensor values = at::randn({length * kMels});
      const float* from = values.const_data_ptr<float>();
      frames.append(std::vector<float>(from, from + values.numel()));
      ids.push_back(static_cast<int64_t>(ids.size()));
    }
    input_.text = pack(text, &ids, settings.device());
    input_.sentence_keys = sentence_keys(text, settings.device());
    frames_ = pack(frames, &ids, settings.device());
  }

  void train() {
    model_->train();
    model_->zero_grad();
    const SynthesisOutput output =
        model_->forward(input_, frames_, {.training = true, .dropout_key = 7});
    const SynthesisLosses losses = synthesis_losses(output, frames_, input_.text.offsets,
                                                    model_->parts(), SynthesisLossOptions{});
    (losses.total / frames_.num_rows()).backward();
  }

  void speak() {
    synthesise(*model_, input_, {.stop_threshold = 2, .max_frames = settings_.limit});
  }

 private:
  const Settings& settings_;
  std::shared_ptr<SynthesisModel> model_;
  SynthesisInput input_;
  nn::PackedRows frames_;
};

}  // namespace
}  // namespace stretto::models

int main(int argc, char** argv) {
  using namespace stretto;
  const auto settings = benchmarks::read_settings<models::Settings>(
      argc, argv,
      "tacotron_bench --lengths=FRAMES:SYMBOLS,… [--work=train|speak] [--reduction=R] [--limit=N] "
      "[--repeats=N] [--threads=N]");
  if (settings.lengths.empty()) {
    std::fputs("error: there are no sentences\n  give some: --lengths=250:40,310:55\n", stderr);
    return 2;
  }
  at::set_num_threads(static_cast<int>(settings.threads));
  models::Bench bench(settings);
  for (int64_t i = 0; i < settings.repeats; ++i) {
    const double seconds = benchmarks::seconds_of(
        settings.device(), [&] { settings.work == "train" ? bench.train() : bench.speak(); });
    std::printf("%.6f\n", seconds);
    std::fflush(stdout);
  }
  return 0;
}
