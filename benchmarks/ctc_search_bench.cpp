// CTC's beam search on one core, over frames from a file: benchmarks/ctc_search_beside.py compares.
//
//     ctc_search_bench --input=FOLDER [--passes=N] [--beam=N] [--beam_token=N] [--threshold=X]
//     [--alpha=X] [--beta=X] [--lm=FILE] [--no-lexicon]
//
// FOLDER has tokens.txt (a label a line, without the blank), lexicon.txt, frames.f32 (log
// probabilities, the blank last) and lengths.txt (frames of each utterance). Prints `OPEN seconds`,
// `UPD seconds frames` after each pass, and `TEXT score text` of each utterance.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "ctc/ctc_search.h"

namespace stretto::ctc {
namespace {

struct Settings {
  std::string input, lm;
  int64_t passes = 5;
  bool has_lexicon = true;
  CtcOptions options;
};

double as_number(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    throw Error(ExitCode::kUsage, "no number: " + std::string(text), "see the head of the source");
  return value;
}

Settings settings_of(std::span<char*> arguments) {
  Settings settings;
  settings.options.method = "beam";
  for (const std::string_view argument : arguments) {
    const size_t equals = std::min(argument.find('='), argument.size());
    const std::string_view name = argument.substr(0, equals);
    const std::string_view value = argument.substr(std::min(equals + 1, argument.size()));
    const auto whole = [&] { return static_cast<int64_t>(as_number(value)); };
    if (name == "--input")
      settings.input = value;
    else if (name == "--lm")
      settings.lm = value;
    else if (name == "--passes")
      settings.passes = whole();
    else if (name == "--beam")
      settings.options.beam_size = whole();
    else if (name == "--beam_token")
      settings.options.beam_token = whole();
    else if (name == "--threshold")
      settings.options.beam_threshold = as_number(value);
    else if (name == "--alpha")
      settings.options.alpha = as_number(value);
    else if (name == "--beta")
      settings.options.beta = as_number(value);
    else if (name == "--no-lexicon")
      settings.has_lexicon = false;
    else
      throw Error(ExitCode::kUsage, "cannot use " + std::string(argument),
                  "see the head of the source");
  }
  settings.options.lm = settings.lm;
  if (settings.has_lexicon) settings.options.lexicon = settings.input + "/lexicon.txt";
  return settings;
}

std::vector<std::string> lines_of(const std::string& file) {
  return split(trim(read_file(file)), '\n');
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void measure(const Settings& settings) {
  const std::vector<std::string> names = lines_of(settings.input + "/tokens.txt");
  const std::string bytes = read_file(settings.input + "/frames.f32");
  std::vector<float> frames(bytes.size() / sizeof(float));
  std::memcpy(frames.data(), bytes.data(), frames.size() * sizeof(float));
  const auto begin = std::chrono::steady_clock::now();
  const CtcDecoder decoder(labels_by_name(names), settings.options,
                           [](std::string_view) { return std::vector<int32_t>(); });
  std::printf("OPEN %.4f\n", seconds_since(begin));
  const size_t width = names.size() + 1;
  std::vector<CtcHypothesis> best;
  for (int64_t pass = 0; pass < settings.passes; ++pass) {
    best.clear();
    size_t at = 0;
    const auto start = std::chrono::steady_clock::now();
    for (const std::string& length : lines_of(settings.input + "/lengths.txt")) {
      const size_t size = static_cast<size_t>(as_number(length)) * width;
      best.push_back(decoder.decode(std::span<const float>(frames).subspan(at, size)).front());
      at += size;
    }
    std::printf("UPD %.6f %zu\n", seconds_since(start), at / width);
    std::fflush(stdout);
  }
  for (const CtcHypothesis& hypothesis : best)
    std::printf("TEXT %.6f %s\n", hypothesis.score, hypothesis.text.c_str());
}

}  // namespace
}  // namespace stretto::ctc

int main(int argc, char** argv) {
  try {
    const std::span<char*> arguments(argv, static_cast<size_t>(argc));
    stretto::ctc::measure(stretto::ctc::settings_of(arguments.subspan(1)));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
