#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log_silence.h"
#include "base/stdout.h"
#include "base/system_info.h"
#include "base/text.h"
#include "compress/quantise.h"
#include "engine/commands.h"
#include "engine/session.h"
#include "experiment/task_rules.h"
#include "kernels/compute.h"
#include "kernels/gemm/linear_inputs.h"
#include "kernels/kernels.h"
#include "kernels/one_thread.h"
#include "kernels/quantised/quantised.h"
#include "nn/compressed.h"
#include "nn/watch.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/run_folder.h"
#include "store/quantised_file.h"
#include "store/quantised_plan.h"
#include "tasks/family.h"
#include "tasks/registry.h"

namespace stretto::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWorthIt = 1.15;  ///< a gain below that is no reason to choose a precision
constexpr size_t kShownModules = 8;
constexpr int64_t kPeakSize = 1024;  ///< of the matrices by which the machine's rate is measured
constexpr double kPeakSeconds = 0.3;

struct ModuleTime {
  std::string module;
  double share = 0;  ///< of the time of a pass
};

/// A precision, measured.
struct PrecisionSpeed {
  std::string precision;
  double seconds = 0;  ///< of a pass, the median
  int64_t passes = 0;
  double rate = 0;  ///< units in a second
  int64_t bytes = 0;
  double peak = 0;   ///< operations in a second that large products reach
  double share = 0;  ///< of it, by the products of linear maps alone
  std::vector<ModuleTime> modules;
};

int bits_of_precision(const std::string& precision) {
  return precision == "int8" ? 8 : precision == "int4" ? 4 : 0;
}

kernels::Compute compute_of(const std::string& precision) {
  return precision == "bf16" ? kernels::Compute::kBf16 : kernels::Compute::kFp32;
}

// ---------------------------------------------------------------------------------------------
// The model.

/// Where a model comes from: a run, or a configuration, whose model has first weights.
struct Measured {
  const tasks::Family& family;
  experiment::Experiment experiment;  ///< nothing trains: without its teacher
  tasks::Assets assets;
  std::optional<store::LoadedCheckpoint> checkpoint;

  bool is_packed() const { return checkpoint && store::is_packed(checkpoint->file("model")); }
};

Measured open_measured(const BenchRequest& request) {
  const auto& options = request.experiment.options;
  Measured measured{.family = tasks::family_of(options),
                    .experiment = experiment::without_teacher(options),
                    .assets = {},
                    .checkpoint = {}};
  if (request.run_directory.empty()) {
    measured.assets = measured.family.first_assets(request.experiment);
    return measured;
  }
  const auto folder = runs::RunFolder::open(request.run_directory);
  measured.assets = folder.read_assets();
  measured.checkpoint = runs::open_checkpoint(folder.directory(), request.checkpoint);
  return measured;
}

/// Its tensors as a file would have them, a tied one once.
std::vector<store::TensorView> views_of_model(const torch::nn::Module& model) {
  std::vector<store::TensorView> views;
  std::unordered_set<const void*> seen;
  const auto add = [&](const std::string& name, const at::Tensor& values) {
    if (values.scalar_type() != at::kFloat || !values.is_contiguous()) return;
    if (!seen.insert(values.unsafeGetTensorImpl()).second) return;
    const auto* bytes = static_cast<const char*>(values.const_data_ptr());
    views.push_back({name, store::DType::kF32, values.sizes().vec(), {bytes, values.nbytes()}});
  };
  for (const auto& item : model.named_parameters()) add(item.key(), item.value());
  for (const auto& item : model.named_buffers()) {
    if (item.value().defined()) add(item.key(), item.value());
  }
  return views;
}

