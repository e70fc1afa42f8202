#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"

namespace stretto::cli {
namespace {

struct BenchArguments {
  std::string place, checkpoint, precisions;
  std::vector<std::string> overrides;
  double seconds = 5;
  bool json = false;
};

std::vector<std::string> asked_precisions(const std::string& list) {
  static const std::vector<std::string> kKnown{"fp32", "bf16", "int8", "int4", "stored"};
  std::vector<std::string> asked;
  if (list.empty()) return asked;
  for (const auto& part : split(list, ',')) {
    const std::string name = trim(part);
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) {
      throw Error(ExitCode::kUsage,
                  "stretto bench: there is no precision `" + printable(name) + "`",
                  "precisions are " + join(kKnown, ", "));
    }
    asked.push_back(name);
  }
  return asked;
}

int run_bench(const BenchArguments& arguments) {
  require_own_start("stretto bench is one process", "start it without mpirun, srun or torchrun");
  engine::BenchRequest request;
  request.precisions = asked_precisions(arguments.precisions);
  const std::filesystem::path place(arguments.place);
  const bool is_config = std::filesystem::is_regular_file(place) ||
                         (place.extension() == ".toml" && !std::filesystem::exists(place));
  if (is_config) {
    if (!arguments.checkpoint.empty()) {
      throw Error(ExitCode::kUsage, "stretto bench: a configuration has no checkpoints",
                  "name a run, or leave out --checkpoint");
    }
    request.experiment = experiment::load_experiment(arguments.place, arguments.overrides);
  } else {
    request.experiment = load_run_config(arguments.place, arguments.overrides, Reads::kOtherData);
    request.run_directory = arguments.place;
  }
  request.checkpoint = arguments.checkpoint;
  request.seconds = arguments.seconds;
  request.json = arguments.json;
  tell_notes(request.experiment.origins);
  return engine().bench(request);
}

}  // namespace

std::function<int()> declare_bench(CLI::App& app) {
  auto arguments = std::make_shared<BenchArguments>();
  app.add_option("RUN", arguments->place, "run folder, or a configuration file")
      ->required()
      ->type_name("");
  app.add_option("key=value", arguments->overrides,
                 "for instance run.threads=1, or data.valid=texts.tsv")
      ->type_name("");
  app.add_option("--checkpoint", arguments->checkpoint, "best, last, a step, a name or a path")
      ->type_name("NAME");
  app.add_option("--precision", arguments->precisions,
                 "of fp32, bf16, int8, int4, stored, with commas; default: all that there are")
      ->type_name("LIST");
  app.add_option("--seconds", arguments->seconds, "of measuring, for each precision; default 5")
      ->check(number_between(0.1, 3600))
      ->type_name("S");
  app.add_flag("--json", arguments->json, "one JSON object on stdout");
  return [arguments] { return run_bench(*arguments); };
}

}  // namespace stretto::cli
