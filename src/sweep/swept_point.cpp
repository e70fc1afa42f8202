#include "sweep/swept_point.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "experiment/data_files.h"
#include "experiment/family_spec.h"
#include "experiment/score_spec.h"
#include "experiment/task_rules.h"

namespace stretto::sweep {
namespace {

constexpr double kUnits = 1000;  // of PointResult::latency()
constexpr double kMilliseconds = 1000;

void name_apart(std::vector<SweptRun>& runs) {
  std::set<std::string> taken;
  for (auto& run : runs) {
    const std::string base = run.name;
    for (int number = 2; !taken.insert(run.name).second; ++number) {
      run.name = base + "-" + std::to_string(number);
    }
  }
}

std::string name_of_point(const SweptPoint& point, const SweptRun& run) {
  std::string name = run.name + "-" + std::to_string(point.bits) + "bit";
  if (point.sparsity > 0) name += "-s" + shortest(point.sparsity);
  return name;
}

template <class Value>
Value member(const nlohmann::json& json, const char* name, const std::string& where) {
  try {
    return json.at(name).get<Value>();
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::kBadData,
                where + ": `" + name + "` is missing, or of another type than a result has",
                "remove the file; the point is then judged anew");
  }
}

}  // namespace

SweptRun swept_run(const std::filesystem::path& directory,
                   const experiment::Experiment& experiment) {
  SweptRun run;
  run.directory = directory;
  // "runs/my/" has no last name.
  const auto last = directory.filename();
  run.name = (last.empty() ? directory.parent_path().filename() : last).string();
  run.best_metric = experiment.eval.best_metric;
  run.has_data = !experiment::data_files_of(experiment).empty();
  if (const auto* family = experiment::find_family(experiment)) {
    for (const auto& option : family->eval.options) {
      if (!option.data_keys.empty()) run.data_options.push_back(option);
    }
  }
  const auto* rules = experiment::find_task_rules(experiment);
  if (rules == nullptr) return run;
  for (const auto& score : experiment::ranking_scores(rules->scores(experiment))) {
    run.scores.push_back({score.name(), score.higher_is_better()});
  }
  return run;
}

std::vector<SweptPoint> points_of(const GridOptions& grid, std::vector<SweptRun>& runs) {
  name_apart(runs);
  std::vector<SweptPoint> points;
  std::set<std::string> seen;  // a grid may name a value twice
  for (size_t run = 0; run < runs.size(); ++run) {
    for (const double bits : grid.bits) {
      for (const double sparsity : grid.sparsity) {
        SweptPoint point{
            .run = run, .bits = static_cast<int64_t>(bits), .sparsity = sparsity, .name = {}};
        point.name = name_of_point(point, runs[run]);
        if (seen.insert(point.name).second) points.push_back(std::move(point));
      }
    }
  }
  return points;
}

std::vector<std::string> compress_words(const GridOptions& grid, const SweptPoint& point,
                                        const SweptRun& run, const std::string& checkpoint,
                                        const std::filesystem::path& target) {
  std::vector<std::string> words{"compress", run.directory.string(), "--run", target.string()};
  const auto add = [&](const std::string& option, const std::string& value) {
    words.push_back(option);
    words.push_back(value);
  };
  if (!checkpoint.empty()) add("--checkpoint", checkpoint);
  if (point.bits != kUnpackedBits) {
    add("--bits", std::to_string(point.bits));
    add("--rounding", grid.rounding);
    if (grid.group > 0) add("--group", std::to_string(grid.group));
    if (!grid.symmetric) words.emplace_back("--asymmetric");
    for (const auto& other : grid.bits_of) add("--bits-of", other);
  }
  for (const auto& pattern : grid.keep) add("--keep", pattern);
  if (point.sparsity > 0) {
    add("--prune", shortest(point.sparsity));
    add("--prune-scope", grid.scope);
  }
  return words;
}