/// Rounds the model's weights, which become codes wherever a module takes them.
void load_codes(const store::SafetensorsFile& file, const std::string& where, int bits,
                torch::nn::Module& model) {
  store::QuantRequest request;
  request.format.bits = bits;
  const auto plan = store::plan_quantised(file.tensors(), request, where);
  const auto rounded = compress::quantise_model(file, plan, compress::Rounding::kNearest);
  const store::SafetensorsFile packed(rounded.tensors(),
                                      {{std::string(store::kQuantisedKey), rounded.metadata()}});
  runs::load_weights(packed, where, model, "", runs::PackedAs::kCodes);
}

std::unique_ptr<tasks::FamilyTask> task_in(const Measured& measured, const std::string& precision) {
  auto task = measured.family.make_task(measured.experiment, measured.assets,
                                        {.group = {}, .device = at::kCPU});
  if (!task->can_validate()) {
    throw Error(ExitCode::kUsage, "there is no validation data to measure with",
                "name some in [data] of the configuration");
  }
  auto& model = task->model();
  const int bits = bits_of_precision(precision);
  if (!measured.checkpoint) {
    if (bits == 0) return task;
    const store::SafetensorsFile file(views_of_model(model));
    load_codes(file, "the model", bits, model);
  } else if (bits > 0) {
    const auto where = measured.checkpoint->directory / "model.safetensors";
    load_codes(measured.checkpoint->file("model"), where.string(), bits, model);
  } else if (precision == "stored") {
    runs::load_weights(*measured.checkpoint, model, "",
                       runs::packed_as(measured.experiment.run.packed_weights));
  } else {
    const log::Silence silence;  // of what is packed, `stored` tells
    runs::load_weights(*measured.checkpoint, model, "", runs::PackedAs::kNumbers);
  }
  return task;
}

/// Those that are measured. Throws Error(kUsage) for one that this model or processor has not.
std::vector<std::string> precisions_of(const BenchRequest& request, const Measured& measured) {
  std::vector<std::string> known{"fp32"};
  if (kernels::has_fast_bf16()) known.emplace_back("bf16");
  if (measured.is_packed()) {
    known.emplace_back("stored");
  } else {
    known.emplace_back("int8");
    known.emplace_back("int4");
  }
  if (request.precisions.empty()) return known;
  // A run that is not packed is stored as numbers, which may be said of it too.
  if (measured.checkpoint && !measured.is_packed()) known.emplace_back("stored");
  for (const auto& asked : request.precisions) {
    if (std::ranges::count(known, asked) > 0) continue;
    throw Error(ExitCode::kUsage, "there is no " + asked + " to be measured here",
                "this model on this processor has " + join(known, ", "));
  }
  return request.precisions;
}

// ---------------------------------------------------------------------------------------------
// Measuring. A pass is a validation.

train::Validation pass_of(train::Task& task, const std::string& precision) {
  task.model().eval();
  const at::NoGradGuard no_grad;
  const kernels::ComputeScope arithmetic(compute_of(precision));
  return task.validate();
}

/// Time from each module's output to that of the module before it, on one thread.
std::vector<ModuleTime> time_by_module(train::Task& task, const std::string& precision) {
  const kernels::OneThreadScope one_thread;
  std::map<std::string, double> seconds;
  auto last = Clock::now();
  double sum = 0;
  {
    const nn::WatchScope watching(task.model(), [&](const nn::Watched& watched) {
      const auto now = Clock::now();
      const double spent = std::chrono::duration<double>(now - last).count();
      seconds[watched.module] += spent;
      sum += spent;
      last = now;
    });
    pass_of(task, precision);
  }
  std::vector<ModuleTime> modules;
  for (const auto& [module, spent] : seconds)
    modules.push_back({module, sum > 0 ? spent / sum : 0});
  std::ranges::stable_sort(modules, [](const auto& a, const auto& b) { return a.share > b.share; });
  return modules;
}

double best_rate(double operations, const std::function<void()>& product) {
  product();  // pages and threads are there now
  double best = 0;
  for (const auto began = Clock::now(); seconds_since(began) < kPeakSeconds;) {
    const auto start = Clock::now();
    product();
    best = std::max(best, operations / seconds_since(start));
  }
  return best;
}

