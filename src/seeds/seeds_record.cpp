#include "seeds/seeds_record.h"

#include <array>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "seeds/summary.h"

namespace stretto::seeds {
namespace {

namespace fs = std::filesystem;
using RecordJson = nlohmann::ordered_json;

constexpr size_t kMaxRecordBytes = kMaxSmallTextBytes * 64;

constexpr std::array<std::pair<SeedState, const char*>, 5> kStates{{
    {SeedState::kWaiting, "waiting"},
    {SeedState::kTraining, "training"},
    {SeedState::kFinished, "finished"},
    {SeedState::kInterrupted, "interrupted"},
    {SeedState::kFailed, "failed"},
}};

[[noreturn]] void throw_damaged(const std::string& where, const std::string& what) {
  throw Error(ExitCode::kBadData, where + ": " + what,
              "remove the file: finished runs are not trained again, only looked at");
}

SeedState state_named(const std::string& name, const std::string& where) {
  for (const auto& [state, word] : kStates) {
    if (name == word) return state;
  }
  throw_damaged(where, "a run has no state that is known");
}

std::optional<ValidationScores> validation_of(const nlohmann::json& json,
                                              const std::string& where) {
  if (json.is_null()) return std::nullopt;
  ValidationScores found;
  if (!json.is_object()) throw_damaged(where, "scores of a run are no object");
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number()) throw_damaged(where, "a score of a run is no number");
    if (name == "step") {
      found.step = value.get<int64_t>();
    } else {
      found.scores.emplace_back(name, value.get<double>());
    }
  }
  return found;
}

// The scores of a run that finished. Without its three keys it is no record of this program.
RunScores scores_of_run(const nlohmann::json& json, const std::string& where) {
  for (const char* key : {"best", "last", "seconds"}) {
    if (!json.contains(key)) throw_damaged(where, "a run that finished lacks its scores");
  }
  RunScores scores{.best = validation_of(json["best"], where),
                   .last = validation_of(json["last"], where),
                   .seconds = {}};
  if (json["seconds"].is_number()) scores.seconds = json["seconds"].get<double>();
  return scores;
}

SeedRun run_of(const nlohmann::json& json, const std::string& where) {
  const bool whole = json.is_object() && json.contains("seed") &&
                     json["seed"].is_number_integer() && json.contains("state") &&
                     json["state"].is_string() && json.contains("fingerprint") &&
                     json["fingerprint"].is_string();
  if (!whole) throw_damaged(where, "a run lacks its seed, its state or its fingerprint");
  SeedRun run{.seed = json["seed"].get<int64_t>(),
              .state = state_named(json["state"].get<std::string>(), where),
              .fingerprint = json["fingerprint"].get<std::string>(),
              .exit_code = {}};
  if (json.contains("exit_code") && json["exit_code"].is_number_integer()) {
    run.exit_code = json["exit_code"].get<int>();
  }
  if (run.state == SeedState::kFinished) run.scores = scores_of_run(json, where);
  return run;
}

template <class T>
RecordJson or_null(const std::optional<T>& value) {
  return value ? RecordJson(*value) : RecordJson(nullptr);
}

RecordJson validation_json(const std::optional<ValidationScores>& validation) {
  if (!validation) return nullptr;
  RecordJson json{{"step", validation->step}};
  for (const auto& [name, value] : validation->scores) json[name] = value;
  return json;
}

RecordJson spread_json(const Spread& spread) {
  return {{"mean", spread.mean}, {"deviation", or_null(spread.deviation)}, {"runs", spread.runs}};
}

RecordJson spreads_json(const NamedSpreads& spreads) {
  RecordJson json = RecordJson::object();
  for (const auto& [name, spread] : spreads) json[name] = spread_json(spread);
  return json;
}

RecordJson run_json(const SeedRun& run, const RunScores& scores) {
  return {{"seed", run.seed},
          {"run", seed_directory({}, run.seed).string()},
          {"state", name_of(run.state)},
          {"fingerprint", run.fingerprint},
          {"exit_code", or_null(run.exit_code)},
          {"best", validation_json(scores.best)},
          {"last", validation_json(scores.last)},
          {"seconds", or_null(scores.seconds)}};
}

}  // namespace

const char* name_of(SeedState state) {
  return kStates.at(static_cast<size_t>(state)).second;
}

fs::path seed_directory(const fs::path& directory, int64_t seed) {
  return directory / ("seed_" + std::to_string(seed));
}

fs::path seeds_path(const fs::path& directory) {
  return directory / "seeds.json";
}

std::vector<SeedRun> parse_seeds_json(std::string_view text, const std::string& where) {
  const auto json = parse_json(text, where, kMaxRecordBytes);
  if (!json.is_object() || !json.contains("runs") || !json["runs"].is_array()) {
    throw_damaged(where, "there is no list of runs");
  }
  std::vector<SeedRun> runs;
  std::set<int64_t> seeds;
  for (const auto& entry : json["runs"]) {
    runs.push_back(run_of(entry, where));
    if (!seeds.insert(runs.back().seed).second) throw_damaged(where, "a seed stands twice");
  }
  return runs;
}

std::vector<SeedRun> read_seeds_json(const fs::path& directory) {
  const fs::path path = seeds_path(directory);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  return parse_seeds_json(read_file(path, kMaxRecordBytes), path.string());
}

std::vector<RunScores> finished_scores(const std::vector<SeedRun>& runs,
                                       const std::vector<RunScores>& scores) {
  std::vector<RunScores> finished;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].state == SeedState::kFinished) finished.push_back(scores.at(i));
  }
  return finished;
}

RecordJson seeds_json(const std::vector<SeedRun>& runs, const std::vector<RunScores>& scores,
                      const BestBy& by, const std::vector<data::AcceptedChanges>& accepted) {
  RecordJson list = RecordJson::array();
  for (size_t i = 0; i < runs.size(); ++i) list.push_back(run_json(runs[i], scores.at(i)));
  const auto finished = finished_scores(runs, scores);
  const auto summary = summarise(finished);
  RecordJson json{
      {"best_metric", by.name},
      {"runs", std::move(list)},
      {"finished", finished.size()},
      {"best", spreads_json(summary.best)},
      {"last", spreads_json(summary.last)},
      {"seconds", summary.seconds ? spread_json(*summary.seconds) : RecordJson(nullptr)}};
  for (const auto& [time, changes] : accepted) {
    json["accepted_data"].push_back({{"time", time}, {"changes", data::text_of(changes)}});
  }
  return json;
}

}  // namespace stretto::seeds
