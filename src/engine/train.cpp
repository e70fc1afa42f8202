#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "data/rank_batches.h"
#include "data/start_memory.h"
#include "distributed/agreement.h"
#include "distributed/launch.h"
#include "distributed/make_group.h"
#include "engine/commands.h"
#include "engine/session.h"
#include "experiment/data_files.h"
#include "experiment/family_spec.h"
#include "experiment/preflight.h"
#include "experiment/same_experiment.h"
#include "experiment/task_rules.h"
#include "models/registry.h"
#include "optim/precision.h"
#include "optim/rate_table.h"
#include "runs/provenance.h"
#include "runs/run_data.h"
#include "runs/run_folder.h"
#include "store/checkpoint.h"
#include "tasks/initial_model.h"
#include "tasks/open_initial_run.h"
#include "tasks/registry.h"
#include "train/frozen_parts.h"
#include "train/trainer.h"

namespace stretto::engine {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

using tasks::Assets;

// Name and bytes of each file, with their lengths before them.
std::string packed(const Assets& assets) {
  std::string bytes;
  const auto add = [&](const std::string& text) {
    const uint64_t size = text.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes += text;
  };
  for (const auto& [name, content] : assets) {
    add(name);
    add(content);
  }
  return bytes;
}

Assets unpacked(const std::string& bytes) {
  Assets assets;
  size_t at = 0;
  const auto take = [&] {
    uint64_t size = 0;
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    std::string text = bytes.substr(at + sizeof(size), size);
    at += sizeof(size) + size;
    return text;
  };
  while (at < bytes.size()) {
    const std::string name = take();
    assets[name] = take();
  }
  return assets;
}

// A run that goes on has its weights already. For a run that begins, the look before its folder was
// made has refused what would be refused here, and left the warnings.
void require_weights_of_such_a_model(const runs::RunFolder& folder,
                                     const experiment::Experiment& experiment) {
  if (experiment.train.init_from.empty()) return;
  if (!store::CheckpointStore(folder.directory()).steps().empty()) return;
  tasks::InitialModel(tasks::open_initial_run(experiment, runs::Reading::kHeads))
      .require_alike(experiment);
}

// What a run that begins writes into its folder, one after the other, on a thread: each of these
// waits for the disk. All of it is there before the first update.
class FirstWrites {
 public:
  void then(std::function<void()> write) {
    last_ = std::async(std::launch::async,
                       [before = std::move(last_), write = std::move(write)]() mutable {
                         if (before.valid()) before.get();
                         write();
                       });
  }
  // Throws what a write threw; those behind it were not made.
  void finish() {
    if (last_.valid()) last_.get();
  }

