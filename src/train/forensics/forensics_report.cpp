#include "train/forensics/forensics_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "runs/checkpoint_tensors.h"
#include "runs/stored_targets.h"
#include "store/safetensors.h"

namespace stretto::train {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kFormat = "stretto forensics";
constexpr int64_t kVersion = 1;
constexpr size_t kMaxReportBytes = size_t{64} << 20;
constexpr size_t kLossScalesKept = 100;

template <class Value>
struct Named {
  Value value;
  const char* name;
};

constexpr Named<TensorKind> kKinds[] = {{TensorKind::kNone, "none"},
                                        {TensorKind::kOutput, "output"},
                                        {TensorKind::kOutputGradient, "output_gradient"},
                                        {TensorKind::kParameterGradient, "parameter_gradient"},
                                        {TensorKind::kSum, "sum_of_gradients"}};
constexpr Named<kernels::Compute> kComputes[] = {{kernels::Compute::kFp32, "fp32"},
                                                 {kernels::Compute::kTf32, "tf32"},
                                                 {kernels::Compute::kBf16, "bf16"},
                                                 {kernels::Compute::kFp16, "fp16"}};

template <class Value, size_t kCount>
const char* name_in(const Named<Value> (&table)[kCount], Value value) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

template <class Value, size_t kCount>
Value value_in(const Named<Value> (&table)[kCount], const std::string& name,
               const std::string& where) {
  for (const auto& entry : table) {
    if (name == entry.name) return entry.value;
  }
  throw Error(ExitCode::kBadData, where + ": unknown value `" + name + "`",
              "the report was written by a later version or is damaged");
}

// JSON has no infinity and no NaN: nlohmann writes null for both.
double number_or_nan(const nlohmann::json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

Json micro_batches_json(const NonfiniteReport& report, const UpdateRecord& record) {
  TORCH_CHECK(record.positions.size() == report.micro_batches.size(), "[forensics] ",
              record.positions.size(), " positions of ", report.micro_batches.size(),
              " micro-batches");
  Json list = Json::array();
  for (size_t i = 0; i < report.micro_batches.size(); ++i) {
    const auto& found = report.micro_batches[i];
    Json entry{{"epoch", record.positions[i].epoch}, {"index", record.positions[i].index}};
    entry["finite"] = found.finite;
    entry["loss_sum"] = found.loss_sum;
    entry["sample_ids"] = found.sample_ids;
    list.push_back(std::move(entry));
  }
  return list;
}

Json peaks_json(const std::vector<GradientPeak>& peaks) {
  Json list = Json::array();
  for (const auto& peak : peaks) {
    list.push_back(
        {{"name", peak.name}, {"max_abs", peak.max_abs}, {"num_nonfinite", peak.num_nonfinite}});
  }
  return list;
}

std::vector<GradientPeak> parse_peaks(const nlohmann::json& list) {
  std::vector<GradientPeak> peaks;
  for (const auto& entry : list) {
    peaks.push_back({.name = entry.at("name").get<std::string>(),
                     .max_abs = entry.at("max_abs").get<double>(),
                     .num_nonfinite = entry.at("num_nonfinite").get<int64_t>()});
  }
  return peaks;
}

NonfiniteReport parse_findings(const nlohmann::json& json, const std::string& where) {
  NonfiniteReport report;
  report.context = {.seed = json.at("seed").get<uint64_t>(),
                    .update = json.at("step").get<int64_t>() - 1};
  report.loss_scale = json.at("loss_scale").get<double>();
  report.compute = value_in(kComputes, json.at("precision").get<std::string>(), where);
  const auto& first = json.at("first");
  report.first = {.kind = value_in(kKinds, first.at("kind").get<std::string>(), where),
                  .name = first.at("name").get<std::string>(),
                  .last_finite = first.at("last_finite").get<std::string>()};
  for (const auto& entry : json.at("nonfinite_weights")) {
    report.weights.push_back(
        {.name = entry.at("name").get<std::string>(), .count = entry.at("count").get<int64_t>()});
  }
  report.gradients = parse_peaks(json.at("largest_gradients"));
  // Reports of earlier versions have neither; those of one loss have no divisors.
  report.divisors = json.value("divisors", std::vector<double>());
  if (const auto layers = json.find("layer_gradients"); layers != json.end()) {
    report.layers = parse_peaks(*layers);
  }
  for (const auto& entry : json.at("micro_batches")) {
    report.micro_batches.push_back(
        {.sample_ids = entry.at("sample_ids").get<std::vector<int64_t>>(),
         .loss_sum = number_or_nan(entry.at("loss_sum")),
         .finite = entry.at("finite").get<bool>()});
  }
  report.micro_batch = json.at("micro_batch").get<int64_t>();
  report.samples = json.at("samples").get<std::vector<int64_t>>();
  return report;
}

UpdateRecord parse_record(const nlohmann::json& json) {
  UpdateRecord record{.run_id = json.at("run_id").get<std::string>(),
                      .config_hash = json.at("config_hash").get<std::string>(),
                      .step = json.at("step").get<int64_t>(),
                      .rank = json.at("rank").get<int64_t>(),
                      .world_size = json.at("world_size").get<int64_t>(),
                      .positions = {},
                      .lr = json.at("lr").get<double>(),
                      .checkpoint = json.at("checkpoint").get<std::string>(),
                      .loss_scales = json.at("loss_scales").get<std::vector<double>>(),
                      .device = json.at("device").get<std::string>()};
  // Reports of earlier versions have none of these.
  if (const auto tokenizer = json.find("tokenizer"); tokenizer != json.end()) {
    record.tokenizer = tokenizer->get<std::map<std::string, std::string>>();
  }
  record.weights_hash = json.value("weights_hash", "");
  record.updates = json.value("updates", int64_t{-1});
  if (const auto scaler = json.find("loss_scaler"); scaler != json.end()) {
    record.scaler = {.name = scaler->at("name").get<std::string>(),
                     .next = number_or_nan(scaler->at("next"))};
  }
  for (const auto& entry : json.at("micro_batches")) {
    record.positions.push_back(
        {.epoch = entry.at("epoch").get<int64_t>(), .index = entry.at("index").get<int64_t>()});
  }
  return record;
}

std::string stem_of(int64_t step) {
  char text[64];
  std::snprintf(text, sizeof text, "step_%08lld", static_cast<long long>(step));
  return text;
}

// Everything about one step: step_00000123.json, .rank2.json, .safetensors.
std::vector<fs::path> files_of(const fs::path& folder, const std::string& stem) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    if (entry->path().filename().string().starts_with(stem + ".")) files.push_back(entry->path());
  }
  if (failure) throw_io_error("read", folder, failure.value());
  std::sort(files.begin(), files.end());
  return files;
}

