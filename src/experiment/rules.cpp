#include "experiment/rules.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "base/text.h"
#include "config/path_list.h"
#include "config/value_hints.h"
#include "data/byte_stream.h"
#include "experiment/compress_rules.h"
#include "experiment/rule_check.h"
#include "experiment/scaled_rate.h"
#include "experiment/schedule_length.h"
#include "experiment/task_rules.h"
#include "experiment/tensor_patterns.h"
#include "optim/precision_options.h"
#include "train/compute_optimal.h"

namespace stretto::experiment {
namespace {

namespace fs = std::filesystem;

std::string number(int64_t value) {
  return std::to_string(value);
}
std::string count(size_t value) {
  return std::to_string(value);
}

void check_init(RuleCheck& c) {
  if (!c.e.train.init_only.empty() && c.e.train.init_from.empty()) {
    c.wrong({"train.init_only", "train.init_from"}, "there is no other run to take tensors from",
            "set train.init_from, or leave train.init_only out");
  }
  if (c.e.train.init_vocabulary == "same" || !c.e.train.init_from.empty()) return;
  c.wrong({"train.init_vocabulary", "train.init_from"},
          "there is no other run whose rows could be matched",
          "set train.init_from, or leave train.init_vocabulary out");
}

void check_noam(RuleCheck& c, const TaskRules* task) {
  const auto& s = c.e.schedule;
  if (s.name != "noam") return;
  const ModelWidth width = task != nullptr ? task->model_width(c.e) : ModelWidth{};
  if (task != nullptr && width.key.empty()) {
    c.wrong({"schedule.name", "task.name"},
            "\"noam\" divides by the root of the model's width, and models of " + c.e.task.name() +
                " have none",
            "use \"inverse_sqrt\", whose optim.lr is the highest rate itself");
  }
  if (!width.key.empty() && s.d_model.given && s.d_model.value != width.value) {
    c.wrong({"schedule.d_model", width.key, "schedule.name"},
            number(s.d_model.value) + " is not " + width.key + " = " + number(width.value),
            "noam divides by the root of the model's width: leave it out");
  }
  if (s.warmup_steps < 1 && s.warmup_ratio <= 0) {
    c.wrong({"schedule.warmup_steps", "schedule.name"}, "noam needs a warm-up", "4000 is usual");
  }
}

void check_piecewise(RuleCheck& c) {
  const auto& s = c.e.schedule;
  if (s.name != "piecewise") return;
  if (s.boundaries.empty() || s.boundaries.size() != s.multipliers.size()) {
    c.wrong({"schedule.boundaries", "schedule.multipliers", "schedule.name"},
            count(s.boundaries.size()) + " boundaries and " + count(s.multipliers.size()) +
                " multipliers",
            "piecewise needs one multiplier of optim.lr for each boundary");
  } else if (!std::is_sorted(s.boundaries.begin(), s.boundaries.end(), std::less_equal<>())) {
    c.wrong({"schedule.boundaries"}, "the boundaries do not ascend", "sort them");
  }
}

void check_optimizer(RuleCheck& c, const TaskRules* task) {
  const auto& o = c.e.optim;
  if (o.lr_scaling != "none" && o.reference_batch == 0 && task != nullptr) {
    const BatchBound bound = task->micro_batch(c.e);
    c.wrong({"optim.lr_scaling", "optim.reference_batch"},
            "\"" + o.lr_scaling + "\" needs optim.reference_batch",
            "set it to the batch in " + bound.unit + " (" + bound.key +
                " * train.update_freq) that optim.lr was chosen for");
  }
  if (o.name == "lazy_adam" && o.gradient_noise > 0) {
    c.wrong({"optim.gradient_noise", "optim.name"},
            "noise gives every row of an embedding a gradient, and lazy_adam is to step only those "
            "that were looked up",
            "set optim.gradient_noise = 0, or optim.name = \"adam\"");
  }
  if (o.name == "adafactor" && !c.e.train.unfreeze.empty()) {
    c.wrong({"train.unfreeze", "optim.name"}, "adafactor steps all tensors at once",
            "use another optimizer, or train.freeze");
  }
  const auto& d = c.e.dist;
  if (o.name == "adafactor" && d.strategy == "sharded") {
    c.wrong({"dist.strategy", "optim.name"},
            "adafactor needs the rows and columns of whole matrices, which slices cut",
            "use dist.strategy = \"all_reduce\" or \"parameter_server\"; its state is small: one "
            "number for each row and column");
  }
  if (d.deterministic && d.compress != "none") {
    c.wrong({"dist.compress", "dist.deterministic"},
            "\"" + d.compress + "\" rounds what dist.deterministic = true sums exactly",
            "use dist.compress = \"none\"");
  }
}

void check_buckets(RuleCheck& c) {
  const int64_t bytes = c.e.dist.bucket_bytes;
  if (bytes == 0 || bytes >= distributed::kLeastBucketBytes) return;
  c.wrong({"dist.bucket_bytes"},
          "must be 0 (automatic) or at least " + number(distributed::kLeastBucketBytes) + ", got " +
              number(bytes),
          "0 is 2 MiB over MPI and 25 MiB over NCCL");
}

void check_loss_scale(RuleCheck& c) {
  const auto& l = c.e.train.loss_scale;
  if (l.max > 0 && l.min > l.max) {
    c.wrong({"train.loss_scale.min", "train.loss_scale.max"},
            config::number_text(l.min) +
                " is above train.loss_scale.max = " + config::number_text(l.max),
            "lower it");
    return;
  }
  // An option that is 0 has the method's own bound.
  const bool fp16 = optim::may_be_fp16(c.e.train.precision);
  const std::string name = l.name == "auto" ? (fp16 ? "fairseq" : "none") : l.name;
  const auto* method = optim::find_loss_scale_method(name);
  if (method == nullptr) return;
  const bool scales = name != "none";
  const auto range = scales ? optim::loss_scale_bounds(l, *method)
                            : optim::LossScaleBounds{.least = l.min, .most = l.max};
  const double least = range.least, most = range.most;
  const auto bounds = [&] {
    return " \"" + name + "\" allows, " + config::number_text(least) +
           (std::isfinite(most) && most > 0 ? " to " + config::number_text(most) : " or more");
  };
  if (scales && least > most) {
    c.wrong({"train.loss_scale.min", "train.loss_scale.name"},
            config::number_text(least) + " is above the largest scale of \"" + name + "\", " +
                config::number_text(most),
            "lower it, or set train.loss_scale.max");
  } else if (l.init > 0 && (l.init < least || (most > 0 && l.init > most))) {
    c.wrong({"train.loss_scale.init", "train.loss_scale.min", "train.loss_scale.max",
             "train.loss_scale.name"},
            config::number_text(l.init) + " is outside of what" + bounds(),
            "choose it between them, or set train.loss_scale.min and train.loss_scale.max around "
            "it");
  }
}

// Where the schedule decays to an end, its parts follow each other. Those of train.max_epochs are
// looked at when training knows its data (train/schedule_end.h).
void check_end(RuleCheck& c) {
  const auto& s = c.e.schedule;
  const int64_t total = schedule_length(c.e);
  const int64_t warmup = s.warmup_updates(total);
  if (total == 0 && c.e.train.max_epochs > 0) return;
  if (total == 0) {
    c.wrong({"schedule.name", "schedule.total_steps", "train.max_steps", "train.max_epochs"},
            "\"" + s.name + "\" must know where it ends",
            "set schedule.total_steps, train.max_steps or train.max_epochs");
  } else if (total <= warmup) {
    if (s.total_steps == 0) return;  // the warm-up is not shorter than the run, see below
    c.wrong({"schedule.total_steps", s.warmup_key()},
            "the decay would end, at update " + number(total) + ", inside the warm-up",
            "raise it above the warm-up of " + counted(warmup, "update"));
  } else if (total <= s.decay_begin(total)) {
    // The one that moves the decay furthest: the other may not even have been given.
    const bool held = s.held_updates() >= s.begin_steps;
    c.wrong({held ? "schedule.hold_steps" : "schedule.begin_steps",
             held ? "schedule.begin_steps" : "schedule.hold_steps", "schedule.total_steps",
             "train.max_steps", s.warmup_key()},
            "the decay would begin after its end, update " + number(total), "lower it");
  }
}

// The floor is compared with the highest rate that the run really has.
void check_floor(RuleCheck& c, const TaskRules* task) {
  const auto& s = c.e.schedule;
  const ScaledRate rate(c.e, task);
  const double peak = rate.rate_after_warmup();
  if (s.min_lr <= peak) return;
  std::string what = config::number_text(s.min_lr) + " is above ";
  if (!rate.rate_is_peak()) {
    what += "the highest rate of noam, " + config::number_text(peak);
  } else if (rate.scaling == "none") {
    what += "optim.lr = " + config::number_text(peak);
  } else {
    what += "the peak, " + config::number_text(peak) +
            ": optim.lr scaled from optim.reference_batch to " +
            with_thousands(std::llround(rate.batch)) + " " + rate.micro_batch.unit + " an update";
  }
  c.wrong({"schedule.min_lr", "optim.lr", "optim.lr_scaling", "optim.reference_batch",
           rate.micro_batch.key, "train.update_freq", "schedule.name", rate.width.key,
           "schedule.warmup_steps", "schedule.max_lr"},
          what, "the floor must not be above the peak");
}

// A warm-up that is a share of all updates.
void check_warmup_ratio(RuleCheck& c) {
  const auto& s = c.e.schedule;
  if (s.warmup_ratio <= 0) return;
  if (s.warmup_steps > 0) {
    c.wrong({"schedule.warmup_ratio", "schedule.warmup_steps"},
            "stands beside schedule.warmup_steps = " + number(s.warmup_steps) +
                ", and both say how long the warm-up is",
            "give one of them; schedule.warmup_steps = 0 leaves it to the share");
  }
  // For a schedule that decays to an end, check_end() reports it.
  if (s.decays_to_an_end() || schedule_length(c.e) > 0 || c.e.train.max_epochs > 0) return;
  c.wrong({"schedule.warmup_ratio", "schedule.total_steps", "train.max_steps", "train.max_epochs"},
          "is a share of updates whose number nobody knows",
          "set train.max_steps or train.max_epochs, or give schedule.warmup_steps instead");
}

void check_schedule(RuleCheck& c, const TaskRules* task) {
  const auto& s = c.e.schedule;
  const int64_t max_steps = c.e.train.max_steps;
  const int64_t warmup = s.warmup_updates(schedule_length(c.e));
  check_warmup_ratio(c);
  if (s.decays_to_an_end()) check_end(c);
  check_floor(c, task);
  // A schedule that is stated to end later belongs to a longer run, of which this is the beginning.
  const bool goes_on = s.decays_to_an_end() && s.total_steps > warmup;
  if (max_steps > 0 && warmup >= max_steps && !goes_on) {
    c.wrong({s.warmup_key(), "train.max_steps"},
            "a warm-up of " + counted(warmup, "update") + " is not shorter than the run (" +
                with_thousands(max_steps) + ")",
            std::string("lower ") + s.warmup_key() +
                " or raise train.max_steps; `--until STEP` ends a run earlier and leaves its "
                "schedule");
  }
  const bool warms_up = s.warmup_steps > 0 || s.warmup_ratio > 0;
  if (s.warmup == "constant" && warms_up && !c.origins.given("schedule.warmup_init_lr")) {
    c.wrong({"schedule.warmup", "schedule.warmup_init_lr", s.warmup_key()},
            "a constant warm-up trains at schedule.warmup_init_lr, whose default of " +
                config::number_text(s.warmup_init_lr) + " is for a line that leaves it at once",
            "set schedule.warmup_init_lr to the rate of a small batch" +
                (c.e.optim.lr_scaling == "none"
                     ? std::string(", for instance a tenth of optim.lr")
                     : ": optim.lr = " + config::number_text(c.e.optim.lr) +
                           " is that of optim.reference_batch (Goyal et al. 2017, section 2.2)"));
  }
}

void check_stops(RuleCheck& c) {
  const auto& t = c.e.train;
  if (t.max_steps == 0 && t.max_epochs == 0 && t.max_hours == 0 && t.patience == 0) {
    c.wrong({"train.max_steps", "train.max_epochs", "train.max_hours", "train.patience"},
            "the run would never stop",
            "set at least one of train.max_steps, max_epochs, max_hours, patience");
  }
  // Divides, since the product may overflow.
  if (t.patience > 0 && t.max_steps > 0 && t.patience >= (t.max_steps - 1) / c.e.eval.every + 1) {
    c.wrong({"train.patience", "train.max_steps", "eval.every"},
            "can never stop the run: " + counted(t.patience, "validation") + " every " +
                counted(c.e.eval.every, "update") + " do not fit into " +
                with_thousands(t.max_steps),
            "lower train.patience or eval.every, or drop it");
  }
  if (t.average_last > t.keep_last && c.origins.given("train.keep_last")) {
    c.wrong({"train.average_last", "train.keep_last"},
            number(t.average_last) + " checkpoints are to be averaged, train.keep_last keeps " +
                number(t.keep_last),
            "raise train.keep_last");
  }
  if (t.ema_decay > 0 && t.average_nonmono > 0) {
    c.wrong({"train.ema_decay", "train.average_nonmono"},
            "weights have one average: a moving one, or the mean from some validation on",
            "set one of the two to 0");
  }
}

void check_validation(RuleCheck& c, const ValidationData& data) {
  if (data.there) return;
  const auto needs = [&](const std::string& key, const std::string& what) {
    std::vector<std::string> keys{key};
    keys.insert(keys.end(), data.keys.begin(), data.keys.end());
    c.wrong(keys, what + "needs " + data.name, data.remedy);
  };
  if (c.e.train.patience > 0) needs("train.patience", "");
  if (c.e.train.stop != "none") needs("train.stop", "");
  if (c.e.eval.at_start) needs("eval.at_start", "");
  if (c.e.schedule.name == "plateau") needs("schedule.name", "\"plateau\" ");
  if (c.e.train.average_nonmono > 0) needs("train.average_nonmono", "");
}

// The names of scores are the family's.
void check_best_metric(RuleCheck& c, const std::vector<ScoreSpec>& scores) {
  const std::string& wanted = c.e.eval.best_metric;
  std::vector<std::string> names;
  std::vector<config::OtherValue> others;
  for (const auto& score : scores) {
    if (score.name() == wanted) return;
    names.push_back(score.name());
    for (const auto& other : score.also_called) others.push_back({other, score.name(), ""});
  }
  const std::string meant = config::choice_hint(names, others, wanted);
  c.wrong({"eval.best_metric", "task.name"},
          "must be one of " + join(names, ", ") + ", got \"" + printable(wanted, 60) + "\"",
          meant.empty() ? "these are the scores of a validation of " + c.e.task.name() : meant);
}

// A curve of losses falls as a power of the updates; one of scores ends at the best that there is.
void check_stop_metric(RuleCheck& c, const std::vector<ScoreSpec>& scores) {
  const auto& t = c.e.train;
  if (t.stop == "none") return;
  if (t.max_steps > 0 && t.max_steps / c.e.eval.every < train::kFewestValidations) {
    c.wrong({"train.stop", "train.max_steps", "eval.every"},
            "can never stop the run: it looks at " +
                counted(train::kFewestValidations, "validation") + ", and train.max_steps has " +
                number(t.max_steps / c.e.eval.every),
            "lower eval.every, or drop it");
  }
  for (const auto& score : scores) {
    if (score.name() != c.e.eval.best_metric || !score.higher_is_better()) continue;
    c.wrong({"train.stop", "eval.best_metric"},
            "\"" + c.e.train.stop + "\" goes by a loss, and of " + c.e.eval.best_metric +
                " more is better",
            "set eval.best_metric to a loss, such as loss or nll");
  }
}

void note_all(RuleCheck& c, const std::vector<PatternProblem>& problems) {
  for (const auto& problem : problems) c.wrong({problem.key}, problem.what, problem.hint);
}

// The file beside it that was meant, when one is near.
std::string file_hint(const std::string& key, const fs::path& missing) {
  constexpr size_t kMost = 1000;  // a folder of many files would cost time
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(missing.parent_path(), failed), end;
       !failed && it != end && names.size() < kMost; it.increment(failed)) {
    names.push_back(it->path().filename().string());
  }
  const std::string near = closest(missing.filename().string(), names);
  return (near.empty() ? "" : "did you mean " + printable(near) + "? ") +
         "relative paths are relative to the file that states them" +
         (key == "train.init_from"
              ? "; it is a run folder, a checkpoint or a model folder of transformers"
              : "");
}

std::vector<std::string> paths_of(const config::Key& key) {
  if (const auto* const* many = std::get_if<std::vector<std::string>*>(&key.value)) return **many;
  const auto* const* one = std::get_if<std::string*>(&key.value);
  if (one == nullptr || (*one)->empty()) return {};
  return {**one};
}

}  // namespace