 private:
  std::future<void> last_;  // waits when it is destroyed
};

// Rank 0 reads, takes over or trains what later commands need; the others get the files from it.
// @param writes  get those that are new
Assets assets_of_run(runs::RunFolder* folder, const experiment::LoadedExperiment& experiment,
                     const distributed::ProcessGroup& group, FirstWrites& writes) {
  Assets assets;
  if (folder != nullptr) {
    require_weights_of_such_a_model(*folder, experiment.options);
    assets = folder->read_assets();
    if (assets.empty()) {
      assets = tasks::family_of(experiment.options).first_assets(experiment);
      if (!assets.empty()) writes.then([folder, assets] { folder->write_assets(assets); });
    }
  }
  if (group.size() > 1) assets = unpacked(group.all_gather_bytes(packed(assets)).front());
  return assets;
}

Facts machine_facts(at::Device device, const optim::Precision& precision,
                    const distributed::ProcessGroup& group, const std::string& strategy) {
  const CpuInfo cpu = cpu_info();
  Facts facts{{"processor", cpu.model},
              {"cores", std::to_string(cpu.cores)},
              {"threads", std::to_string(at::get_num_threads())},
              {"features", join(cpu.features(), ", ")},
              {"memory", human_bytes(total_memory_bytes())},
              {"system", system_name()},
              {"host", host_name()},
              {"device", device.str()},
              {"libtorch", TORCH_VERSION},
              {"precision", precision.name}};
  if (group.size() > 1) {
    facts.emplace_back("processes",
                       std::to_string(group.size()) + ", " + group.name() + ", " + strategy);
  }
  return facts;
}

// Weights, two moments and maybe an average in each checkpoint that is kept; refuses when they
// cannot fit.
void require_space(const std::filesystem::path& directory, const train::TrainOptions& train,
                   const torch::nn::Module& model) {
  // A rollback may need an older one than the last.
  const int64_t good = train.forensics.policy == "rollback" && train.keep_last == 1 ? 1 : 0;
  const int64_t kept = std::max(train.keep_last, train.average_last) + train.keep_best + good;
  const uint64_t numbers = train.averages_weights() ? 4 : 3;  // for each parameter
  store::CheckpointStore(directory).require_space(
      static_cast<uint64_t>(models::num_parameters(model)) * numbers * sizeof(float), kept);
}

// Looks while there is no folder; require_same_experiment() is asked again under the folder's lock.
// When a run goes on, only the patterns are compared.
void look_before_the_folder(const TrainRequest& request) {
  const auto& experiment = request.experiment;
  const auto run_state =
      experiment::require_same_experiment(request.run_directory, experiment, request.extend);
  if (!run_state.begins) return experiment::require_patterns_match(experiment, tensor_names);
  experiment::require_sound_start(experiment, {.tensors = tensor_names, .check = run_check});
}

// With several processes, rank 0 looks once it has joined the others: its refusal then ends them.
distributed::ProcessGroup look_and_join(const TrainRequest& request) {
  const auto& experiment = request.experiment.options;
  const bool alone = distributed::detect_launch().kind == distributed::Launch::Kind::kSingle;
  if (alone && !request.is_looked_at) look_before_the_folder(request);
  auto group = join_processes(experiment);
  require_same_start(experiment, group);
  if (!alone && group.is_root()) look_before_the_folder(request);
  return group;
}

// The run's folder and what it knows of its data, on rank 0 alone, and whether it had this run in
// it before.
struct Place {
  std::optional<runs::RunFolder> folder;
  std::optional<runs::RunData> data;
  bool goes_on = false;
};

runs::RunData::Setup look_at_data(const TrainRequest& request) {
  const auto& experiment = request.experiment.options;
  return {.files = experiment::data_files_of(experiment),
          .setting = experiment::digest_setting_of(experiment),
          .accept = request.accept_data};
}

Place open_place(const TrainRequest& request, const distributed::ProcessGroup& group) {
  if (!group.is_root()) return {};
  auto folder = runs::RunFolder::open_for_training(request.run_directory);
  const auto run_state =
      experiment::require_same_experiment(folder.directory(), request.experiment, request.extend);
  if (run_state.anew) folder.begin_anew(run_state.keeps_tokenizer);
  const bool goes_on = folder.has_run();
  runs::RunData data(folder, look_at_data(request));
  folder.write_config(request.experiment.resolved_toml, request.experiment.config_hash);
  log::open_file(folder.directory() / "log.txt");
  if (run_state.anew) {
    log::info("another configuration that was here made no update: this one takes its place");
  }
  return {std::move(folder), std::move(data), goes_on};
}

void warn_of_an_idle_gpu(const std::string& wanted, at::Device device) {
  if (!device.is_cpu() || wanted != "auto" || !std::filesystem::exists("/dev/nvidia0")) return;
  log::warn(
      "training runs on the CPU, though this machine has an NVIDIA GPU: this build has no CUDA, "
      "or CUDA cannot start; `stretto doctor` says more, run.device=cpu silences this");
}

// Says so where an update has fewer micro-batches than there are processes.
void tell_of_sharing(const experiment::Experiment& experiment, int64_t processes) {
  const int64_t count = experiment.train.update_freq;
  if (count >= processes) return;
  const std::string fact = "train.update_freq = " + std::to_string(count);
  const data::RankBatches first{.update_freq = count,
                                .size = processes,
                                .cut = experiment::may_cut_micro_batches(experiment)};
  if (const auto slice = first.slice(/*turn=*/0, count); !slice.is_whole()) {
    log::info(
        "  each micro-batch is shared by " + std::to_string(slice.parts) + " processes (" + fact +
        ")" +
        (experiment.train.noise_scale && count > 1 ? "; parts do not give the noise scale" : ""));
  } else {
    log::warn(fact + " leaves " + std::to_string(processes - count) + " of " +
              counted(processes, "process") + " without work");
  }
}

std::string processes_text(const distributed::ProcessGroup& group) {
  return group.size() == 1 ? "" : std::to_string(group.size()) + " processes of ";
}

// The facts of the task; where parameters are frozen, the number of those that train follows
// theirs.
Facts facts_of(tasks::FamilyTask& task, const train::FrozenParts& frozen,
               const optim::OptimOptions& optim) {
  Facts facts = task.facts();
  Facts more;
  if (frozen.num_frozen_tensors > 0) {
    more.emplace_back("trained parameters", with_thousands(frozen.num_trained) + " in " +
                                                counted(frozen.num_trained_tensors, "tensor"));
    more.emplace_back("frozen parameters", frozen.text());
  }
  if (!frozen.late.empty()) more.emplace_back("trained later", frozen.late_text());
  if (optim.layer_decay != 1) {
    more.emplace_back("learning rates, as shares of optim.lr",
                      optim::rates_text(optim, train::tensor_names(task)));
  }
  if (!frozen.tied.empty()) {
    more.emplace_back("frozen with what they are tied to", join(frozen.tied, ", "));
  }
  if (frozen.num_batch_norms > 0) {
    more.emplace_back("frozen batch norms", with_thousands(frozen.num_batch_norms));
  }
  const auto place = std::find_if(facts.begin(), facts.end(),
                                  [](const auto& fact) { return fact.first == "parameters"; });
  facts.insert(place == facts.end() ? facts.begin() : place + 1, more.begin(), more.end());
  return facts;
}

void log_facts(const Facts& facts) {
  for (const auto& [label, value] : facts) log::info("  " + label + ": " + value);
}

// What the configuration says; the run itself is the caller's.
train::TrainerSetup trainer_setup(const experiment::Experiment& experiment,
                                  const optim::Precision& precision,
                                  const optim::Precision& validation_precision,
                                  const tasks::FamilyTask& task) {
  return {.run = experiment.run,
          .train = experiment.train,
          .eval = experiment.eval.validation(),
          .optim = experiment.optim,
          .schedule = experiment.schedule,
          .dist = experiment.dist,
          .precision = precision,
          .validation_precision = validation_precision,
          .report = experiment.report,
          .loading = task.loading(),
          .compress = experiment.compress,
          .batch_size = task.update_bound(),
          .model_width = experiment::model_width(experiment).value,
          .run_directory = {},
          .identity = {},
          .description = {}};
}

}  // namespace

