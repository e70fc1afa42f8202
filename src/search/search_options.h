#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/choice.h"
#include "config/field.h"
#include "search/space_options.h"

namespace stretto::search {

/// `[method.stop]`: which trials of a grid or of random points end early.
struct StopOptions {
  std::string name = "none";
  int64_t check_every = 0;
  int64_t grace_steps = 0;
  int64_t min_trials = 3;

  static auto fields() {
    using namespace config;
    using O = StopOptions;
    return Fields{
        field(&O::name, "name",
              "none: each trial trains to its end; median: one that is worse than the median of "
              "the others ends early",
              one_of({"none", "median"}))
            .also_called({"type", "rule"})
            .value_also_called("median", {"median_stopping", "median_pruner"}),
        field(&O::check_every, "check_every",
              "updates between two looks at a trial; 0 = a fifth of its length", between(0, 1e12),
              {.unit = "updates"})
            .also_called({"interval", "every", "eval_interval"})
            .read_with("name", {"median"}),
        field(&O::grace_steps, "grace_steps", "updates that each trial may make in any case",
              between(0, 1e12), {.unit = "updates"})
            .also_called({"grace_period", "warmup_steps", "n_warmup_steps"})
            .read_with("name", {"median"}),
        field(&O::min_trials, "min_trials",
              "other trials that have come as far, before any is stopped", at_least(1),
              {.unit = "trials"})
            .also_called({"min_samples_required", "n_startup_trials"})
            .read_with("name", {"median"}),
    };
  }
};

namespace detail {
template <class O>
auto stop_field() {
  return config::field(&O::stop, "stop", "which trials end early")
      .also_called({"pruner", "early_stopping", "stopping"});
}
}  // namespace detail

/// `[method] name = "asha"`: adaptive asynchronous successive halving (search/asha.h).
struct AshaOptions {
  static constexpr const char* kName = "asha";

  std::string mode = "standard";
  int64_t divisor = 4;
  int64_t max_rungs = 5;

  static auto fields() {
    using namespace config;
    using O = AshaOptions;
    return Fields{
        field(&O::mode, "mode",
              "how early trials stop: aggressive has one bracket, with all rungs; conservative "
              "adds a bracket for each smaller number of rungs, standard for the larger half",
              one_of({"standard", "aggressive", "conservative"})),
        field(&O::divisor, "divisor",
              "one of so many trials goes on from each rung, for so many times the updates",
              between(2, 1000))
            .also_called({"eta", "reduction_factor"}),
        field(&O::max_rungs, "max_rungs", "rungs of a bracket at the most", between(1, 20),
              {.unit = "rungs"})
            .also_called({"num_rungs"}),
    };
  }
};

/// `[method] name = "random"`: points drawn from the space, independent of each other.
struct RandomOptions {
  static constexpr const char* kName = "random";
  StopOptions stop;
  static auto fields() { return config::Fields{detail::stop_field<RandomOptions>()}; }
};

/// `[method] name = "grid"`: every point of a grid, the last hyperparameter changing fastest.
struct GridOptions {
  static constexpr const char* kName = "grid";
  StopOptions stop;
  static auto fields() { return config::Fields{detail::stop_field<GridOptions>()}; }
};

using MethodChoice = config::Choice<AshaOptions, RandomOptions, GridOptions>;

/// What `search.max_trials = 0` means, but for a grid.
inline constexpr int64_t kTrialsByDefault = 16;

/// `[search]`: what is searched, how long and with what. A key that is free may change when a
/// search goes on (search/changes.h says how).
struct SearchOptions {
  std::string config;
  std::vector<std::string> overrides;
  std::string metric;
  std::string goal = "auto";
  int64_t max_trials = 0;
  double max_hours = 0;
  int64_t seed = 1;
  int64_t slots = 0;
  int64_t slots_per_trial = 1;
  int64_t gpus_per_trial = 0;
  std::string hosts;
  std::vector<std::string> remote_shell{"ssh", "-oBatchMode=yes", "-oConnectTimeout=20",
                                        "-oServerAliveInterval=15", "-oServerAliveCountMax=4"};
  bool deterministic = false;
  int64_t max_restarts = 5;
  std::vector<std::string> points;

