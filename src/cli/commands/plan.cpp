#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/plan_budget.h"
#include "cli/plan_inputs.h"
#include "plan/published.h"

namespace stretto::cli {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const plan::Prediction& p, const std::string& rate_key) {
  Json json{{"processes", p.processes},
            {"compute_seconds", p.compute_seconds},
            {"communication_seconds", p.communication_seconds},
            {"buckets", p.buckets},
            {"latency_seconds", p.latency_seconds},
            {"exposed_seconds", p.exposed_seconds},
            {"step_seconds", p.step_seconds},
            {"limit_seconds", p.limit_seconds},
            {"speedup", p.speedup},
            {"efficiency", p.efficiency}};
  if (p.units_per_second > 0) json[rate_key] = p.units_per_second;
  return json;
}

std::string strategy_name(plan::Strategy strategy) {
  switch (strategy) {
    case plan::Strategy::kSharded:
      return "sharded";
    case plan::Strategy::kParameterServer:
      return "parameter_server";
    case plan::Strategy::kAllReduce:
      break;
  }
  return "all_reduce";
}

std::string algorithm_name(plan::Algorithm algorithm) {
  return algorithm == plan::Algorithm::kRing ? "ring" : "halving_doubling";
}

// "audio_seconds_per_micro_batch"
std::string key_of_micro_batch(std::string unit) {
  std::ranges::replace(unit, ' ', '_');
  return unit + "_per_micro_batch";
}

Json inputs_json(const PlanInputs& plan) {
  const auto& s = plan.setup;
  Json json{{"compute_seconds", s.compute_seconds},
            {"compute_source", plan.compute_source},
            {"optimizer_seconds", s.optimizer_seconds},
            {key_of_micro_batch(plan.unit), s.units},
            {"micro_batches", s.micro_batches},
            {"weak", s.weak},
            {"gradient_bytes", s.gradient_bytes},
            {"bucket_bytes", s.bucket_bytes},
            {"first_share", s.first_share},
            {"late_share", s.late_share},
            {"row_bytes", s.row_bytes},
            {"strategy", strategy_name(s.strategy)},
            {"algorithm", algorithm_name(s.algorithm)},
            {"overlap", s.overlap},
            {"per_host", s.per_host},
            {"host_bytes_per_second", s.within.bytes_per_second},
            {"host_latency_seconds", s.within.latency_seconds},
            {"link_bytes_per_second", s.between.bytes_per_second},
            {"link_latency_seconds", s.between.latency_seconds},
            {"backward_share", s.backward_share},
            {"jitter", s.jitter},
            {"contention", s.contention},
            {"overlap_cost", s.overlap_cost}};
  if (plan.parameters > 0) json["parameters"] = plan.parameters;
  if (!plan.compress.empty()) json["compress"] = plan.compress;
  if (!plan.device.empty()) json["device"] = plan.device;
  return json;
}