// step_00000123, or behind another try at that step, as after a rollback, step_00000123-2.
std::string free_stem(const fs::path& folder, int64_t step) {
  for (int64_t number = 1;; ++number) {
    const std::string stem = stem_of(step) + (number > 1 ? "-" + std::to_string(number) : "");
    if (files_of(folder, stem).empty()) return stem;
  }
}

void write_tensors(const fs::path& path, const std::vector<store::TensorView>& tensors) {
  const fs::path unfinished = path.parent_path() / (".tmp-" + path.filename().string());
  std::error_code failure;
  fs::remove(unfinished, failure);
  try {
    store::write_safetensors(unfinished, tensors, {{"format", "pt"}});
    rename_path(unfinished, path);
  } catch (const Error&) {
    fs::remove(unfinished, failure);
    throw;
  }
  fsync_directory(path.parent_path());
}

void write_weights(const fs::path& path, const optim::Arena& arena) {
  runs::Snapshot snapshot;
  snapshot.take(arena, {}, runs::Snapshot::Bytes::kBorrowed);
  for (const auto& [stem, tensors] : snapshot.files()) {
    if (stem == "model") write_tensors(path, tensors);
  }
}

void write_carry(const fs::path& path, const std::vector<parallel::LaneState>& carry) {
  std::vector<at::Tensor> hosts;
  std::vector<store::TensorView> tensors;
  for (const auto& state : carry) {
    const at::Tensor& host = hosts.emplace_back(state.values.cpu().contiguous());
    tensors.push_back({state.name,
                       store::DType::kF32,
                       host.sizes().vec(),
                       {static_cast<const char*>(host.const_data_ptr()), host.nbytes()}});
  }
  write_tensors(path, tensors);
}

}  // namespace

std::string compute_name(kernels::Compute compute) {
  return name_in(kComputes, compute);
}

std::string weights_name(int64_t step) {
  return stem_of(step) + ".safetensors";
}

