#include "sweep/sweep_runner.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string_view>
#include <utility>

#include "base/child_process.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/told_error.h"
#include "data/content_hash.h"
#include "store/checkpoint.h"
#include "store/folders.h"
#include "store/manifest.h"
#include "store/quantised_file.h"
#include "store/run_record.h"
#include "store/safetensors.h"
#include "sweep/grid_data.h"

namespace stretto::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLook{100};
constexpr const char* kRecord = "compress.json";  // of a folder that `stretto compress` made
constexpr size_t kMostComplaint = 1000;           // bytes

/// Waits for a process, and hands on a signal that ends this one.
int code_of(ChildProcess& child, const StopSignals& stop) {
  bool told = false;
  while (true) {
    child.wait_for(kLook);
    if (const auto code = child.poll()) return *code;
    if (stop.requested() && !told) {
      child.send(ChildProcess::kEnd);
      told = true;
    }
  }
}

/// That of the newest checkpoint: all of a run are of one size.
fs::path model_file(const fs::path& run) {
  const store::CheckpointStore store(run);
  const auto steps = store.steps();
  if (!steps.empty()) return store.path_of(steps.back()) / "model.safetensors";
  throw Error(ExitCode::kUsage, run.string() + " has no checkpoint", "train the run first");
}

int64_t num_weights(const fs::path& model) {
  const store::SafetensorsFile file(model);  // outlives the loop over its tensors
  int64_t sum = 0;
  for (const auto& tensor : file.tensors()) sum += tensor.num_elements();
  return sum;
}

void require_unpacked(const SweptRun& run) {
  if (!store::is_packed(store::SafetensorsFile(model_file(run.directory)))) return;
  throw Error(ExitCode::kUsage, run.directory.string() + " is compressed already",
              "name the run that it was made from");
}

nlohmann::json json_file(const fs::path& path) {
  return parse_json(read_file(path, kMaxSmallTextBytes), path.string(), kMaxSmallTextBytes);
}

/// Whether a number of this name was printed as null: JSON has no NaN and no infinity.
bool is_not_finite(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object()) return false;
  if (const auto found = json.find(name); found != json.end()) return found->is_null();
  return std::ranges::any_of(json, [&](const auto& part) { return is_not_finite(part, name); });
}

double number_in(const nlohmann::json& json, const std::string& name, const std::string& where) {
  if (const auto found = find_number(json, name)) return *found;
  if (is_not_finite(json, name)) {
    throw Error(ExitCode::kNumeric, where + ": `" + name + "` is infinite or NaN",
                "compress less, or begin with a run whose own score is a number");
  }
  throw Error(ExitCode::kBadData, where + ": there is no number `" + name + "`",
              "set grid.metric to one of the numbers that `stretto eval --json` prints");
}

/// Of files, one each; of what is no file, whose content is read otherwise, "".
std::vector<std::string> hashes_of(const std::vector<std::string>& paths) {
  std::vector<std::string> hashes;
  for (const auto& path : paths) {
    const bool is_file = fs::is_regular_file(path);
    hashes.push_back(is_file ? hex64(data::content_hashes({path}, "", 1).front()) : "");
  }
  return hashes;
}

/// What is wrong with the run folder of a point, in words; empty where it is whole, or was begun
/// and `compress` can go on with it.
std::string problem_of_folder(const fs::path& folder) {
  const store::CheckpointStore checkpoints(folder);
  const auto steps = checkpoints.steps();
  if (steps.empty()) return "";
  if (!fs::exists(folder / "config.toml")) return "config.toml is missing";
  try {
    store::CheckpointStore::load(checkpoints.path_of(steps.back()));
  } catch (const store::NewerFormat&) {
    throw;
  } catch (const Error& error) {
    const bool is_missing = error.code() == ExitCode::kUsage;
    if (error.code() != ExitCode::kBadData && !is_missing) throw;
    return error.what();
  }
  return "";
}

/// Removes the run folder of a point whose request changed; nothing that `compress` has not made.
/// What a kill leaves of it is known by its record.
void forget_folder(const fs::path& folder) {
  if (fs::exists(folder / kRecord)) store::remove_folder(folder, kRecord);
}

/// What a result file has, whole or begun; nothing where there is none, or it is damaged.
std::optional<nlohmann::json> stored_result(const fs::path& path) {
  if (!fs::exists(path)) return std::nullopt;
  try {
    auto stored = json_file(path);
    if (is_intact(stored)) return stored;
  } catch (const Error& error) {
    if (error.code() != ExitCode::kBadData) throw;
  }
  log::warn(path.string() + " is damaged: the point is made anew");
  return std::nullopt;
}

