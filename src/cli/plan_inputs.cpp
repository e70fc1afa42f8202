#include "cli/plan_inputs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/configuration_file.h"
#include "cli/engine.h"
#include "cli/notes.h"
#include "cli/run_config.h"
#include "experiment/family_spec.h"
#include "interchange/initial_model.h"
#include "lint/lint.h"
#include "plan/tables.h"
#include "report/metrics_log.h"
#include "search/hosts.h"
#include "text/tokenizer.h"

namespace stretto::cli {
namespace {

using experiment::Experiment;

// Defaults for numbers that were not given. Each that is used is printed.
constexpr double kGflops = 50;          // a process on one core with AVX2
constexpr double kOptimizerBytes = 28;  // read and written per weight by Adam
constexpr double kMemoryBytes = 10e9;   // a second, for the optimizer
constexpr int64_t kPerHost = 8;
constexpr plan::Link kLink{.bytes_per_second = 1.25e9, .latency_seconds = 50e-6};
constexpr plan::Link kHostLink{.bytes_per_second = 5e9, .latency_seconds = 5e-6};

bool given(double value) {
  return !std::isnan(value);
}

// The option for the work of a micro-batch, by the name that fits what a family counts.
std::string option_of_units(const std::string& unit) {
  return unit.ends_with("tokens") ? "--tokens" : "--units";
}

double value_or(PlanInputs& plan, double wanted, double otherwise, const std::string& what) {
  if (given(wanted)) return wanted;
  plan.assumed.push_back(what);
  return otherwise;
}

/// What a run of one process measured.
struct Measured {
  double units = 0;    ///< of an update, as its rate counts them
  double seconds = 0;  ///< of an update
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Measured measure(const std::string& run, const report::RateStyle& keys) {
  std::vector<double> units, rates;
  bool first = true;  // it warms caches up
  for (const auto& event : report::read_metrics(std::filesystem::path(run) / "metrics.jsonl")) {
    const auto rate = event.number(keys.key), count = event.number(keys.batch);
    if (event.event != "train" || !rate || !count) continue;
    if (event.processes.value_or(1) > 1) {
      throw Error(ExitCode::kUsage,
                  run + " was trained by " + std::to_string(*event.processes) +
                      " processes; the model starts from the compute of one alone",
                  "train a few updates with one process, with the threads that each will have, or "
                  "give --compute-ms and " +
                      option_of_units(keys.unit));
    }
    if (!std::exchange(first, false)) {
      units.push_back(*count);
      rates.push_back(*rate);
    }
  }
  if (rates.empty() || median(rates) <= 0) {
    throw Error(ExitCode::kUsage, run + " has measured nothing yet",
                "metrics.jsonl needs two `train` events; see report.every");
  }
  const double mean = std::accumulate(units.begin(), units.end(), 0.0) / double(units.size());
  return {.units = mean, .seconds = mean / median(rates)};
}

void plan_compute(const PlanOptions& options, const std::optional<Experiment>& e, double flops,
                  PlanInputs& plan) {
  auto& setup = plan.setup;
  if (given(options.compute_ms)) {
    setup.compute_seconds = options.compute_ms / 1e3;
    plan.compute_source = "given";
  } else if (!options.run.empty()) {
    const auto run = load_run_config(options.run, {}).options;
    const Measured measured = measure(options.run, experiment::display_of(run).rate);
    const auto batches = double(run.train.update_freq);
    setup.compute_seconds = measured.seconds / batches;
    if (!given(options.units)) setup.units = measured.units / batches;
    plan.compute_source = "measured by " + options.run + ", optimizer included";
  } else if (e) {
    const double gflops = value_or(
        plan, options.gflops, kGflops,
        "a process computes " + shortest(kGflops) + " GFLOP/s (--gflops, --compute-ms or --run)");
    setup.compute_seconds = flops * setup.units / (gflops * 1e9);
    plan.compute_source = "estimated from operations";
    if (!given(options.optimizer_ms)) {
      setup.optimizer_seconds = double(plan.parameters) * kOptimizerBytes / kMemoryBytes;
      plan.assumed.push_back("the optimizer moves " + shortest(kOptimizerBytes) +
                             " bytes a weight at 10 GB/s (--optimizer-ms)");
    }
  }
}

// On a CPU the rows of a tied table may be summed apart: see TableGradients.
bool rows_may_be_apart(const PlanOptions& options, const Experiment& e, const plan::Setup& setup) {
  const auto& tables = plan_of(e).tables;
  return setup.overlap && !options.no_overlap && setup.strategy == plan::Strategy::kAllReduce &&
         tables && tables->tables(e).ties_output;
}

// The work of a micro-batch that nobody measured.
double assumed_units(const Experiment& e, PlanInputs& plan) {
  const auto work = plan_of(e).work(e);
  if (!work.assumed.empty()) {
    plan.assumed.push_back(work.assumed + " (" + option_of_units(plan.unit) + ")");
  }
  return work.units;
}

// Where processes compute, and with that the size of automatic buckets.
void plan_device(const PlanOptions& options, const Experiment& e, PlanInputs& plan) {
  plan.device = options.device.empty() ? e.run.device : options.device;
  const bool nccl = e.dist.backend == "nccl";
  if (plan.device == "auto") {
    plan.device = nccl ? "cuda" : "cpu";
    const bool automatic = e.dist.bucket_bytes == 0 && !given(options.bucket_mb);
    const bool counts = automatic || rows_may_be_apart(options, e, plan.setup);
    if (!nccl && counts && options.world_size > 1) {
      plan.assumed.emplace_back("processes compute on CPUs (--device)");
    }
  }
  plan.setup.bucket_bytes = double(distributed::bucket_bytes_of(e.dist, plan.device == "cuda"));
}

// When the gradients of tables are ready, and what of them is sent apart.
void plan_tables(const PlanOptions& options, const Experiment& e,
                 const experiment::TablePlan& family, const experiment::TableRows& rows,
                 PlanInputs& plan) {
  auto& setup = plan.setup;
  const bool apart = plan.device == "cpu" && rows_may_be_apart(options, e, setup);
  const auto gradients = family.gradients(e, rows, apart);
  setup.first_share = double(gradients.first_parameters) / double(plan.parameters);
  setup.late_share = double(gradients.late_parameters) / double(plan.parameters);
  if (!apart) return;
  const double lookups = gradients.lookups * setup.units;
  const double different = std::round(plan::different_rows(lookups, rows.output));
  setup.row_bytes = different * (4 * double(family.tables(e).d_model) + 8);  // and the row's number
  if (options.world_size > 1 && !given(options.row_mb)) {
    plan.assumed.push_back("a micro-batch looks up " + with_thousands(int64_t(different)) +
                           " different rows of the tied table (--row-mb)");
  }
}

// Whether the files are here that the tokenizer names, if it names any. A pipe would keep us
// waiting.
bool has_files(const text::TokenizerOptions& t) {
  const auto is_here = [](const std::string& path) {
    std::error_code ignored;
    return path.empty() || std::filesystem::is_regular_file(path, ignored);
  };
  return text::names_tokenizer(t) && is_here(t.model) && is_here(t.src_model) &&
         is_here(t.tgt_model) && is_here(t.merges) && is_here(t.src_vocab) && is_here(t.tgt_vocab);
}

// As training makes them of the tokenizer's files, or of the characters or words of its text. Where
// these are not here, or where another tokenizer is trained, of tokenizer.vocab_size.
experiment::TableRows planned_rows(const PlanOptions& options, const Experiment& e,
                                   const experiment::TablePlan& tables, PlanInputs& plan) {
  const text::TokenizerOptions t = tables.tables(e).tokenizer;
  if (options.vocab_rows > 0) return {.input = options.vocab_rows, .output = options.vocab_rows};
  if (has_files(t)) {
    const auto tokenizers = text::make_tokenizers(t, /*seed=*/0, nullptr, nullptr);
    return {.input = text::table_rows(tokenizers.src->size(), t.vocab_multiple),
            .output = text::table_rows(tokenizers.tgt->size(), t.vocab_multiple)};
  }
  const auto ids = tables.ids_of_text ? tables.ids_of_text(e) : std::nullopt;
  const int64_t rows = text::table_rows(ids.value_or(t.vocab_size), t.vocab_multiple);
  if (!ids && !text::names_tokenizer(t) && (t.type == "char" || t.type == "word")) {
    plan.assumed.push_back("the vocabulary has " + with_thousands(rows) +
                           " rows, the most that tokenizer.vocab_size lets in (--vocab-rows)");
  }
  if (text::names_tokenizer(t)) {
    plan.assumed.push_back("the vocabulary has " + with_thousands(rows) +
                           " rows, as tokenizer.vocab_size says, since its file is not here "
                           "(--vocab-rows)");
  }
  return {.input = rows, .output = rows};
}

// Throws Error(kUsage) for rows of tables that the model does not have.
void require_tables(const PlanOptions& options, const Experiment& e) {
  if (options.vocab_rows == 0 || plan_of(e).tables) return;
  throw Error(ExitCode::kUsage,
              "plan: --vocab-rows is for embedding tables, which models of " + e.task.name() +
                  " do not have",
              "leave it out");
}

void plan_model(const PlanOptions& options, const Experiment& e, PlanInputs& plan) {
  auto& setup = plan.setup;
  require_tables(options, e);
  const auto& tables = plan_of(e).tables;
  experiment::TableRows rows;
  if (tables) rows = planned_rows(options, e, *tables, plan);
  const auto cost = cost_of(e, rows);
  const auto rate = experiment::display_of(e).rate;
  plan.unit = rate.unit;
  plan.rate_key = rate.key;
  plan.parameters = cost.parameters;
  setup.parameter_bytes = 4 * double(cost.parameters);
  plan.compress = options.compress.empty() ? e.dist.compress : options.compress;
  setup.gradient_bytes = setup.parameter_bytes / (plan.compress == "none" ? 1 : 2);
  setup.micro_batches = e.train.update_freq;
  setup.cut = experiment::may_cut_micro_batches(e);
  setup.overlap = e.dist.overlap && !e.dist.deterministic;
  const bool measured = !options.run.empty() && !given(options.compute_ms);
  if (!measured || given(options.units)) {
    setup.units = given(options.units) ? options.units : assumed_units(e, plan);
  }
  plan_compute(options, e, cost.training_flops, plan);
  plan_device(options, e, plan);
  if (tables) plan_tables(options, e, *tables, rows, plan);
}

// Without a configuration, what the options say.
void plan_given(const PlanOptions& options, PlanInputs& plan) {
  plan.setup.units = given(options.units) ? options.units : 0;
  plan.compress = options.compress;
  plan.device = options.device;
  plan.setup.bucket_bytes = double(distributed::bucket_bytes_of({}, plan.device == "cuda"));
  if (plan.device.empty() && !given(options.bucket_mb) && options.world_size > 1) {
    plan.assumed.emplace_back("buckets of 2 MiB, as between CPUs (--device, --bucket-mb)");
  }
  plan_compute(options, std::nullopt, 0, plan);
}

// A link as given, with a line for each half of it that was not.
plan::Link link_of(PlanInputs& plan, bool far, double gbit, double microseconds) {
  const plan::Link& otherwise = far ? kLink : kHostLink;
  const std::string between = far ? "between hosts " : "within a host ";
  const double usual_gbit = otherwise.bytes_per_second * 8 / 1e9;
  const double usual_microseconds = otherwise.latency_seconds * 1e6;
  gbit = value_or(
      plan, gbit, usual_gbit,
      between + shortest(usual_gbit) + " Gbit/s (" + (far ? "--link-gbit)" : "--host-gbit)"));
  microseconds = value_or(plan, microseconds, usual_microseconds,
                          between + fixed(usual_microseconds, 0) + " µs a message (" +
                              (far ? "--latency-us)" : "--host-latency-us)"));
  return {.bytes_per_second = gbit * 1e9 / 8, .latency_seconds = microseconds / 1e6};
}

void plan_links(const PlanOptions& options, PlanInputs& plan) {
  auto& setup = plan.setup;
  const bool link_given = given(options.link_gbit) || given(options.latency_us);
  // A link that is described joins hosts of one process, unless hosts have more.
  setup.per_host = options.per_host > 0 ? options.per_host : link_given ? 1 : kPerHost;
  if (options.per_host == 0 && !link_given && options.world_size > kPerHost) {
    plan.assumed.push_back(std::to_string(kPerHost) + " processes on a host (--per-host)");
  }
  if (options.world_size > setup.per_host) {
    setup.between = link_of(plan, true, options.link_gbit, options.latency_us);
  }
  if (setup.per_host > 1 && options.world_size > 1) {
    setup.within = link_of(plan, false, options.host_gbit, options.host_latency_us);
  }
}

plan::Strategy strategy_of(const std::string& name) {
  if (name == "sharded") return plan::Strategy::kSharded;
  if (name == "parameter_server") return plan::Strategy::kParameterServer;
  return plan::Strategy::kAllReduce;
}

// What was given replaces what the configuration says; what it leaves no room for becomes less.
void plan_shares(const PlanOptions& options, plan::Setup& setup) {
  if (given(options.row_mb)) setup.row_bytes = options.row_mb * 1e6;
  if (given(options.first_share)) {
    setup.first_share = options.first_share;
    setup.late_share = std::min(setup.late_share, 1 - setup.first_share);
  }
  if (given(options.late_share)) setup.late_share = options.late_share;
  if (given(options.first_share) && setup.first_share + setup.late_share > 1) {
    throw Error(ExitCode::kUsage, "plan --scaling: --first-share and --late-share are more than 1",
                "what is ready first and what is ready last are parts of one gradient");
  }
  setup.first_share = std::min(setup.first_share, 1 - setup.late_share);
}

}  // namespace

std::optional<Experiment> experiment_of(const PlanOptions& options) {
  if (!options.config.empty()) {
    auto inspection = lint::inspect(options.config, options.overrides, /*processes=*/0,
                                    [](const Experiment& e) { return engine().tensor_names(e); },
                                    {.describe = &interchange::describe_initial_model});
    if (!inspection.problems.empty()) {
      config::throw_problems(problems_as_configuration(options.config));
    }
    config::throw_problems(inspection.problems);  // its data need not be here
    tell_notes(inspection.origins);
    return std::move(inspection.options);
  }
  if (options.run.empty()) return std::nullopt;
  return load_run_config(options.run, {}).options;
}

const experiment::FamilyPlan& plan_of(const Experiment& e) {
  const auto* family = experiment::find_family(e);
  if (family != nullptr && family->plan) return *family->plan;
  throw Error(ExitCode::kUsage, "stretto plan does not know task.name = \"" + e.task.name() + "\"",
              "without a configuration, --compute-ms and --gradient-mb say what it plans");
}

experiment::TableRows rows_of(const PlanOptions& options, const Experiment& e,
                              std::vector<std::string>& assumed) {
  require_tables(options, e);
  const auto& tables = plan_of(e).tables;
  if (!tables) return {};
  PlanInputs plan;
  const auto rows = planned_rows(options, e, *tables, plan);
  assumed.insert(assumed.end(), plan.assumed.begin(), plan.assumed.end());
  return rows;
}

bool trains_on_gpu(const Experiment& e) {
  return e.run.device == "cuda" || e.dist.backend == "nccl" ||
         (e.run.device == "auto" && !search::visible_gpus().empty());
}

models::ModelCost cost_of(const Experiment& e, const experiment::TableRows& rows) {
  engine::CostRequest request{.experiment = e};
  const auto& tables = plan_of(e).tables;
  if (tables) request.sizes = tables->sizes(rows);
  return engine().model_cost(request);
}

PlanInputs plan_inputs(const PlanOptions& options) {
  const auto e = experiment_of(options);
  if (!e && (!given(options.compute_ms) || !given(options.gradient_mb))) {
    throw Error(ExitCode::kUsage, "plan --scaling: nothing says how long a micro-batch takes",
                "name a CONFIG or --run RUN, or give both --compute-ms and --gradient-mb");
  }
  PlanInputs plan;
  auto& setup = plan.setup;
  setup.weak = options.weak || !e;
  setup.strategy = strategy_of(!options.strategy.empty() ? options.strategy
                               : e                       ? e->dist.strategy
                                                         : "all_reduce");
  if (e) {
    plan_model(options, *e, plan);
  } else {
    plan_given(options, plan);
  }
  if (given(options.gradient_mb)) {
    setup.gradient_bytes = options.gradient_mb * 1e6;
    if (!e) setup.parameter_bytes = setup.gradient_bytes;
  }
  if (given(options.bucket_mb)) setup.bucket_bytes = options.bucket_mb * 1e6;
  plan_shares(options, setup);
  if (given(options.optimizer_ms)) setup.optimizer_seconds = options.optimizer_ms / 1e3;
  if (options.micro_batches > 0) setup.micro_batches = options.micro_batches;
  if (options.no_overlap) setup.overlap = false;
  if (options.algorithm == "halving_doubling") {
    setup.algorithm = plan::Algorithm::kHalvingDoubling;
  }
  setup.backward_share = options.backward_share;
  setup.jitter = options.jitter;
  setup.contention = options.contention;
  setup.overlap_cost = options.overlap_cost;
  plan_links(options, plan);
  return plan;
}

}  // namespace stretto::cli