/// Operations in a second that large products of this precision reach here.
double peak_of(const std::string& precision, int stored_bits) {
  const at::NoGradGuard no_grad;
  const kernels::ComputeScope arithmetic(compute_of(precision));
  const at::Tensor x = at::randn({kPeakSize, kPeakSize}),
                   weight = at::randn({kPeakSize, kPeakSize});
  const double operations = 2.0 * static_cast<double>(kPeakSize * kPeakSize * kPeakSize);
  const int bits = precision == "stored" ? stored_bits : bits_of_precision(precision);
  if (bits == 0) return best_rate(operations, [&] { kernels::linear(x, weight); });
  const int64_t half = int64_t{1} << (bits - 1);
  kernels::QuantisedWeights codes;
  codes.bits = bits;
  codes.codes = (weight.clamp(-1, 1) * static_cast<double>(half - 1)).to(at::kChar);
  codes.scales = at::ones({kPeakSize, 1});
  const kernels::QuantisedMatrix matrix(codes);
  return best_rate(operations, [&] { kernels::quantised_linear(x, matrix); });
}

/// The bits of a packed run's products, by its first tensor; 0 where they are numbers here.
int stored_bits_of(const Measured& measured) {
  if (!measured.is_packed()) return 0;
  const store::QuantisedTensors packed(measured.checkpoint->file("model"), "the run");
  if (packed.tensors().empty()) return 0;
  const auto& format = packed.tensors().begin()->second.format;
  const int bits = static_cast<int>(format.bits);
  return kernels::quantised_is_faster(bits, format.group_size) ? bits : 0;
}

int64_t units_of(const train::Validation& validation, const std::string& unit) {
  const auto found = validation.counts.find(unit);
  return found == validation.counts.end() ? 0 : found->second;
}

/// What a pass has to do.
struct Workload {
  std::string unit;       ///< what is counted: the first of the family's counters that it has
  double operations = 0;  ///< of the products of linear maps; 0 where none of them is told
};

Workload workload_of(const Measured& measured) {
  const auto task = task_in(measured, "fp32");
  const kernels::OneThreadScope one_thread;
  Workload work;
  const kernels::LinearInputsScope told([&](const at::Tensor& x, const at::Tensor& weight) {
    work.operations += 2.0 * static_cast<double>(x.size(0)) * static_cast<double>(weight.numel());
  });
  const auto validation = pass_of(*task, "fp32");
  for (const auto& name : task->counters()) {
    if (work.unit.empty() && units_of(validation, name) > 0) work.unit = name;
  }
  for (const auto& [name, count] : validation.counts) {
    if (work.unit.empty() && count > 0) work.unit = name;
  }
  if (work.unit.empty()) {
    throw Error(ExitCode::kUsage, "a validation counts nothing by which speed could be told",
                "name validation data that have samples");
  }
  return work;
}

PrecisionSpeed measure(const Measured& measured, const std::string& precision,
                       const BenchRequest& request, const Workload& work) {
  const auto task = task_in(measured, precision);
  PrecisionSpeed speed;
  speed.precision = precision;
  speed.bytes = nn::bytes_in_memory(task->model());
  speed.modules = time_by_module(*task, precision);
  pass_of(*task, precision);  // with all threads, for what is made once
  std::vector<double> seconds;
  int64_t units = 0;
  for (const auto began = Clock::now();
       seconds.empty() || seconds_since(began) < request.seconds;) {
    const auto start = Clock::now();
    units = units_of(pass_of(*task, precision), work.unit);
    seconds.push_back(seconds_since(start));
  }
  std::ranges::sort(seconds);
  speed.passes = std::ssize(seconds);
  speed.seconds = seconds[seconds.size() / 2];
  speed.rate = static_cast<double>(units) / speed.seconds;
  speed.peak = peak_of(precision, stored_bits_of(measured));
  speed.share = work.operations / speed.seconds / speed.peak;
  return speed;
}