/// A run that is trained on has other checkpoints from point to point.
void require_rest(const std::vector<SweptRun>& runs) {
  for (const auto& run : runs) {
    if (!FileLock::is_held(run.directory / ".lock")) continue;
    throw Error(ExitCode::kUsage, run.directory.string() + " is being trained by another process",
                "wait until it ends, or stop it: all points are made of one checkpoint");
  }
}

/// What a program said of its failure.
std::string complaint_in(const std::string& output) {
  const std::string last = last_told_error(output);
  return last.empty() ? "" : printable(": " + last, kMostComplaint);
}

/// What `stretto bench --json` says of its only precision.
void take_speed(const nlohmann::json& bench, const std::string& where, PointResult& result) {
  const auto found = bench.find("precisions");
  if (found == bench.end() || !found->is_array() || found->empty()) {
    throw Error(ExitCode::kBadData, where + ": no speed was measured", "look at this file");
  }
  result.rate = number_in(found->front(), "rate", where);
  result.unit = bench.value("unit", "");
  result.processor = bench.value("processor", "");
}

}  // namespace

SweepRunner::SweepRunner(SweepSetup setup)
    : setup_(std::move(setup)),
      points_(points_of(setup_.options, setup_.runs)),
      data_hashes_(hashes_of(setup_.options.data)),
      metric_(metric_of(setup_.options, setup_.runs)) {
  for (const auto& run : setup_.runs) {
    require_unpacked(run);
    eval_data_words(setup_.options, run);  // what is wrong with them is told before the first point
  }
}

// What decides a result.
nlohmann::json SweepRunner::request_of(const SweptPoint& point) const {
  nlohmann::json request = nlohmann::json::object();
  auto words = compress_words(setup_.options, point, setup_.runs[point.run], setup_.checkpoint, "");
  request["compress"] = std::move(words);
  // Weights of today: a run that was trained on has other results.
  const SweptRun& run = setup_.runs[point.run];
  const auto record = store::read_run_record(run.directory);
  request["run_id"] = record ? record->run_id : "";
  request["steps"] = store::CheckpointStore(run.directory).steps();
  request["eval"] = setup_.options.eval;
  // Left out where it is empty, as results of versions without it have it.
  if (!setup_.options.data.empty()) {
    request["data"] = setup_.options.data;
    request["data_hashes"] = data_hashes_;
  }
  request["metric"] = metric_.name;
  request["time"] = setup_.options.time;
  const bool measures_usually = setup_.options.seconds == GridOptions{}.seconds;
  if (setup_.options.time && !measures_usually) request["seconds"] = setup_.options.seconds;
  return as_stored(request);
}

std::string SweepRunner::output_of(const SweptPoint& point, const std::string& what,
                                   std::vector<std::string> words) const {
  const fs::path log = setup_.directory / "logs" / (point.name + "." + what + ".txt");
  fs::remove(log);
  words.insert(words.begin(), setup_.program);
  int code = 0;
  if (!stop_->requested()) {
    ChildProcess child(words, ChildProcess::OutputFile{.path = log});
    code = code_of(child, *stop_);
  }
  if (stop_->requested()) {
    throw Error(ExitCode::kInterrupted, "stopped at " + point.name,
                "the same command goes on from here");
  }
  auto said = read_file(log);
  if (code != 0) {
    throw Error(static_cast<ExitCode>(code),
                point.name + ": stretto " + what + " ended with code " + std::to_string(code) +
                    complaint_in(said),
                log.string() + " has all that it said");
  }
  return said;
}

PointResult SweepRunner::measured(const SweptPoint& point) const {
  const auto& options = setup_.options;
  const SweptRun& run = setup_.runs[point.run];
  PointResult result;
  result.point = point;
  result.run = run.name;
  fs::path folder = run.directory;
  std::vector<std::string> chosen;  // of a run that has several
  if (!point.is_plain()) {
    folder = setup_.directory / "points" / point.name;
    output_of(point, "compress", compress_words(options, point, run, setup_.checkpoint, folder));
    const fs::path record = folder / kRecord;
    const auto json = json_file(record);
    result.weights = static_cast<int64_t>(number_in(json, "weights", record));
    result.bits_per_weight = number_in(json, "bits_per_weight", record);
    result.bytes = static_cast<uint64_t>(fs::file_size(model_file(folder)));
    if (json.contains("result")) result.zeros = number_in(json["result"], "sparsity", record);
  } else {
    result.bits_per_weight = kUnpackedBits;
    result.bytes = static_cast<uint64_t>(fs::file_size(model_file(folder)));
    result.weights = num_weights(model_file(folder));
    if (!setup_.checkpoint.empty()) chosen = {"--checkpoint", setup_.checkpoint};
  }
  std::vector<std::string> words{"eval", folder.string(), "--json"};
  words.insert(words.end(), chosen.begin(), chosen.end());
  const auto scored = eval_data_words(options, run);
  words.insert(words.end(), scored.begin(), scored.end());
  words.insert(words.end(), options.eval.begin(), options.eval.end());
  const std::string eval = point.name + ".eval.txt";
  result.score =
      number_in(last_object(output_of(point, "eval", std::move(words)), eval), metric_.name, eval);
  if (options.time) {
    words = {"bench",
             folder.string(),
             "--json",
             "--precision",
             point.is_plain() ? "fp32" : "stored",
             "--seconds",
             shortest(options.seconds)};
    words.insert(words.end(), chosen.begin(), chosen.end());
    const auto timed = bench_data_words(options, run);
    words.insert(words.end(), timed.begin(), timed.end());
    words.insert(words.end(), options.eval.begin(), options.eval.end());
    const std::string bench = point.name + ".bench.txt";
    take_speed(last_object(output_of(point, "bench", std::move(words)), bench), bench, result);
  }
  return result;
}

