#include <charconv>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/program_path.h"
#include "base/signals.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "store/quantised.h"
#include "sweep/load_grid.h"
#include "sweep/sweep_runner.h"

namespace stretto::cli {
namespace {

constexpr const char* kRounding = "least_error";
constexpr const char* kScope = "global";

struct CompressArguments {
  std::vector<std::string> runs;
  int64_t bits = 0;  ///< 0 = not given
  int64_t group = 0;
  bool asymmetric = false, per_tensor = false, json = false;
  std::vector<std::string> kept, others, calibration;
  std::string rounding, scope;  ///< empty = not given
  std::string checkpoint, target, grid, directory;
  double sparsity = 0, layers = 0, units = 0, heads = 0;
  int64_t micro_batches = 0;

  bool takes_parts_out() const { return layers > 0 || units > 0 || heads > 0; }
};

store::QuantFormat asked_format(const CompressArguments& arguments, int64_t bits) {
  store::QuantFormat format;
  format.bits = bits;
  format.symmetric = !arguments.asymmetric;
  format.group_size = arguments.group;
  if (arguments.group > 0) {
    format.scope = store::QuantScope::kGroup;
  } else if (arguments.per_tensor) {
    format.scope = store::QuantScope::kTensor;
  }
  const std::string problem = store::format_problem(format);
  if (problem.empty()) return format;
  throw Error(ExitCode::kUsage, "stretto compress: " + problem,
              "--bits takes 8, 6, 4, 3 or 2; --group a number of weights such as 32 or 64");
}

/// "embed*=8": other bits for some tensors.
std::pair<std::string, store::QuantFormat> other_format(const CompressArguments& arguments,
                                                        const std::string& word) {
  const size_t equals = word.rfind('=');
  int64_t bits = 0;
  if (equals != std::string::npos && equals > 0) {
    const char* end = word.data() + word.size();
    const auto read = std::from_chars(word.data() + equals + 1, end, bits);
    if (read.ec == std::errc() && read.ptr == end) {
      return {word.substr(0, equals), asked_format(arguments, bits)};
    }
  }
  throw Error(ExitCode::kUsage, "stretto compress: --bits-of " + printable(word) + " names no bits",
              "give a pattern of tensors and their bits: --bits-of 'embedding*=8'");
}

void refuse_words(const std::string& what, const std::string& advice) {
  throw Error(ExitCode::kUsage, "stretto compress: " + what, advice);
}

/// What is to be done, and where to.
void require_goal(const CompressArguments& arguments) {
  if (arguments.runs.size() != 1) {
    refuse_words("several runs need --grid",
                 "name a grid file, or compress one after the other, each into its own --run");
  }
  if (!arguments.directory.empty()) refuse_words("--dir goes with --grid", "give --run OUT");
  if (arguments.target.empty()) {
    refuse_words("--run is missing", "name the run folder to write: --run runs/small");
  }
  if (arguments.takes_parts_out() && (arguments.bits > 0 || arguments.sparsity > 0)) {
    refuse_words("parts are taken out of a model that then trains again, before it is rounded",
                 "give --remove-… alone, train with train.init_from, then give --bits or --prune");
  }
  if (arguments.bits == 0 && arguments.sparsity == 0 && !arguments.takes_parts_out()) {
    refuse_words("nothing is asked for",
                 "give --bits 8, --prune 0.5 or both, or --remove-units 0.5");
  }
}

/// An option that would change nothing is a mistake.
void require_options_that_count(const CompressArguments& arguments) {
  if (arguments.micro_batches > 0 && !arguments.takes_parts_out()) {
    refuse_words("--importance-batches goes with --remove-…", "leave it out");
  }
  if (!arguments.kept.empty() && arguments.takes_parts_out()) {
    refuse_words("--keep goes with --bits and --prune", "leave it out: parts have no patterns");
  }
  if (!arguments.scope.empty() && arguments.sparsity == 0) {
    refuse_words("--prune-scope goes with --prune", "add --prune 0.5, or leave it out");
  }
  if (arguments.group > 0 && arguments.per_tensor) {
    refuse_words("--group and --per-tensor exclude each other", "give one of them");
  }
  if (!arguments.calibration.empty() && arguments.rounding != "calibrated") {
    refuse_words("--calibrate goes with --rounding calibrated", "add it, or leave out --calibrate");
  }
  const bool about_bits = arguments.group > 0 || arguments.per_tensor || arguments.asymmetric ||
                          !arguments.others.empty() || !arguments.rounding.empty();
  if (arguments.bits == 0 && about_bits) {
    refuse_words("--group, --asymmetric, --per-tensor, --rounding and --bits-of need --bits",
                 "add --bits 8, or leave them out");
  }
}

int compress_one(const CompressArguments& arguments) {
  require_goal(arguments);
  require_options_that_count(arguments);
  engine::CompressRequest request;
  request.packs = arguments.bits > 0;
  if (request.packs) {
    request.quantised.format = asked_format(arguments, arguments.bits);
    for (const auto& word : arguments.others) {
      request.quantised.others.push_back(other_format(arguments, word));
    }
  }
  request.quantised.kept = arguments.kept;
  request.run_directory = arguments.runs.front();
  request.experiment = load_run_config(request.run_directory, {});
  if (!arguments.calibration.empty()) {
    request.calibration =
        load_run_config(request.run_directory, arguments.calibration, Reads::kOtherData);
    request.calibration_keys = arguments.calibration;
  }
  request.checkpoint = arguments.checkpoint;
  request.target = arguments.target;
  request.rounding = arguments.rounding.empty() ? kRounding : arguments.rounding;
  request.sparsity = arguments.sparsity;
  request.scope = arguments.scope.empty() ? kScope : arguments.scope;
  request.removal = {
      .layers = arguments.layers, .units = arguments.units, .heads = arguments.heads};
  request.micro_batches = arguments.micro_batches;
  request.json = arguments.json;
  tell_notes(request.experiment.origins);
  return engine().compress(request);
}

void check_grid(const CompressArguments& arguments) {
  if (arguments.directory.empty()) {
    refuse_words("--dir is missing", "name the folder of the grid: --dir sweeps/my");
  }
  const bool has_own = arguments.bits > 0 || arguments.sparsity > 0 || arguments.group > 0 ||
                       !arguments.target.empty() || arguments.asymmetric || arguments.per_tensor ||
                       !arguments.kept.empty() || !arguments.others.empty() ||
                       !arguments.calibration.empty() || !arguments.rounding.empty() ||
                       !arguments.scope.empty() || arguments.takes_parts_out() ||
                       arguments.micro_batches > 0;
  if (has_own) {
    refuse_words("what is compressed, and how, stands in the file of --grid",
                 "leave out all options but --checkpoint, --dir and --json");
  }
}

void require_different_runs(const std::vector<std::string>& runs) {
  for (size_t i = 0; i < runs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      std::error_code ignored;
      if (!std::filesystem::equivalent(runs[i], runs[j], ignored)) continue;
      refuse_words("the run " + printable(runs[i]) + " is named twice", "name it once");
    }
  }
}

/// How a score of the runs is read: by the first run's family.
sweep::SweptRun swept_run(const std::string& directory) {
  const auto loaded = load_run_config(directory, {});
  return sweep::swept_run(std::filesystem::absolute(directory).lexically_normal(), loaded.options);
}

int compress_grid(const CompressArguments& arguments) {
  check_grid(arguments);
  require_own_start("a grid is one process", "start it without mpirun, srun or torchrun");
  ignore_broken_pipes();
  require_different_runs(arguments.runs);
  sweep::SweepSetup setup;
  setup.options = sweep::load_grid(arguments.grid);
  for (const auto& run : arguments.runs) setup.runs.push_back(swept_run(run));
  setup.directory = std::filesystem::absolute(arguments.directory).lexically_normal();
  setup.program = program_path().string();
  setup.checkpoint = arguments.checkpoint;
  sweep::SweepRunner runner(std::move(setup));
  return static_cast<int>(runner.run(arguments.json));
}

int run_compress(const CompressArguments& arguments) {
  for (const auto& word : arguments.runs) {
    const bool is_key = is_override(word) ||
                        (word.find('=') != std::string::npos && !std::filesystem::exists(word));
    if (!is_key) continue;
    refuse_words("takes no key=value, but there is `" + printable(word) + "`",
                 "a grid file has `eval` for keys with which points are scored and timed");
  }
  return arguments.grid.empty() ? compress_one(arguments) : compress_grid(arguments);
}

void declare_formats(CLI::App& app, const std::shared_ptr<CompressArguments>& arguments) {
  app.add_option("--bits", arguments->bits, "bits of a weight: 8, 6, 4, 3 or 2")
      ->check(one_of({"8", "6", "4", "3", "2"}))
      ->type_name("N");
  app.add_option("--group", arguments->group,
                 "weights of a row that share a scale; default: a row has one scale")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N");
  app.add_flag("--per-tensor", arguments->per_tensor, "one scale for a whole tensor");
  app.add_flag("--asymmetric", arguments->asymmetric, "a zero beside each scale");
  app.add_option("--rounding", arguments->rounding,
                 "nearest; least_error: scales with the least squared error; calibrated: by what "
                 "the layers see of the validation data (GPTQ)")
      ->check(one_of({"nearest", "least_error", "calibrated"}))
      ->type_name("HOW");
  for (auto* list :
       {app.add_option("--keep", arguments->kept,
                       "pattern of tensors that stay as they are; may stand several times")
            ->type_name("PATTERN"),
        app.add_option("--calibrate", arguments->calibration,
                       "other data for calibrated rounding than the run's own, such as "
                       "data.valid=texts.tsv; may stand several times")
            ->type_name("KEY=VALUE"),
        app.add_option("--bits-of", arguments->others,
                       "other bits for some tensors; may stand several times")
            ->type_name("PATTERN=N")}) {
    list->expected(1)->allow_extra_args(false)->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
  }
}

void declare_removal(CLI::App& app, const std::shared_ptr<CompressArguments>& arguments) {
  const auto add = [&](const char* name, double& share, const char* help) {
    app.add_option(name, share, help)->check(number_between(0, 1))->type_name("SHARE");
  };
  add("--remove-units", arguments->units, "share of the feed-forward units that is taken out");
  add("--remove-heads", arguments->heads, "share of the heads that is taken out");
  add("--remove-layers", arguments->layers, "share of the layers that is taken out");
  app.add_option("--importance-batches", arguments->micro_batches,
                 "micro-batches of training data whose gradients say what stays; default: the "
                 "magnitudes of weights do")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
}

}  // namespace