// ---------------------------------------------------------------------------------------------
// What people and programs see.

double gain_of(const PrecisionSpeed& speed, const std::vector<PrecisionSpeed>& all) {
  const auto plain = std::ranges::find(all, "fp32", &PrecisionSpeed::precision);
  return plain == all.end() || plain->rate <= 0 ? 0 : speed.rate / plain->rate;
}

nlohmann::ordered_json bench_json(const std::string& place, const std::string& unit,
                                  const std::vector<PrecisionSpeed>& speeds) {
  auto out = nlohmann::ordered_json::object();
  out["model"] = place;
  out["processor"] = cpu_info().model;
  out["threads"] = at::get_num_threads();
  out["unit"] = unit;
  out["precisions"] = nlohmann::ordered_json::array();
  for (const auto& speed : speeds) {
    auto one = nlohmann::ordered_json::object();
    one["precision"] = speed.precision;
    one["rate"] = speed.rate;
    one["seconds"] = speed.seconds;
    one["passes"] = speed.passes;
    one["memory_bytes"] = speed.bytes;
    const double gain = gain_of(speed, speeds);
    one["gain"] = gain > 0 ? nlohmann::ordered_json(gain) : nlohmann::ordered_json();
    one["peak_operations"] = speed.peak;
    one["peak_share"] = speed.share;
    one["modules"] = nlohmann::ordered_json::array();
    for (const auto& module : speed.modules) {
      auto entry = nlohmann::ordered_json::object();
      entry["module"] = module.module;
      entry["share"] = module.share;
      one["modules"].push_back(std::move(entry));
    }
    out["precisions"].push_back(std::move(one));
  }
  return out;
}

void print_speed(const PrecisionSpeed& speed, const std::vector<PrecisionSpeed>& all,
                 const std::string& unit) {
  std::cout << speed.precision << ": " << fixed(speed.rate, 1) << " " << unit << "/s";
  const double gain = gain_of(speed, all);
  if (gain > 0 && speed.precision != "fp32") {
    std::cout << ", " << fixed(gain, 2) << " times fp32";
    const bool is_smaller = speed.precision != "bf16";  // which rounds on the way
    if (gain < kWorthIt) std::cout << (is_smaller ? " (it saves memory, not time)" : " (no gain)");
  }
  std::cout << ", " << human_bytes(static_cast<uint64_t>(speed.bytes)) << " in memory";
  if (speed.share > 0) {
    std::cout << ", linear maps at " << percent_text(speed.share) << " of "
              << fixed(speed.peak / 1e9, 1) << " Gop/s";
  }
  std::cout << "\n";
  for (size_t i = 0; i < std::min(kShownModules, speed.modules.size()); ++i) {
    std::cout << "  " << percent_text(speed.modules[i].share) << "  "
              << shown_on_stdout(speed.modules[i].module) << "\n";
  }
}

}  // namespace

int run_bench(const BenchRequest& request) {
  prepare_process(request.experiment.options);
  const auto measured = open_measured(request);
  const auto precisions = precisions_of(request, measured);
  const Workload work = workload_of(measured);
  std::vector<PrecisionSpeed> speeds;
  for (const auto& precision : precisions) {
    speeds.push_back(measure(measured, precision, request, work));
  }
  const std::string place =
      request.run_directory.empty() ? request.experiment.options.run.name : request.run_directory;
  if (request.json) {
    std::cout << bench_json(place, work.unit, speeds).dump() << std::endl;
    return 0;
  }
  std::cout << shown_on_stdout(cpu_info().model) << ", " << counted(at::get_num_threads(), "thread")
            << "; a pass is a validation\n";
  for (const auto& speed : speeds) print_speed(speed, speeds, work.unit);
  std::cout << std::flush;
  return 0;
}

}  // namespace stretto::engine