std::string report_to_json(const NonfiniteReport& report, const UpdateRecord& record,
                           const std::string& weights) {
  Json json{{"format", kFormat},
            {"version", kVersion},
            {"run_id", record.run_id},
            {"config_hash", record.config_hash},
            {"step", record.step},
            {"seed", report.context.seed},
            {"rank", record.rank},
            {"world_size", record.world_size},
            {"device", record.device},
            {"precision", compute_name(report.compute)},
            {"loss_scale", report.loss_scale},
            {"loss_scales", record.loss_scales},
            {"loss_scaler", {{"name", record.scaler.name}, {"next", record.scaler.next}}},
            {"lr", record.lr},
            {"checkpoint", record.checkpoint},
            {"weights", weights},
            {"weights_hash", record.weights_hash},
            {"tokenizer", record.tokenizer}};
  // Only the newest of a longer history.
  const auto& scales = record.loss_scales;
  if (scales.size() > kLossScalesKept) {
    json["loss_scales"] = std::vector<double>(scales.end() - kLossScalesKept, scales.end());
  }
  json["first"] = {{"kind", name_in(kKinds, report.first.kind)},
                   {"name", report.first.name},
                   {"last_finite", report.first.last_finite}};
  if (record.updates >= 0) json["updates"] = record.updates;
  if (!report.divisors.empty()) json["divisors"] = report.divisors;
  json["micro_batch"] = report.micro_batch;
  json["samples"] = report.samples;
  json["nonfinite_weights"] = Json::array();
  for (const auto& weight : report.weights) {
    json["nonfinite_weights"].push_back({{"name", weight.name}, {"count", weight.count}});
  }
  json["largest_gradients"] = peaks_json(report.gradients);
  json["layer_gradients"] = peaks_json(report.layers);
  json["micro_batches"] = micro_batches_json(report, record);
  return json.dump(2) + "\n";
}

std::vector<fs::path> write_reports(const fs::path& run_directory, int64_t step,
                                    const std::vector<ReportText>& reports,
                                    const optim::Arena& arena,
                                    const std::vector<parallel::LaneState>& carry) {
  const fs::path folder = run_directory / "forensics";
  make_directories(folder);
  const std::string stem = free_stem(folder, step);
  const std::string weights = stem + ".safetensors";
  write_weights(folder / weights, arena);
  const std::string state = carry.empty() ? "" : stem + ".carry.safetensors";
  if (!carry.empty()) write_carry(folder / state, carry);
  std::vector<fs::path> files;
  for (const auto& report : reports) {
    const std::string rank = report.rank > 0 ? ".rank" + std::to_string(report.rank) : "";
    files.push_back(folder / (stem + rank + ".json"));
    Json json = Json::parse(report.json);
    json["weights"] = weights;
    if (!carry.empty()) json["carry"] = state;
    write_file_atomic(files.back(), json.dump(2) + "\n");
  }
  return files;
}

std::vector<fs::path> reports_beside(const fs::path& file) {
  const std::string name = file.filename().string();
  const fs::path folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  auto files = files_of(folder, name.substr(0, name.find('.')));
  std::erase_if(files, [](const fs::path& path) { return path.extension() != ".json"; });
  return files;
}

SavedReport read_report(const fs::path& file) {
  const std::string where = file.string();
  const auto json = parse_json(read_file(file, kMaxReportBytes), where, kMaxReportBytes);
  const bool is_report =
      json.is_object() && json.contains("format") && json.at("format") == kFormat;
  if (!is_report) {
    throw Error(ExitCode::kBadData, where + ": not a report of a non-finite update",
                "`stretto train` writes them to RUN/forensics/step_….json");
  }
  try {
    if (json.at("version").get<int64_t>() > kVersion) {
      throw Error(ExitCode::kBadData, where + ": written by a later version of Stretto",
                  "use that version");
    }
    const auto weights = fs::path(json.at("weights").get<std::string>()).filename();
    const auto carry = fs::path(json.value("carry", "")).filename();
    return {.report = parse_findings(json, where),
            .record = parse_record(json),
            .weights = file.parent_path() / weights,
            .carry = carry.empty() ? fs::path() : file.parent_path() / carry};
  } catch (const nlohmann::json::exception& error) {
    throw Error(ExitCode::kBadData, where + ": a damaged report: " + error.what(),
                "take another one of the run's forensics folder");
  }
}

void load_carry(const SavedReport& saved, parallel::Carry& carry) {
  if (carry.empty()) return;
  if (saved.carry.empty()) {
    throw Error(ExitCode::kBadData, "the report has no state of lanes, which the model reads",
                "take another one of the run's forensics folder");
  }
  const store::SafetensorsFile file(saved.carry);
  std::vector<runs::StoredTarget> targets;
  for (const auto& state : carry.states()) {
    targets.push_back({.stored_name = state.name, .name = state.name, .values = state.values});
  }
  runs::require_all_fit(file, saved.carry.string(), "", targets);
  runs::copy_all(file, targets);
}

}  // namespace stretto::train