int run_train(const TrainRequest& request) {
  const auto& experiment = request.experiment.options;
  const data::StartMemory start_memory;
  const auto group = look_and_join(request);
  Place place = open_place(request, group);
  auto& folder = place.folder;
  auto& data = place.data;
  FirstWrites writes;  // use the folder
  if (folder) writes.then(data->first_writes(*folder));
  const at::Device device = prepare_process(experiment, group);
  const auto precision =
      agreed_precision(experiment.train.precision, "train.precision", device, group);
  log::info((place.goes_on ? "run " : "new run ") + request.run_directory + " on " + device.str() +
            " with " + processes_text(group) + counted(at::get_num_threads(), "thread") + ", " +
            precision.name);
  if (precision.remarkable) log::info("  " + precision.why);
  const auto validation_precision = scoring_precision(experiment, device, group);
  if (group.is_root()) warn_of_an_idle_gpu(experiment.run.device, device);
  tell_of_fallbacks(device, group);

  const auto assets = assets_of_run(folder ? &*folder : nullptr, request.experiment, group, writes);
  writes.finish();  // a full disk is told before text is tokenised
  // Rank 0 first: it makes the token cache that the others on its machine then find.
  if (!group.is_root()) group.barrier();
  const auto task = tasks::family_of(experiment)
                        .make_task(experiment, assets, {.group = group, .device = device});
  if (group.is_root()) group.barrier();
  distributed::require_agreement(group, task->data_facts());
  distributed::watch_stalls(experiment.dist);
  if (group.is_root()) tell_of_sharing(experiment, group.size());
  // The facts are told before there is a trainer, which freezes for whoever calls it.
  const auto frozen =
      train::freeze_parts(*task, experiment.train.freeze, experiment.train.unfreeze);
  const auto facts = facts_of(*task, frozen, experiment.optim);
  if (folder) {
    require_space(folder->directory(), experiment.train, task->model());
    log_facts(facts);
  }
  task->require_known_data(group.is_root());

  const std::filesystem::path directory =
      folder ? folder->directory() : std::filesystem::path(request.run_directory);
  const std::string& name = experiment.run.name;
  auto setup = trainer_setup(experiment, precision, validation_precision, *task);
  setup.run_directory = directory;
  setup.until = request.until;
  setup.identity = {.run_id = group.all_gather_bytes(folder ? folder->run_id() : "").front(),
                    // Paths, which may differ, are part of it.
                    .config_hash = group.all_gather_bytes(request.experiment.config_hash).front(),
                    .world_size = group.size(),
                    .tokenizer = runs::tokenizer_hashes(task->assets())};
  setup.description = {.title = name.empty() ? directory.filename().string() : name,
                       .config_toml = request.experiment.resolved_toml,
                       .machine = machine_facts(device, precision, group, experiment.dist.strategy),
                       .facts = facts,
                       .max_steps = experiment.train.max_steps,
                       .display = experiment::display_of(experiment)};
  setup.open_initial_run = [&] { return tasks::open_and_tell_initial_run(experiment); };
  if (experiment.train.init_vocabulary == "match") {
    setup.match_tables = [&](const runs::InitialRun& run) { return task->matched_tables(run); };
  }
  if (folder) {
    setup.notes_at = [first = task->notes(), &folder = *folder, &data = *data](int64_t step) {
      auto notes = step == 0 ? first : std::vector<std::string>();
      for (auto& note : data.notes_at(folder, step)) notes.push_back(std::move(note));
      return notes;
    };
  }
  const ExitCode code = train::Trainer(*task, std::move(setup), group).run();
  if (folder && experiment.report.html) {
    log::info("report: " + (directory / "report.html").string());
  }
  return static_cast<int>(code);
}

}  // namespace stretto::engine
