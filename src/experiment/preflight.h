#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/problem.h"
#include "experiment/load_experiment.h"
#include "experiment/preflight_found.h"

/// What training would stop at before its first update, beyond what the configuration shows: found
/// by the code that training uses, and without writing anything but
/// what the cache keeps of files for the start that follows.
namespace stretto::experiment {

/// Both, one after the other.
Preflight joined(Preflight first, const Preflight& second);

/// How long a look may go on; it begins now.
class PreflightTimer {
 public:
  explicit PreflightTimer(const PreflightOptions& how)
      : is_endless_(how.full),
        keeps_(how.keeps),
        end_(std::chrono::steady_clock::now() + how.limit) {}

  bool is_endless() const { return is_endless_; }
  bool keeps() const { return keeps_; }  ///< as PreflightOptions::keeps
  /// The limit as a point in time.
  std::chrono::steady_clock::time_point end() const {
    return is_endless_ ? std::chrono::steady_clock::time_point::max() : end_;
  }
  bool is_left() const { return is_endless_ || std::chrono::steady_clock::now() < end_; }
  /// Until the limit; less than 0 behind it.
  std::chrono::milliseconds left() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end_ -
                                                                 std::chrono::steady_clock::now());
  }

 private:
  bool is_endless_, keeps_;
  std::chrono::steady_clock::time_point end_;
};

/// What the family finds in its data (TaskRules::look_at_data in experiment/task_rules.h); whether
/// the run of its teacher does the same task; whether they make enough updates for the schedule of
/// train.max_epochs (train/schedule_end.h); of the machine, `elsewhere`, that it was not looked at.
///
/// @param known  problems of the configuration, missing files too: what they concern is left out
/// Throws Error(kIo).
Preflight preflight(const Experiment& options, const std::vector<config::Problem>& known,
                    const PreflightOptions& how);

/// What `stretto check` asks the engine, which alone knows of a device and of weights.
struct CheckRequest {
  LoadedExperiment experiment;
  bool machine = false;  ///< run.device and dist.backend as training takes them
  bool weights = false;  ///< train.init_from fits the model
  bool text = false;     ///< with `weights`: text, by the tokenizer that comes with them
  bool full = false;     ///< verify the weights, too, and read all of the data

  bool any() const { return machine || weights; }
};

/// Which of it there is to look at, so that libtorch is loaded only when a key asks for it.
/// @param found  of preflight()
CheckRequest engine_request(LoadedExperiment experiment, const std::vector<config::Problem>& known,
                            const Preflight& found, const PreflightOptions& how);

/// The functions that know it. Their Errors are noted too: the engine is opened where it is asked.
struct EngineChecks {
  TensorLister tensors;
  std::function<Preflight(const CheckRequest&)> check;
};

/// What training asks before it makes the folder of a new run, by the rules of `check`: patterns of
/// tensor names; what the family finds in its files alone (TaskRules::look_at_files); device and
/// weights where keys ask for them. Throws all of it together, and tells the details above it in
/// the log; what else the looks would tell is left to training.
///
/// Nothing is tokenised, trained or computed. What takes longer than the limit is found later,
/// where the files are read to their end.
void require_sound_start(const LoadedExperiment& experiment, const EngineChecks& engine,
                         const PreflightOptions& how = {
                             .limit = std::chrono::seconds(3), .keeps = true, .doubts = false});

/// TaskRules::prepare_data() of a new run. It tells nothing, and throws nothing: training does,
/// where it comes to it.
void prepare_data(const Experiment& experiment);

/// Runs `look` and notes the Error at which training would stop.
template <class Check>
void note_stop(Preflight& found, Stage stage, const std::string& key, const Check& look) {
  try {
    look();
  } catch (const Error& error) {
    found.stops.push_back(
        {stage, key, error.code(), error.what(), error.advice(), error.details()});
  }
}

/// The stops as problems of the configuration, each at the place of its key; one cause once.
std::vector<config::Problem> problems_of(const std::vector<Stop>& stops,
                                         const config::Origins& origins);

/// The details of problems as lines for people: "PLACE, in full:", and below it those of a problem.
std::vector<std::string> details_in_full(const std::vector<config::Problem>& problems);

/// What training would leave with: the code of the stop that it comes to first.
ExitCode exit_code_of(const std::vector<Stop>& stops);

}  // namespace stretto::experiment
