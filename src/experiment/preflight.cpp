#include "experiment/preflight.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/log_silence.h"
#include "base/text.h"
#include "experiment/rules.h"
#include "experiment/run_config.h"
#include "experiment/task_rules.h"
#include "experiment/tensor_keys.h"
#include "text/tokenizer.h"
#include "train/schedule_end.h"

namespace stretto::experiment {
namespace {

// "tokenizer.vocab_size: too small", reported at its key, would name the key twice.
std::string without_key(const std::string& what, const std::string& key) {
  const std::string head = key + ": ";
  return what.starts_with(head) ? what.substr(head.size()) : what;
}

/// What only the machine that trains can judge.
std::vector<UnreadData> questions_for_the_machine(const Experiment& e,
                                                  const std::vector<config::Problem>& known) {
  std::vector<UnreadData> questions;
  for (const char* key : {"run.device", "dist.backend"}) {
    if (config::is_unreliable(known, key)) return {};
  }
  if (e.run.device == "cuda") {
    questions.push_back({"run.device", "whether the other machine has a GPU"});
  }
  if (e.dist.backend == "nccl") {
    questions.push_back({"dist.backend", "whether the other machine has GPUs for \"nccl\""});
  }
  return questions;
}

// Whether epochs of so few samples leave room for the schedule, by the rule of training.
void look_at_schedule(const Experiment& e, const std::vector<config::Problem>& known,
                      Preflight& found) {
  const bool in_doubt = std::any_of(known.begin(), known.end(), [](const auto& problem) {
    return problem.key.starts_with("schedule") || problem.key.starts_with("train") ||
           problem.key.starts_with("data");
  });
  if (found.most_batches == 0 || in_doubt) return;
  note_stop(found, Stage::kSchedule, "schedule.name", [&] {
    train::ScheduleEnd(e.schedule, e.train, found.most_batches)
        .require_room(train::NumBatches::kAtMost);
  });
}

// Whether there is the run whose predictions training learns, and whether it does the same.
void look_at_teacher(const Experiment& e, const std::vector<config::Problem>& known,
                     Preflight& found) {
  const TaskRules* task = find_task_rules(e);
  const std::string directory = task == nullptr ? "" : task->teacher_run(e);
  if (directory.empty() || config::is_unreliable(known, "loss.teacher")) return;
  note_stop(found, Stage::kWeights, "loss.teacher", [&] {
    const std::string where = (std::filesystem::path(directory) / "config.toml").string();
    const auto teacher = load_stored_experiment(read_run_config(directory), where, {});
    const std::string theirs = teacher.options.task.name(), own = e.task.name();
    if (theirs == own) return;
    throw Error(ExitCode::kUsage, directory + " is a model of " + theirs,
                "name the run folder of a model of " + own);
  });
}

// All of it. @param problems  gets those of patterns, which are no stops
Preflight look_at_start(const LoadedExperiment& experiment, const EngineChecks& engine,
                        const PreflightOptions& how, std::vector<config::Problem>& problems) {
  const log::Silence silence;
  Preflight found;
  note_stop(found, Stage::kMachine, "",
            [&] { problems = pattern_problems(experiment, engine.tensors); });
  if (const TaskRules* task = find_task_rules(experiment.options)) {
    found = joined(std::move(found), task->look_at_files(experiment.options, problems, how));
  }
  look_at_teacher(experiment.options, problems, found);
  auto request = engine_request(experiment, problems, found, how);
  request.text = false;  // training will read it
  if (!request.any()) return found;
  Preflight seen;
  note_stop(seen, Stage::kMachine, "", [&] { seen = engine.check(request); });
  return joined(std::move(found), seen);
}

// An unread part is reported once: both looks at a text may have come to the same place.
void keep_first_of_each_key(std::vector<UnreadData>& unread) {
  std::set<std::string> seen;
  std::erase_if(unread, [&](const UnreadData& one) { return !seen.insert(one.key).second; });
}

}  // namespace

Preflight preflight(const Experiment& options, const std::vector<config::Problem>& known,
                    const PreflightOptions& how) {
  const TaskRules* task = find_task_rules(options);
  Preflight found = task != nullptr ? task->look_at_data(options, known, how) : Preflight{};
  look_at_schedule(options, known, found);
  if (!how.elsewhere) look_at_teacher(options, known, found);
  if (how.elsewhere) {
    for (auto& question : questions_for_the_machine(options, known)) {
      found.unread.push_back(std::move(question));
    }
  }
  keep_first_of_each_key(found.unread);
  return found;
}

void require_sound_start(const LoadedExperiment& experiment, const EngineChecks& engine,
                         const PreflightOptions& how) {
  std::vector<config::Problem> problems;
  const Preflight found = look_at_start(experiment, engine, how, problems);
  const auto code = problems.empty() ? exit_code_of(found.stops) : ExitCode::kUsage;
  const auto stops = problems_of(found.stops, experiment.origins);
  problems.insert(problems.end(), stops.begin(), stops.end());
  for (const auto& line : details_in_full(problems)) log::info(line);
  config::throw_problems(problems, code);
}

void prepare_data(const Experiment& experiment) {
  const TaskRules* task = find_task_rules(experiment);
  if (task == nullptr) return;
  const log::Silence silence;
  try {
    task->prepare_data(experiment);
  } catch (const std::exception&) {  // out of memory, too
  }
}

Preflight joined(Preflight first, const Preflight& second) {
  if (first.most_batches == 0) first.most_batches = second.most_batches;
  first.stops.insert(first.stops.end(), second.stops.begin(), second.stops.end());
  first.unread.insert(first.unread.end(), second.unread.begin(), second.unread.end());
  first.doubts.insert(first.doubts.end(), second.doubts.begin(), second.doubts.end());
  return first;
}

CheckRequest engine_request(LoadedExperiment experiment, const std::vector<config::Problem>& known,
                            const Preflight& found, const PreflightOptions& how) {
  const auto& e = experiment.options;
  const auto is_known = [&](const char* key) { return config::is_unreliable(known, key); };
  const bool machine = !how.elsewhere && !questions_for_the_machine(e, known).empty();
  // The shapes of weights depend on every key of the model, and on the vocabulary.
  const bool shapes_known =
      std::none_of(found.stops.begin(), found.stops.end(),
                   [](const Stop& stop) { return stop.stage == Stage::kTokenizer; }) &&
      describes_a_model(known);
  const bool weights = !e.train.init_from.empty() && !is_known("train.init_from") &&
                       !is_known("train.init_only") && shapes_known;
  if (weights && is_known("model.init")) {
    experiment.options = without_init(std::move(experiment.options));
  }
  // Text with other faults has been reported already.
  const bool text =
      weights && takes_tokenizer_of_other_run(e) && known.empty() && found.stops.empty();
  return {.experiment = std::move(experiment),
          .machine = machine,
          .weights = weights,
          .text = text,
          .full = how.full};
}

std::vector<config::Problem> problems_of(const std::vector<Stop>& stops,
                                         const config::Origins& origins) {
  // Where two have one cause, the one that training comes to first is kept.
  auto sorted = stops;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Stop& a, const Stop& b) { return a.stage < b.stage; });
  std::vector<config::Problem> problems;
  std::set<std::string> seen;
  for (const auto& stop : sorted) {
    if (!seen.insert(stop.what).second) continue;
    const std::string place = stop.key.empty() ? "" : origins.of(stop.key);
    problems.push_back({place,
                        without_key(stop.what, stop.key),
                        stop.hint,
                        stop.key,
                        origins.order_of(stop.key),
                        {},
                        stop.details});
  }
  return problems;
}

std::vector<std::string> details_in_full(const std::vector<config::Problem>& problems) {
  std::vector<std::string> lines;
  for (const auto& problem : config::in_order(problems)) {
    if (!problem.details.empty()) lines.push_back(problem.place + ", in full:");
    for (const auto& line : problem.details) lines.push_back("  " + printable(line, 1000));
  }
  return lines;
}

ExitCode exit_code_of(const std::vector<Stop>& stops) {
  const auto first = std::min_element(
      stops.begin(), stops.end(), [](const Stop& a, const Stop& b) { return a.stage < b.stage; });
  return first == stops.end() ? ExitCode::kOk : first->code;
}

}  // namespace stretto::experiment