PointResult SweepRunner::result_of(const SweptPoint& point) const {
  const fs::path path = setup_.directory / "results" / (point.name + ".json");
  const auto request = request_of(point);
  const bool is_there = fs::exists(path);
  const auto stored = stored_result(path);
  const bool is_same = stored && stored->value("request", nlohmann::json()) == request;
  const fs::path folder = setup_.directory / "points" / point.name;
  const bool has_folder = point.is_plain() || fs::exists(folder / kRecord);
  const auto problem = point.is_plain() ? std::string() : problem_of_folder(folder);
  if (!problem.empty()) {
    log::warn(folder.string() + " is damaged, and is made anew: " + problem);
    forget_folder(folder);
  }
  if (is_same && stored->contains("score") && has_folder && problem.empty()) {
    PointResult result = read_result(*stored, path.string());
    result.point = point;
    result.run = setup_.runs[point.run].name;
    return result;
  }
  if (is_there && !is_same) forget_folder(folder);
  log::info(point.name);
  // What its folder is made for stands there before the folder does: a grid that is stopped here,
  // and goes on with another request, knows by it that the folder is another point's.
  auto json = nlohmann::json::object();
  json["request"] = request;
  write_file_atomic(path, sealed_json(json));
  const PointResult result = measured(point);
  json = result_json(result);
  json["request"] = request;
  write_file_atomic(path, sealed_json(json));
  return result;
}

SweepView SweepRunner::view(bool has_ended) const {
  return {.results = results_,
          .metric = metric_,
          .num_points = points_.size(),
          .failed = failed_,
          .has_ended = has_ended};
}

void SweepRunner::write(bool has_ended) const {
  write_file_atomic(setup_.directory / "sweep.tsv", sweep_tsv(view(has_ended)));
  write_file_atomic(setup_.directory / "sweep.html", render_sweep(view(has_ended)));
}

void SweepRunner::print(bool json) const {
  if (!json) {
    std::cout << sweep_table(view(/*has_ended=*/true)) << std::flush;
    return;
  }
  nlohmann::json out = nlohmann::json::object();
  out["metric"] = metric_.name;
  out["higher_is_better"] = metric_.higher_is_better;
  out["points"] = nlohmann::json::array();
  for (const auto& result : results_) out["points"].push_back(result_json(result));
  out["failed"] = failed_;
  std::cout << as_stored(out).dump(2) << std::endl;
}

ExitCode SweepRunner::run(bool json) {
  require_rest(setup_.runs);
  for (const char* part : {"points", "results", "logs"}) {
    make_directories(setup_.directory / part);
  }
  const auto lock = FileLock::try_now(setup_.directory / ".lock", "a grid");
  const StopSignals stop;
  stop_ = &stop;
  results_.clear();
  failed_.clear();
  ExitCode code = ExitCode::kOk;
  for (const auto& point : points_) {
    write(/*has_ended=*/false);
    try {
      results_.push_back(result_of(point));
    } catch (const Error& error) {
      if (error.code() == ExitCode::kInterrupted) {
        write(/*has_ended=*/true);
        throw;
      }
      log::error(error.message());
      failed_.push_back(point.name);
      if (code == ExitCode::kOk) code = error.code();
    } catch (const fs::filesystem_error& error) {
      log::error(point.name + ": " + error.what());
      failed_.push_back(point.name);
      if (code == ExitCode::kOk) code = ExitCode::kIo;
    }
  }
  write(/*has_ended=*/true);
  print(json);
  log::info((setup_.directory / "sweep.html").string());
  return code;
}

}  // namespace stretto::sweep
