#include "lint/lint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "experiment/load_experiment.h"
#include "experiment/read_experiment.h"
#include "experiment/rules.h"
#include "experiment/schedule_length.h"
#include "experiment/tensor_keys.h"
#include "lint/rules.h"

namespace stretto::lint {
namespace {

struct Rule {
  const char* code;
  LintRule look;
  const char* source;  ///< of remarks that have none of their own
};

constexpr const char* kGoyalRule = "Goyal et al. 2017, arXiv:1706.02677, section 2.1";
constexpr const char* kGoyalWarmup = "Goyal et al. 2017, arXiv:1706.02677, section 2.2";
constexpr const char* kGoyalLimit = "Goyal et al. 2017, arXiv:1706.02677, section 5";
constexpr const char* kGoyalSetup = "Goyal et al. 2017, arXiv:1706.02677, section 5.1";
constexpr const char* kMixed = "Micikevicius et al. 2018, arXiv:1710.03740, section 3";
constexpr const char* kDecoupled = "Loshchilov and Hutter 2019, arXiv:1711.05101";
// Where no paper is needed, or several are, a section of the manual says why.
constexpr const char* kAccumulation =
    "Liu et al. 2020, arXiv:1908.03265 (RAdam); docs/large-batches.md#accumulation-with-adam";
constexpr const char* kWarmupLength = "docs/large-batches.md#how-long-a-warm-up";
constexpr const char* kSharing = "docs/large-batches.md#micro-batches-and-processes";
constexpr const char* kValidation = "docs/large-batches.md#validation";
constexpr const char* kEnd = "docs/large-batches.md#the-end-of-a-schedule";
constexpr const char* kAveraging = "Vaswani et al. 2017, arXiv:1706.03762, section 6.1";

// LB large batches, BN batch norm, LN layer norm, MP mixed precision, DP processes, EV validation,
// SC schedule, RG regularisation, CK checkpoints, CF the configuration itself. CF003 was one: CF001
// says it now.
constexpr std::array kRules{
    Rule{"LB001", &rules::linear_scaling_without_warmup, kGoyalWarmup},
    Rule{"LB002", &rules::short_warmup, kGoyalWarmup},
    Rule{"LB003", &rules::scaled_too_far, kGoyalLimit},
    Rule{"LB004", &rules::high_rate_without_reference, kGoyalRule},
    Rule{"LB005", &rules::linear_scaling_of_adaptive, "Malladi et al. 2022, arXiv:2205.10287"},
    Rule{"LB006", &rules::sqrt_scaling_of_sgd, kGoyalRule},
    Rule{"LB007", &rules::constant_warmup, kGoyalWarmup},
    Rule{"LB008", &rules::coupled_decay, kDecoupled},
    Rule{"LB009", &rules::decay_of_vectors, kGoyalSetup},
    Rule{"LB010", &rules::few_updates_per_epoch, "McCandlish et al. 2018, arXiv:1812.06162"},
    Rule{"LB011", &rules::many_micro_batches, kAccumulation},
    Rule{"LB012", &rules::long_second_moment, "Kingma and Ba 2015, arXiv:1412.6980, section 3"},
    Rule{"LB013", &rules::average_spans_warmup, kAveraging},
    Rule{"LB014", &rules::larc_with_clipping, "OpenSeq2Seq, whose LARC excludes max_grad_norm"},
    Rule{"LB015", &rules::mostly_warmup, kWarmupLength},
    Rule{"LB016", &rules::parts_at_full_gain, kGoyalSetup},
    Rule{"LB017", &rules::rate_of_tokens_for_few_samples,
         "docs/large-batches.md#the-learning-rate"},
    Rule{"LB018", &rules::fewer_micro_batches_than_heads, "docs/models.md#several-decoders"},
    Rule{"BN001", &rules::few_rows_to_normalise, "Wu and He 2018, arXiv:1803.08494"},
    Rule{"BN002", &rules::scaling_of_synchronised,
         "Goyal et al. 2017, arXiv:1706.02677, section 2.3"},
    Rule{"BN003", &rules::nothing_to_synchronise, "docs/large-batches.md#batch-norm"},
    Rule{"LN001", &rules::few_units_to_norm, "docs/models.md#few-units-under-a-norm"},
    Rule{"MP001", &rules::half_without_loss_scale, kMixed},
    Rule{"MP002", &rules::static_scale_too_large, kMixed},
    Rule{"MP003", &rules::scale_without_half, kMixed},
    Rule{"DP001", &rules::half_precision_wire, kMixed},
    Rule{"DP002", &rules::tiny_buckets, "Li et al. 2020, arXiv:2006.15704, section 3.2"},
    Rule{"DP003", &rules::idle_processes, kSharing},
    Rule{"EV001", &rules::no_validation, kValidation},
    Rule{"EV002", &rules::validates_only_at_the_end, kValidation},
    Rule{"EV003", &rules::noisy_best, kValidation},
    Rule{"EV004", &rules::validates_all_the_time, kValidation},
    Rule{"SC001", &rules::schedule_ends_early, kEnd},
    Rule{"SC002", &rules::schedule_never_ends,
         "Hoffmann et al. 2022, arXiv:2203.15556, appendix B"},
    Rule{"SC003", &rules::steep_start, "Vaswani et al. 2017, arXiv:1706.03762, section 5.3"},
    Rule{"SC004", &rules::high_rate, "Kingma and Ba 2015, arXiv:1412.6980, section 2.1"},
    Rule{"SC005", &rules::heavy_smoothing, "Szegedy et al. 2016, arXiv:1512.00567, section 7"},
    Rule{"RG001", &rules::pulls_equal_passes, "Wu et al. 2021, arXiv:2106.14448, section 2.2"},
    Rule{"CK001", &rules::saves_only_at_the_end, "Young 1974, Communications of the ACM 17(9)"},
    Rule{"CK002", &rules::too_few_to_average, "docs/training.md#checkpoints"},
    Rule{"CK003", &rules::nothing_to_roll_back_to,
         "docs/when-numbers-explode.md#what-happens-next"},
    Rule{kUnreadKey, &rules::unread_keys, "docs/large-batches.md#keys-that-nothing-reads"},
    Rule{"CF002", &rules::nothing_to_be_lazy_with, "docs/training.md#sparse-updates"},
    Rule{"CF004", &rules::noise_on_frozen_tensors, "docs/training.md#weight-noise"},
};

// An origin has the place and the key in one: "my.toml:14:1: `optim.lr`".
std::string place_of(const config::Origins& origins, const std::string& key) {
  if (!origins.given(key)) return "default";
  const std::string text = origins.of(key), tail = ": `" + key + "`";
  return text.ends_with(tail) ? text.substr(0, text.size() - tail.size()) : text;
}

RunLength length_of(const Subject& s) {
  const auto& train = s.e.train;
  const RunLength steps{train.max_steps, train.max_steps};
  if (train.max_epochs == 0 || s.context.files.epoch <= 0) return steps;
  const double epoch = static_cast<double>(s.context.files.epoch) / s.batch;
  const double updates = std::max(1.0, epoch) * static_cast<double>(train.max_epochs);
  constexpr double kMost = 1e15;  // fits, doubled too
  const auto guess = std::max<int64_t>(2, std::llround(std::min(updates, kMost)));
  // Where the two are close, it is not known which comes first.
  if (steps.known() && steps.at_most <= 2 * guess) return steps;
  return {guess / 2, 2 * guess, s.task.name_of_data()};
}

// When the run's length is unknown, a warm-up given as a ratio counts as one update.
int64_t warmup_of(const experiment::Experiment& e, const RunLength& run) {
  const int64_t given = experiment::schedule_length(e);
  const int64_t total = given > 0 ? given : run.at_most / 2;
  const int64_t updates = e.schedule.warmup_updates(total);
  return e.schedule.warmup_ratio > 0 ? std::max<int64_t>(1, updates) : updates;
}

const experiment::TaskRules& rules_of(const experiment::Experiment& e) {
  const auto* task = experiment::find_task_rules(e);
  if (task == nullptr) throw std::invalid_argument("lint: the family of tasks is not known");
  return *task;
}

}  // namespace

std::string RunLength::text() const {
  if (!guessed()) return counted(at_most, "update");
  return "about " + counted(at_most / 2, "update") + " (guessed from the size of the " + data + ")";
}

std::string tokens_text(double tokens) {
  return with_thousands(std::llround(tokens));
}

Subject::Subject(const experiment::Experiment& options, const LintContext& lint_context)
    : Subject(options, rules_of(options), lint_context) {}

Subject::Subject(const experiment::Experiment& options, const experiment::TaskRules& task_rules,
                 const LintContext& lint_context)
    : ScaledRate(options, &task_rules),
      task(task_rules),
      context(lint_context),
      run(length_of(*this)),
      warmup(warmup_of(options, run)) {}

experiment::ValidationData Subject::validation_data() const {
  return task.validation_data(e);
}

bool Subject::large() const {
  return micro_batch.unit == "tokens" && batch >= kLargeBatch;
}

bool Subject::adaptive() const {
  static constexpr std::array kNames{"adam",    "adamw",     "radam", "lamb",     "adagrad",
                                     "rmsprop", "adafactor", "ftrl",  "lazy_adam"};
  return std::find(kNames.begin(), kNames.end(), e.optim.name) != kNames.end();
}

std::vector<Finding> lint(const experiment::Experiment& options, const config::Origins& origins,
                          const LintContext& context) {
  const Subject subject(options, context);
  std::vector<Finding> findings;
  for (const Rule& rule : kRules) {
    Remarks remarks;
    rule.look(subject, remarks);
    for (auto& remark : remarks) {
      // It was not written here, so it cannot be left out here.
      if (rule.code == std::string_view(kUnreadKey) && origins.taken(remark.key)) continue;
      findings.push_back({.code = rule.code,
                          .key = remark.key,
                          .place = place_of(origins, remark.key),
                          .reason = std::move(remark.reason),
                          .source = remark.source.empty() ? rule.source : remark.source,
                          .fix = std::move(remark.fix)});
    }
  }
  return findings;
}

std::vector<std::string> lint_codes() {
  std::vector<std::string> codes;
  for (const Rule& rule : kRules) codes.push_back(rule.code);
  return codes;
}

namespace {

// Compares patterns with the tensors of the model, where that is sound.
void match_patterns(const experiment::TensorLister& tensors, Inspection& found,
                    LintContext& context) {
  const bool init_is_wrong = config::is_unreliable(found.problems, "model.init");
  const auto named = init_is_wrong ? experiment::without_init(found.options) : found.options;
  auto keys = experiment::keys_that_name_tensors(named);
  if (keys.empty()) return;
  if (!experiment::describes_a_model(found.problems)) {
    found.unmatched = std::move(keys);
    return;
  }
  context.tensors = tensors(named);
  experiment::check_patterns(named, found.origins, context.tensors, found.problems, tensors);
}

}  // namespace

Inspection inspect(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                   int64_t processes, const experiment::TensorLister& tensors,
                   const experiment::ReadContext& read_context) {
  Inspection found;
  experiment::Experiment fallback;
  auto& options = found.options;
  const auto read =
      experiment::read_experiment(path, overrides, read_context, options, fallback, found.problems);
  found.origins = read.origins;
  found.taken = read.taken;
  found.is_read = experiment::readable(found.problems);
  if (!found.is_read) return found;
  experiment::resolve_defaults(options, found.origins);
  const auto schema = experiment::experiment_schema(options);  // with the parts that were chosen
  found.missing = experiment::missing_files(schema, found.origins, found.problems);
  experiment::forget_initial_run(read, found.missing);
  experiment::check_rules(options, found.origins, found.problems);
  LintContext context{.processes = processes};
  if (tensors) match_patterns(tensors, found, context);
  if (found.problems.empty()) {
    const auto defaults = experiment::experiment_schema(fallback);
    found.resolved_toml = config::to_toml(schema, &defaults);
    found.config_hash = experiment::config_hash_of(options);
    context.files = rules_of(options).file_sizes(options);
    found.findings = lint(options, found.origins, context);
  }
  return found;
}

}  // namespace stretto::lint