bool readable(const std::vector<config::Problem>& problems) {
  // Problems of the reader that belong to no key are those of whole files.
  return std::none_of(problems.begin(), problems.end(),
                      [](const auto& problem) { return problem.key.empty(); });
}

void check_rules(const Experiment& options, const config::Origins& origins,
                 std::vector<config::Problem>& problems, Purpose purpose) {
  check_rules(options, origins, find_task_rules(options), problems, purpose);
}

void check_rules(const Experiment& options, const config::Origins& origins, const TaskRules* task,
                 std::vector<config::Problem>& problems, Purpose purpose) {
  RuleCheck check(options, origins, problems);
  if (task != nullptr) task->check_model(check);
  check_init(check);
  check_schedule(check, task);
  check_piecewise(check);
  check_noam(check, task);
  check_optimizer(check, task);
  check_buckets(check);
  note_all(check, entry_problems(options));
  check_loss_scale(check);
  check_stops(check);
  check_compress(check);
  if (task == nullptr) return;
  task->check_data(check);
  if (purpose == Purpose::kTraining) task->check_training(check);
  check_validation(check, task->validation_data(options));
  check_best_metric(check, ranking_scores(task->scores(options)));
  check_stop_metric(check, ranking_scores(task->scores(options)));
}

bool describes_a_model(const std::vector<config::Problem>& problems) {
  // First weights change neither names nor shapes.
  return std::none_of(problems.begin(), problems.end(), [](const config::Problem& problem) {
    if (problem.key == "model.init") return false;
    return problem.key.starts_with("model") || problem.key.starts_with("tokenizer");
  });
}

