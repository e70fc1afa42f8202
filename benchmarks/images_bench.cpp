// Pictures of a folder, decoded and augmented as training has them, on one core:
// benchmarks/images_beside_torch.py compares.
//
//     images_bench --folder=FOLDER [--work=augment|decode] [--decoding=rows|full|scaled]
//     [--passes=N] [--side=N]
//
// augment: a random part resized to side x side, mirrored by chance, normalised to fp32; decode:
// the whole picture to RGB. Files are read before the first pass. Prints `UPD pass pictures 0`
// after each pass.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "benchmarks/bench.h"
#include "image/image_file.h"
#include "image/views.h"

namespace stretto::image {
namespace {

struct Settings : benchmarks::CommonSettings {
  std::string folder, work = "augment", decoding = "rows";
  int64_t passes = 5, side = 224;

  bool take(std::string_view argument) {
    for (const auto& [name, text] : {std::pair{"--folder", &folder}, std::pair{"--work", &work},
                                     std::pair{"--decoding", &decoding}}) {
      if (const auto value = benchmarks::value_of(argument, name)) {
        *text = *value;
        return name != std::string_view("--work") || work == "augment" || work == "decode";
      }
    }
    return benchmarks::take_number(argument, "--passes", passes) ||
           benchmarks::take_number(argument, "--side", side);
  }
};

std::vector<std::string> contents_of(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const auto& path : paths) contents.push_back(read_file(path, kMaxImageBytes));
  return contents;
}

// A sum of what came out, so that nothing is left out.
double pass(const Settings& settings, const AugmentOptions& options,
            const std::vector<std::string>& contents, int64_t epoch, std::vector<float>& pixels) {
  double sum = 0;
  for (size_t i = 0; i < contents.size(); ++i) {
    const std::string name = "picture " + std::to_string(i);
    if (settings.work == "decode") {
      sum += decode_image(contents[i], name).pixels.front();
      continue;
    }
    TrainingView view(options, {.seed = 1, .epoch = epoch, .sample = static_cast<int64_t>(i)},
                      settings.side);
    const Image decoded = decode_image(contents[i], name, view.decode_options());
    view.write(view.shown(decoded), PixelLayout::kChannelsLast, pixels);
    sum += pixels.front();
  }
  return sum;
}

}  // namespace
}  // namespace stretto::image

int main(int argc, char** argv) {
  using namespace stretto;
  const auto settings = benchmarks::read_settings<image::Settings>(
      argc, argv,
      "images_bench --folder=FOLDER [--work=augment|decode] [--decoding=rows|full|scaled] "
      "[--passes=N] [--side=N]");
  if (!std::filesystem::is_directory(settings.folder)) {
    std::fprintf(stderr, "error: there is no folder %s\n  name one: --folder=FOLDER\n",
                 settings.folder.c_str());
    return 2;
  }
  const auto contents = image::contents_of(settings.folder);
  image::AugmentOptions options;
  options.decoding = settings.decoding;
  std::vector<float> pixels(static_cast<size_t>(image::kChannels * settings.side * settings.side));
  double sum = 0;
  for (int64_t number = 1; number <= settings.passes; ++number) {
    sum += image::pass(settings, options, contents, number, pixels);
    std::printf("UPD %ld %zu 0\n", static_cast<long>(number), contents.size());
    std::fflush(stdout);
  }
  std::printf("END {\"sum\": %.6g}\n", sum);
  return 0;
}
