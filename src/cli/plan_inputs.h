#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/family_plan.h"
#include "models/model_cost.h"
#include "plan/scaling.h"

namespace stretto::cli {

/// What the words after `stretto plan` said; NaN = not given.
struct PlanOptions {
  std::string config, run, strategy, compress, device, algorithm = "ring";
  std::vector<std::string> overrides;
  int64_t world_size = 0, per_host = 0, micro_batches = 0, vocab_rows = 0;
  double compute_ms = NAN, optimizer_ms = NAN, gflops = NAN, units = NAN, gradient_mb = NAN,
         bucket_mb = NAN, link_gbit = NAN, latency_us = NAN, host_gbit = NAN, host_latency_us = NAN,
         first_share = NAN, late_share = NAN, row_mb = NAN;
  double backward_share = 2.0 / 3, jitter = 0, contention = 0, overlap_cost = 0;
  bool scaling = false, weak = false, no_overlap = false, published = false, json = false;

  // of a budget
  double hours = NAN, deploy_mb = NAN, deploy_ms = NAN, memory_gb = NAN;
  double deploy_units = 32, measure_seconds = 60;
  int64_t processes = 1;
  std::string directory;              ///< of what is measured
  std::vector<std::string> measured;  ///< runs that were trained before
  std::vector<std::string> sizes;     ///< "KEY=VALUE KEY=VALUE": instead of widths and depths
};

/// The inputs of the model, with a line for each that was not given.
struct PlanInputs {
  plan::Setup setup;
  int64_t parameters = 0;
  std::string compute_source;
  std::string device, compress;  ///< "" = not known, without a configuration
  /// What setup.units and the throughput count: "audio seconds", and its key in metrics.jsonl.
  std::string unit = "tokens", rate_key = "tokens_per_second";
  std::vector<std::string> assumed;
};

/// What the family says of itself. Throws Error(kUsage) where no plan can be made of it.
const experiment::FamilyPlan& plan_of(const experiment::Experiment& e);

/// The configuration, whose data need not be here, or that of `run`; nothing where neither is
/// named. Throws its problems.
std::optional<experiment::Experiment> experiment_of(const PlanOptions& options);

/// Rows of the embedding tables of its models, all 0 where they have none; a line for each that is
/// assumed. May read the text.
experiment::TableRows rows_of(const PlanOptions& options, const experiment::Experiment& e,
                              std::vector<std::string>& assumed);

/// Whether it would train on a GPU here.
bool trains_on_gpu(const experiment::Experiment& e);

/// Asks the engine.
models::ModelCost cost_of(const experiment::Experiment& e, const experiment::TableRows& rows);

/// Brings together configuration, run, options and, where none of them says anything, assumptions.
/// Opens the engine for the model of a configuration or run. Throws Error(kUsage) when nothing says
/// how long a micro-batch takes.
PlanInputs plan_inputs(const PlanOptions& options);

}  // namespace stretto::cli