void check_patterns(const Experiment& options, const config::Origins& origins,
                    std::span<const optim::TensorName> tensors,
                    std::vector<config::Problem>& problems, const TensorLister& lister) {
  if (tensors.empty() || !describes_a_model(problems)) return;
  RuleCheck check(options, origins, problems);
  note_all(check, name_problems(options, tensors, lister));
}

std::vector<config::Problem> missing_files(const config::Schema& schema,
                                           const config::Origins& origins,
                                           const std::vector<config::Problem>& problems,
                                           bool only_overridden) {
  std::vector<config::Problem> missing;
  for (const auto& key : schema.keys) {
    // The cache folder is made when it is not there.
    if (!key.meta.is_path || key.path == "data.cache_dir") continue;
    if (config::is_unreliable(problems, key.path)) continue;
    if (only_overridden && !origins.overridden(key.path)) continue;
    for (const auto& path : paths_of(key)) {
      if (key.meta.takes_folders || key.meta.takes_patterns) {
        const std::string problem = config::listed_files(path, key.meta.takes_folders).problem;
        if (!problem.empty()) {
          missing.push_back(
              {origins.of(key.path), problem,
               key.meta.takes_folders
                   ? "name files, a folder of files, or a pattern such as folder/*.txt"
                   : "name files or folders, or a pattern such as folder/*.tar",
               key.path, origins.order_of(key.path)});
          continue;
        }
      }
      const fs::path file = data::parse_input_path(path).file;
      std::error_code ignored;
      if (fs::exists(file, ignored)) continue;
      missing.push_back({origins.of(key.path), "no file " + printable(file.string(), 4096),
                         file_hint(key.path, file), key.path, origins.order_of(key.path)});
    }
  }
  return missing;
}

}  // namespace stretto::experiment