void print_plan_json(const PlanInputs& plan, const std::vector<plan::Prediction>& sizes) {
  Json json{{"world_size", sizes.back().processes}};
  const Json last = as_json(sizes.back(), plan.rate_key);
  for (const auto& [name, value] : last.items()) {
    if (name != "processes") json[name] = value;
  }
  json["inputs"] = inputs_json(plan);
  json["assumed"] = plan.assumed;
  json["sizes"] = Json::array();
  for (const auto& size : sizes) json["sizes"].push_back(as_json(size, plan.rate_key));
  std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

std::string cell(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string milliseconds(double seconds) {
  const double ms = seconds * 1e3;
  return fixed(ms, ms < 10 ? 2 : ms < 1000 ? 1 : 0);
}

// The rate is in the unit of the family.
void print_sizes(const std::string& unit, const std::vector<plan::Prediction>& sizes) {
  const std::string rate = unit + "/s";
  const size_t rate_width = std::max<size_t>(12, rate.size() + 2);
  std::cout << "\nprocesses  compute ms    comm. ms  exposed ms     step ms"
            << cell(rate, rate_width) << "  speed-up  efficiency\n";
  for (const auto& p : sizes) {
    const std::string speed =
        p.units_per_second > 0 ? with_thousands(std::llround(p.units_per_second)) : "-";
    std::cout << cell(with_thousands(p.processes), 9) << cell(milliseconds(p.compute_seconds), 12)
              << cell(milliseconds(p.communication_seconds), 12)
              << cell(milliseconds(p.exposed_seconds), 12) << cell(milliseconds(p.step_seconds), 12)
              << cell(speed, rate_width) << cell(fixed(p.speedup, 2), 10)
              << cell(fixed(100 * p.efficiency, 1) + " %", 12) << "\n";
  }
}

void print_plan_text(const PlanInputs& plan, const std::vector<plan::Prediction>& sizes) {
  const auto& s = plan.setup;
  if (plan.parameters > 0) {
    std::cout << counted(plan.parameters, "parameter") << "; ";
  }
  std::cout << human_bytes(static_cast<uint64_t>(s.gradient_bytes)) << " of gradients an update\n"
            << milliseconds(s.compute_seconds) << " ms a micro-batch, " << plan.compute_source
            << "\n"
            << counted(s.micro_batches, "micro-batch") << " an update"
            << (s.weak ? " and process" : "") << "\n"
            << strategy_name(s.strategy);
  if (s.strategy != plan::Strategy::kParameterServer) {
    std::cout << (s.algorithm == plan::Algorithm::kRing ? " as a ring"
                                                        : " by halving and doubling");
  }
  std::cout << (s.overlap ? ", while backward runs" : ", after backward") << "\n";
  for (const auto& line : plan.assumed) std::cout << "assumed: " << line << "\n";
  if (!s.weak && !s.cut && sizes.back().processes > s.micro_batches) {
    std::cout << "more processes than micro-batches stand idle, since with batch norm or "
                 "dist.deterministic none is cut: raise train.update_freq, or see --weak\n";
  }
  print_sizes(plan.unit, sizes);
  if (const auto& most = sizes.back(); plan::mostly_latency(most)) {
    std::cout << "\non " << counted(most.processes, "process")
              << " most of the communication is latency of " << counted(most.buckets, "bucket")
              << ": a larger dist.bucket_bytes would help (--bucket-mb)\n";
  }
}

int run_plan(const PlanOptions& options) {
  if (options.published) {
    std::cout << plan::published_table();
    return 0;
  }
  if (options.scaling && !std::isnan(options.hours)) {
    throw Error(ExitCode::kUsage, "plan: --scaling and --hours are two plans",
                "--hours takes --gpus N, and times updates of N processes as --scaling does");
  }
  if (!std::isnan(options.hours)) {
    print_budget_plan(make_budget_plan(options), options.json);
    return 0;
  }
  if (!options.scaling) {
    throw Error(ExitCode::kUsage, "plan: say what to plan",
                "`stretto plan --hours H CONFIG`, `stretto plan --scaling CONFIG --world-size N`, "
                "or --published");
  }
  if (options.world_size == 0) {
    throw Error(ExitCode::kUsage, "plan --scaling: --world-size is missing",
                "give the largest number of processes that you think of");
  }
  const PlanInputs plan = plan_inputs(options);
  const auto sizes = plan::predict_up_to(plan.setup, options.world_size);
  options.json ? print_plan_json(plan, sizes) : print_plan_text(plan, sizes);
  return 0;
}

void add_number(CLI::App& app, const char* name, double& value, const char* help,
                const char* type = "X") {
  app.add_option(name, value, help)->check(number_between(0, 1e15))->type_name(type);
}

void add_share(CLI::App& app, const char* name, double& value, const char* help) {
  app.add_option(name, value, help)->check(number_between(0, 1))->type_name("X");
}

void add_work(CLI::App& app, PlanOptions& o) {
  app.add_option("--run", o.run, "take the speed from this run of one process")->type_name("RUN");
  add_number(app, "--compute-ms", o.compute_ms, "forward and backward of one micro-batch");
  add_number(app, "--optimizer-ms", o.optimizer_ms, "one step of the optimizer");
  add_number(app, "--gflops", o.gflops, "operations a second of a process; default 50");
  add_number(app, "--tokens,--units", o.units,
             "work of a micro-batch in the unit of the task's speed: tokens, of translation those "
             "of the target, or another such as images");
  app.add_option("--micro-batches", o.micro_batches, "of an update; default train.update_freq")
      ->check(whole_number(1, 1'000'000'000))
      ->type_name("N");
  app.add_flag("--weak", o.weak, "each process has that many: the batch grows with processes");
  app.add_option("--vocab-rows", o.vocab_rows, "rows of the embedding tables")
      ->check(whole_number(1, 100'000'000))
      ->type_name("N");
  add_share(app, "--backward-share", o.backward_share, "of a micro-batch's time; default 2/3");
  add_number(app, "--jitter", o.jitter, "deviation over mean of a micro-batch's time; default 0");
  add_number(app, "--contention", o.contention,
             "slowdown by each other process of the host; default 0");
}

void add_budget(CLI::App& app, PlanOptions& o) {
  add_number(app, "--hours", o.hours,
             "how to spend so many hours of training: which size, batch, rate and number of "
             "updates; trains a few sizes for a minute first");
  app.add_option("--gpus,--processes", o.processes, "that train together; default 1")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  add_number(app, "--deploy-mb", o.deploy_mb, "what the compressed model may take, 10^6 bytes");
  add_number(app, "--deploy-ms", o.deploy_ms,
             "in which it has to answer, in fp32, on this machine");
  add_number(app, "--deploy-units", o.deploy_units,
             "work of an answer, in the unit of the task's speed; default 32");
  add_number(app, "--memory-gb", o.memory_gb,
             "of a process while it trains, 10^9 bytes; default this machine's");
  add_number(app, "--measure-seconds", o.measure_seconds,
             "for which sizes are trained to measure them, together; default 60; 0 = none is");
  app.add_option("--measured", o.measured,
                 "a run of one process that counts as measured; repeat it")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("RUN");
  app.add_option("--size", o.sizes,
                 "\"KEY=VALUE KEY=VALUE\": a size to choose from, instead of widths and depths; "
                 "repeat it")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("KEYS");
  app.add_option("--dir", o.directory,
                 "of what is trained to be measured; default "
                 "runs/plan_CONFIG")
      ->type_name("DIR");
}

void add_network(CLI::App& app, PlanOptions& o) {
  add_number(app, "--gradient-mb", o.gradient_mb, "gradients as sent, 10^6 bytes");
  app.add_option("--bucket-mb", o.bucket_mb, "10^6 bytes; default dist.bucket_bytes, by --device")
      ->check(number_between(1e-3, 1e9))
      ->type_name("X");
  add_share(app, "--first-share", o.first_share, "of the gradients, ready when backward begins");
  add_share(app, "--late-share", o.late_share, "of the gradients, ready only after backward");
  add_number(app, "--row-mb", o.row_mb, "looked-up rows of a process, sent last, 10^6 bytes");
  app.add_option("--device", o.device, "cpu or cuda; default run.device, auto = cpu")
      ->check(one_of({"cpu", "cuda"}))
      ->type_name("NAME");
  app.add_flag("--no-overlap", o.no_overlap, "send after backward");
  add_number(app, "--overlap-cost", o.overlap_cost,
             "compute lost per second of hidden communication; default 0");
  app.add_option("--strategy", o.strategy, "all_reduce, sharded or parameter_server")
      ->check(one_of({"all_reduce", "sharded", "parameter_server"}))
      ->type_name("NAME");
  app.add_option("--compress", o.compress, "none, bf16 or fp16")
      ->check(one_of({"none", "bf16", "fp16"}))
      ->type_name("NAME");
  app.add_option("--algorithm", o.algorithm, "ring or halving_doubling; default ring")
      ->check(one_of({"ring", "halving_doubling"}))
      ->type_name("NAME");
  app.add_option("--per-host", o.per_host, "processes of a host; 1 with a link, else 8")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  add_number(app, "--link-gbit", o.link_gbit, "speed between hosts, as measured; default 10");
  add_number(app, "--latency-us", o.latency_us, "of a message between hosts; default 50");
  add_number(app, "--host-gbit", o.host_gbit, "speed within a host; default 40");
  add_number(app, "--host-latency-us", o.host_latency_us, "within a host; default 5");
}

}  // namespace

std::function<int()> declare_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  app.add_option("CONFIG", options->config, "configuration file")->type_name("");
  app.add_option("key=value", options->overrides, "keys that replace those of the file")
      ->type_name("");
  app.add_flag("--scaling", options->scaling, "time of an update on 1 to N processes");
  app.add_option("--world-size", options->world_size, "largest number of processes")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  add_budget(app, *options);
  add_work(app, *options);
  add_network(app, *options);
  app.add_flag("--published", options->published,
               "print what the model says about figures that others measured");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run_plan(*options); };
}

}  // namespace stretto::cli
