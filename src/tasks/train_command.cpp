#include <torch/torch.h>

#include "base/error.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "experiment/same_experiment.h"
#include "tasks/commands.h"
#include "tasks/session.h"
#include "train/trainer.h"

namespace stretto::tasks {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

text::TokenizerPair tokenizers_of_run(train::RunFolder& folder,
                                      const experiment::Experiment& experiment) {
  if (const auto assets = folder.read_assets(); !assets.empty()) {
    return text::load_tokenizers(experiment.tokenizer, assets);
  }
  auto tokenizers = make_experiment_tokenizers(experiment);
  folder.write_assets(tokenizers.assets);
  return tokenizers;
}

Facts machine_facts(at::Device device) {
  const CpuInfo cpu = cpu_info();
  return {{"processor", cpu.model},
          {"cores", std::to_string(cpu.cores)},
          {"threads", std::to_string(at::get_num_threads())},
          {"features", join(cpu.features(), ", ")},
          {"memory", human_bytes(total_memory_bytes())},
          {"system", system_name()},
          {"host", host_name()},
          {"device", device.str()},
          {"libtorch", TORCH_VERSION}};
}

// Weights and two moments in each checkpoint that is kept, one more while it is written.
uint64_t space_needed(const experiment::Experiment& experiment, int64_t parameters) {
  const auto& train = experiment.train;
  const int64_t kept = std::max(train.keep_last, train.average_last) + train.keep_best + 1;
  return static_cast<uint64_t>(kept * parameters) * 3 * sizeof(float);
}

void log_facts(const Facts& facts) {
  for (const auto& [label, value] : facts) log::info("  " + label + ": " + value);
}

}  // namespace

int run_train(const experiment::TrainRequest& request) {
  const auto& experiment = request.experiment.options;
  auto folder = train::RunFolder::open_for_training(request.run_directory);
  experiment::require_same_experiment(folder.directory(), request.experiment, request.extend);
  const bool goes_on = folder.has_run();
  folder.write_config(request.experiment.resolved_toml, request.experiment.config_hash);
  log::open_file(folder.directory() / "log.txt");
  const at::Device device = prepare_process(experiment);
  log::info((goes_on ? "run " : "new run ") + request.run_directory + " on " + device.str() +
            " with " + std::to_string(at::get_num_threads()) + " threads");

  TranslationTask task(experiment, make_translation_model(
                                       experiment, tokenizers_of_run(folder, experiment), device));
  int64_t parameters = 0;
  for (const auto& parameter : task.model().parameters()) parameters += parameter.numel();
  folder.require_space(space_needed(experiment, parameters));
  const auto facts = task.facts();
  log_facts(facts);

  const std::string title =
      experiment.run.name.empty() ? folder.directory().filename().string() : experiment.run.name;
  train::Trainer trainer(task, {.run = experiment.run,
                                .train = experiment.train,
                                .eval = experiment.eval,
                                .optim = experiment.optim,
                                .schedule = experiment.schedule,
                                .report = experiment.report,
                                .prefetch = experiment.data.prefetch,
                                .run_directory = folder.directory(),
                                .identity = {folder.run_id(), request.experiment.config_hash},
                                .description = {.title = title,
                                                .config_toml = request.experiment.resolved_toml,
                                                .machine = machine_facts(device),
                                                .facts = facts,
                                                .max_steps = experiment.train.max_steps}});
  const ExitCode code = trainer.run();
  if (experiment.report.html) {
    log::info("report: " + (folder.directory() / "report.html").string());
  }
  return static_cast<int>(code);
}

}  // namespace stretto::tasks