  static auto fields() {
    using namespace config;
    using O = SearchOptions;
    return Fields{
        field(&O::config, "config", "the configuration that each trial trains, but for its point",
              any(), {.change = Change::kFree, .is_path = true})
            .also_called({"recipe", "base", "experiment"}),
        field(&O::overrides, "overrides",
              "keys of it that have another value in all trials: [\"train.max_steps=500\"]", any(),
              {.change = Change::kFree})
            .also_called({"keys", "fixed", "const"}),
        field(&O::metric, "metric",
              "the score of a validation by which trials are ranked: \"nll\", or \"valid.nll\"; "
              "empty = eval.best_metric of the configuration")
            .also_called({"objective", "best_metric", "metric_name"}),
        field(&O::goal, "goal",
              "whether less of it is better; auto: as the configuration's task says",
              one_of({"auto", "minimize", "maximize"}))
            .also_called({"direction"})
            .also_called({"smaller_is_better"}, "= \"minimize\"")
            .value_also_called("minimize", {"min", "minimise", "lower"})
            .value_also_called("maximize", {"max", "maximise", "higher"}),
        field(&O::max_trials, "max_trials",
              "points that are tried; 0 = all of a grid, 16 with another method",
              between(0, 1'000'000), {.unit = "trials", .change = Change::kFree})
            .also_called({"num_samples", "n_trials", "num_trials", "budget"}),
        field(&O::max_hours, "max_hours",
              "no training begins after so much time of all sessions; 0 = no limit", at_least(0),
              {.unit = "hours", .change = Change::kFree})
            .also_called({"timeout", "time_budget", "max_time"}),
        field(&O::seed, "seed", "root of the random numbers that points are drawn with",
              between(0, 9007199254740992.0))
            .also_called({"random_seed", "experiment_seed"}),
        field(&O::slots, "slots", "cores that trials may take together; 0 = those of this machine",
              between(0, 4096), {.unit = "cores", .change = Change::kFree})
            .also_called({"max_slots", "num_workers", "cores", "cpus"}),
        field(&O::slots_per_trial, "slots_per_trial", "cores, and threads, of one trial",
              between(1, 4096), {.unit = "cores", .change = Change::kFree})
            .also_called({"cpus_per_trial", "threads_per_trial", "resources_per_trial"}),
        field(&O::gpus_per_trial, "gpus_per_trial",
              "GPUs that a trial has alone, a process for each; 0 = trials share the device of the "
              "configuration",
              between(0, 1024), {.unit = "GPUs", .change = Change::kFree})
            .also_called({"num_gpus", "gpus"}),
        field(
            &O::hosts, "hosts",
            "a file with a line NAME slots=8 gpus=2 for each host that trials run on, with DIR on "
            "a disk that all of them share; empty = this machine alone",
            any(), {.change = Change::kFree, .is_path = true})
            .also_called({"hostfile", "host_file", "machines", "nodes"}),
        field(&O::remote_shell, "remote_shell",
              "program and options that start a command on another host", any(),
              {.change = Change::kFree})
            .also_called({"ssh", "rsh", "launcher"}),
        field(&O::deterministic, "deterministic",
              "results are taken in the order in which trainings began, so that several slots give "
              "the same table each time; a slot may wait for another",
              any(), {.change = Change::kFree}),
        field(&O::max_restarts, "max_restarts",
              "times that a training which failed is tried again; then it counts as the worst",
              between(0, 1000), {.unit = "times", .change = Change::kFree})
            .also_called({"retries", "max_retries", "restarts", "max_failures"}),
        field(&O::points, "points",
              "points to try before any that is drawn, each in one text: \"optim.lr=1e-3 "
              "model.d_model=128\"; what it leaves out is drawn",
              any(), {.change = Change::kFree})
            .also_called({"enqueue", "initial_points", "points_to_evaluate", "initial_params"}),
    };
  }
};

/// A whole search file: SPACE.toml.
struct SearchFileOptions {
  SearchOptions search;
  MethodChoice method;
  std::vector<ParameterChoice> space;

  static auto fields() {
    using config::field;
    using O = SearchFileOptions;
    return config::Fields{
        field(&O::search, "search", "what is searched, how long and with what")
            .also_called({"searcher", "tune", "study", "sweep"}),
        field(&O::method, "method", "which points are tried, and how far each is trained")
            .also_called({"algorithm", "scheduler", "sampler", "strategy"})
            .value_also_called("asha", {"adaptive_asha", "hyperband", "successive_halving"})
            .value_also_called("grid", {"grid_search"})
            .value_also_called("random", {"random_search"}),
        field(&O::space, "space", "a hyperparameter, each in a block [[space]] of its own")
            .also_called({"hyperparameters", "parameters", "search_space", "params"})
            .value_also_called("categorical", {"choice", "category", "enum"})
            .value_also_called("log", {"loguniform", "log_uniform"})
            .value_also_called("double", {"uniform", "float"})
            .value_also_called("int", {"integer", "randint"}),
    };
  }
};

}  // namespace stretto::search