std::function<int()> declare_compress(CLI::App& app) {
  auto arguments = std::make_shared<CompressArguments>();
  app.add_option("RUN", arguments->runs, "run folder; several with --grid")
      ->required()
      ->type_name("");
  declare_formats(app, arguments);
  app.add_option("--prune", arguments->sparsity, "share of the weights that becomes zero")
      ->check(number_between(0, 1))
      ->type_name("SHARE");
  app.add_option("--prune-scope", arguments->scope,
                 "global: the smallest weights of all matrices; layer: the same share of each; "
                 "block: that in whole blocks of 32 x 32; default global")
      ->check(one_of({"global", "layer", "block"}))
      ->type_name("SCOPE");
  declare_removal(app, arguments);
  app.add_option("--checkpoint", arguments->checkpoint,
                 "best, last, a step or a name; default best")
      ->type_name("NAME");
  app.add_option("--run", arguments->target, "run folder to write; new or empty")->type_name("DIR");
  app.add_option("--grid", arguments->grid,
                 "TOML file of bits and sparsities: compresses, scores and times each of them")
      ->type_name("FILE");
  app.add_option("--dir", arguments->directory,
                 "folder of the grid; one that is there goes on where it stopped")
      ->type_name("DIR");
  app.add_flag("--json", arguments->json, "one JSON object on stdout");
  return [arguments] { return run_compress(*arguments); };
}

}  // namespace stretto::cli
