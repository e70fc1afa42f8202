#include <filesystem>

#include "base/error.h"
#include "base/named_output.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine.h"
#include "cli/launch.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "data/byte_stream.h"
#include "families/text/text_sections.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

struct EmbedArguments {
  std::string run, checkpoint, output;
  std::string pooling = "mean";
  std::vector<std::string> words;
  bool normalize = false, stats = false;
  int64_t batch_tokens = 0, max_tokens = 0;
};

// The families whose models encode texts.
std::string encoding_families() {
  std::vector<std::string> names;
  for (const auto& name : experiment::TaskChoice::names()) {
    experiment::Experiment one;
    one.task.select(name);
    if (experiment::find_text_sections(one)) names.push_back(name);
  }
  return join(names, ", ");
}

void require_encoder(const experiment::LoadedExperiment& experiment, const std::string& run) {
  if (experiment::find_text_sections(experiment.options)) return;
  throw Error(
      ExitCode::kUsage,
      run + " is a run of " + experiment.options.task.name() +
          ", whose model gives no vectors of whole lines",
      "name a run of one of " + encoding_families() + ", or a model that `stretto import` read");
}

// A pipe or a device, which have names of their own.
bool is_stream(const std::string& output) {
  std::error_code ignored;
  const auto status = fs::status(output, ignored);
  return output.starts_with("/dev/") || output.starts_with("/proc/") ||
         (fs::exists(status) && !fs::is_regular_file(status));
}

// Checked first: otherwise hours of work could fail at the last step.
void require_npy(const std::string& output) {
  if (output.empty()) return;
  if (!output.ends_with(".npy") && !is_stream(output)) {
    throw Error(ExitCode::kUsage, "--output " + output + ": not a .npy file",
                "name a file that ends in .npy; JSON goes to stdout");
  }
  require_output_place(output, "--output");
}

int run_embed(const EmbedArguments& options) {
  require_one_process("stretto embed");
  std::vector<std::string> overrides, files;
  for (const auto& word : options.words) (is_override(word) ? overrides : files).push_back(word);
  for (const auto& file : files) {
    if (file != "-" && !fs::exists(data::parse_input_path(file).file)) {
      throw Error(ExitCode::kUsage, "no file " + file, "without files, stdin is read");
    }
  }
  require_npy(options.output);
  const engine::EmbedRequest request{.experiment = load_run_config(options.run, overrides),
                                     .run_directory = options.run,
                                     .checkpoint = options.checkpoint,
                                     .files = files,
                                     .output = options.output,
                                     .pooling = options.pooling,
                                     .normalize = options.normalize,
                                     .batch_tokens = options.batch_tokens,
                                     .max_tokens = options.max_tokens,
                                     .stats = options.stats};
  require_encoder(request.experiment, options.run);
  tell_notes(request.experiment.origins);
  return engine().embed(request);
}

}  // namespace

std::function<int()> declare_embed(CLI::App& app) {
  auto options = std::make_shared<EmbedArguments>();
  app.add_option("RUN", options->run, "run folder")->required()->type_name("");
  app.add_option("FILE-or-key=value", options->words,
                 "lines, plain, .gz, .zst or FILE.zip:MEMBER; default stdin, which is - too; and "
                 "key=value, run.threads=4 for instance")
      ->type_name("");
  app.add_option("--checkpoint", options->checkpoint, "best, last, a step, a name or a path")
      ->type_name("NAME");
  app.add_option("--pooling", options->pooling,
                 "mean of all tokens, special ones included, or cls: the first token; default mean")
      ->check(one_of({"mean", "cls"}))
      ->type_name("mean|cls");
  app.add_flag("--normalize", options->normalize, "scale each vector to length 1");
  app.add_option("--output", options->output,
                 "write an array fp32 [lines, width] for numpy.load; default JSON on stdout")
      ->type_name("FILE.npy");
  app.add_option("--max-tokens", options->max_tokens,
                 "longer lines are cut to so many, special ones included; default "
                 "data.max_text_tokens of the run")
      ->check(whole_number(3, 1'000'000))
      ->type_name("N");
  app.add_option("--batch-tokens", options->batch_tokens,
                 "tokens that are encoded together; default 512 on a CPU, 32,768 on a GPU")
      ->check(whole_number(1, 100'000'000))
      ->type_name("N");
  app.add_flag("--stats", options->stats,
               "say at the end how many lines, batches and tokens there were");
  return [options] { return run_embed(*options); };
}

}  // namespace stretto::cli