KnownScore metric_of(const GridOptions& grid, std::span<const SweptRun> runs) {
  std::string wanted = grid.metric.empty() ? runs.front().best_metric : grid.metric;
  if (wanted.empty() && !runs.front().scores.empty()) wanted = runs.front().scores.front().name;
  KnownScore metric{.name = wanted};
  bool is_known = false;
  for (const auto& run : runs) {
    const auto found = std::ranges::find(run.scores, wanted, &KnownScore::name);
    if (found != run.scores.end()) {
      metric = *found;
      is_known = true;
    } else if (is_known || grid.goal == "auto") {
      std::vector<std::string> names;
      for (const auto& score : run.scores) names.push_back(score.name);
      throw Error(ExitCode::kUsage,
                  "grid.metric: " + run.directory.string() + " has no score `" + printable(wanted) +
                      "`; it has " + join(names, ", "),
                  "name one of them, or one of `stretto eval --json` together with grid.goal");
    }
  }
  if (grid.goal != "auto") metric.higher_is_better = grid.goal == "maximize";
  return metric;
}

std::optional<double> PointResult::latency() const {
  if (!rate || *rate <= 0) return std::nullopt;
  return kMilliseconds * kUnits / *rate;
}

nlohmann::json result_json(const PointResult& result) {
  nlohmann::json json = nlohmann::json::object();
  json["point"] = result.point.name;
  json["run"] = result.run;
  json["bits"] = result.point.bits;
  json["sparsity"] = result.point.sparsity;
  json["bytes"] = result.bytes;
  json["weights"] = result.weights;
  json["bits_per_weight"] = result.bits_per_weight;
  json["zeros"] = result.zeros;
  json["score"] = result.score;
  json["rate"] = result.rate ? nlohmann::json(*result.rate) : nlohmann::json();
  json["unit"] = result.unit;
  json["processor"] = result.processor;
  return json;
}

PointResult read_result(const nlohmann::json& json, const std::string& where) {
  PointResult result;
  result.point.name = member<std::string>(json, "point", where);
  result.point.bits = member<int64_t>(json, "bits", where);
  result.point.sparsity = member<double>(json, "sparsity", where);
  result.run = member<std::string>(json, "run", where);
  result.bytes = member<uint64_t>(json, "bytes", where);
  result.weights = member<int64_t>(json, "weights", where);
  result.bits_per_weight = member<double>(json, "bits_per_weight", where);
  result.zeros = member<double>(json, "zeros", where);
  result.score = member<double>(json, "score", where);
  result.unit = member<std::string>(json, "unit", where);
  result.processor = member<std::string>(json, "processor", where);
  if (json.contains("rate") && !json["rate"].is_null()) {
    result.rate = member<double>(json, "rate", where);
  }
  return result;
}

std::optional<double> find_number(const nlohmann::json& json, const std::string& name) {
  if (!json.is_object()) return std::nullopt;
  if (const auto found = json.find(name); found != json.end() && found->is_number()) {
    return found->get<double>();
  }
  for (const auto& part : json) {
    if (const auto found = find_number(part, name)) return found;
  }
  return std::nullopt;
}

nlohmann::json last_object(const std::string& output, const std::string& where) {
  const auto lines = split(output, '\n');
  for (size_t first = lines.size(); first-- > 0;) {
    if (!lines[first].starts_with("{")) continue;
    // One line, or as many as a printer has made of it.
    std::string text = lines[first];
    const bool is_whole_line = trim(text).ends_with("}");
    for (size_t line = first + 1; !is_whole_line && line < lines.size(); ++line) {
      text += "\n" + lines[line];
      if (lines[line].starts_with("}")) break;
    }
    return parse_json(text, where, kMaxSmallTextBytes);
  }
  throw Error(ExitCode::kBadData, where + ": the program printed no result",
              "look at this file: it has what the program said");
}

}  // namespace stretto::sweep
