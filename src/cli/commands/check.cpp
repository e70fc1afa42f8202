#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/system_info.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/configuration_file.h"
#include "cli/engine.h"
#include "cli/notes.h"
#include "cli/plan_memory.h"
#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "experiment/tensor_keys.h"
#include "interchange/initial_model.h"
#include "lint/lint.h"

namespace stretto::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CheckArguments {
  std::string config;
  std::vector<std::string> overrides;
  int64_t processes = 0;
  bool resolved = false, json = false, strict = false;
  experiment::PreflightOptions preflight;
};

/// All that is known about a configuration.
struct Verdict {
  lint::Inspection inspection;
  std::vector<config::Problem> errors;  ///< in their order
  ExitCode code = ExitCode::kOk;
  std::vector<experiment::UnreadData> unread;
  std::vector<experiment::UnreadData> waiting = {};  ///< what cannot be compared with a wrong model
  std::vector<experiment::Doubt> doubts = {};
  bool full_reads_more = false;  ///< what `--full` would read is among `unread`
};

void leave_out_missing(const std::vector<config::Problem>& missing, Verdict& verdict) {
  for (const auto& problem : missing) {
    verdict.unread.push_back({problem.key, problem.what + " on this machine"});
  }
}

/// Asks the engine for what `keys` need. Training needs it, too: that it cannot be opened is what
/// training would say, and the fault of no key. What it says itself is told of the first key.
template <class Ask>
void ask_engine(const std::vector<std::string>& keys, bool elsewhere, experiment::Preflight& found,
                const Ask& ask) {
  if (elsewhere && engine_path().empty()) {
    for (const auto& key : keys) {
      found.unread.push_back({key, "there is no libstretto_engine.so on this machine"});
    }
    return;
  }
  const engine::EngineApi* api = nullptr;
  experiment::note_stop(found, experiment::Stage::kMachine, "", [&] { api = &engine(); });
  if (api == nullptr) return;
  experiment::note_stop(found, experiment::Stage::kMachine, keys.front(), [&] { ask(*api); });
}

std::vector<optim::TensorName> tensor_names(const experiment::Experiment& e, bool elsewhere,
                                            experiment::Preflight& found) {
  std::vector<optim::TensorName> names;
  ask_engine(experiment::keys_that_name_tensors(e), elsewhere, found,
             [&](const auto& api) { names = api.tensor_names(e); });
  return names;
}

void look_beyond(const CheckArguments& options, const lint::Inspection& inspection,
                 experiment::Preflight& found) {
  const auto& e = inspection.options;
  auto known = inspection.problems;
  known.insert(known.end(), inspection.missing.begin(), inspection.missing.end());
  found = experiment::joined(std::move(found), experiment::preflight(e, known, options.preflight));
  const auto request = experiment::engine_request({.options = e, .origins = inspection.origins},
                                                  known, found, options.preflight);
  if (!request.any()) return;
  ask_engine(
      {request.machine ? "run.device" : "train.init_from"}, options.preflight.elsewhere, found,
      [&](const auto& api) { found = experiment::joined(std::move(found), api.check(request)); });
}

/// Whether training fits into the memory of this machine.
void look_at_memory(const CheckArguments& options, const lint::Inspection& inspection,
                    experiment::Preflight& found) {
  if (options.preflight.elsewhere || !inspection.problems.empty()) return;
  auto stop = memory_stop({.config = options.config,
                           .overrides = options.overrides,
                           .processes = options.processes,
                           .memory_bytes = static_cast<double>(total_memory_bytes())},
                          inspection.options);
  if (stop) found.stops.push_back(std::move(*stop));
}

/// What nobody can compare with the tensors of a model that has errors itself.
void tell_unmatched(Verdict& verdict) {
  const auto& inspection = verdict.inspection;
  for (const auto& key : inspection.unmatched) {
    verdict.waiting.push_back({key, "patterns of tensors, until the model has no errors"});
  }
  const std::string from = "train.init_from";
  auto known = verdict.errors;
  known.insert(known.end(), inspection.missing.begin(), inspection.missing.end());
  if (inspection.options.train.init_from.empty() || config::is_unreliable(known, from)) return;
  if (experiment::describes_a_model(known)) return;
  verdict.waiting.push_back({from, "weights, until the model has no errors"});
}

Verdict judge(const CheckArguments& options) {
  experiment::Preflight found;
  const auto tensors = [&](const experiment::Experiment& e) {
    return tensor_names(e, options.preflight.elsewhere, found);
  };
  Verdict verdict{
      .inspection = lint::inspect(options.config, options.overrides, options.processes, tensors,
                                  {.describe = &interchange::describe_initial_model}),
      .errors = {},
      .unread = {}};
  if (!verdict.inspection.problems.empty()) {
    if (auto errors = problems_as_configuration(options.config); !errors.empty()) {
      return {
          .inspection = {}, .errors = std::move(errors), .code = ExitCode::kUsage, .unread = {}};
    }
  }
  const auto& missing = verdict.inspection.missing;
  verdict.errors = verdict.inspection.problems;
  if (options.preflight.elsewhere) {
    leave_out_missing(missing, verdict);
  } else {
    verdict.errors.insert(verdict.errors.end(), missing.begin(), missing.end());
  }
  if (!verdict.errors.empty()) verdict.code = ExitCode::kUsage;
  if (!options.resolved && verdict.inspection.is_read) {
    look_beyond(options, verdict.inspection, found);
    look_at_memory(options, verdict.inspection, found);
  }
  const auto problems = experiment::problems_of(found.stops, verdict.inspection.origins);
  if (verdict.errors.empty()) verdict.code = experiment::exit_code_of(found.stops);
  verdict.errors.insert(verdict.errors.end(), problems.begin(), problems.end());
  verdict.unread.insert(verdict.unread.end(), found.unread.begin(), found.unread.end());
  verdict.doubts = found.doubts;
  verdict.full_reads_more = !verdict.unread.empty() && !options.preflight.full;
  tell_unmatched(verdict);
  if (verdict.errors.empty()) {  // what is missing on this machine may be enough to wait for
    verdict.unread.insert(verdict.unread.end(), verdict.waiting.begin(), verdict.waiting.end());
    verdict.waiting.clear();
  }
  verdict.errors = config::in_order(std::move(verdict.errors));
  return verdict;
}

Json as_json(const lint::Finding& finding) {
  return {{"code", finding.code},     {"key", finding.key},       {"place", finding.place},
          {"reason", finding.reason}, {"source", finding.source}, {"fix", finding.fix}};
}

void print_json(const Verdict& verdict) {
  Json json{{"sound", verdict.errors.empty()}};
  json["exit_code"] = static_cast<int>(verdict.code);
  if (verdict.errors.empty()) json["config_hash"] = verdict.inspection.config_hash;
  if (!verdict.inspection.taken.empty()) json["taken"] = verdict.inspection.taken;
  json["errors"] = Json::array();
  for (const auto& error : verdict.errors) {
    json["errors"].push_back({{"place", error.place},
                              {"what", error.what},
                              {"hint", error.hint},
                              {"details", error.details}});
  }
  json["unread"] = Json::array();
  for (const auto* unread : {&verdict.unread, &verdict.waiting}) {
    for (const auto& one : *unread) {
      json["unread"].push_back({{"key", one.key}, {"what", one.what}});
    }
  }
  json["former"] = Json::array();
  for (const auto& note : verdict.inspection.origins.notes()) {
    json["former"].push_back({{"place", note.place.text()}, {"what", note.what}});
  }
  json["doubts"] = Json::array();
  for (const auto& doubt : verdict.doubts) {
    json["doubts"].push_back({{"place", verdict.inspection.origins.of(doubt.key)},
                              {"what", doubt.what},
                              {"hint", doubt.hint}});
  }
  json["findings"] = Json::array();
  for (const auto& finding : verdict.inspection.findings) {
    json["findings"].push_back(as_json(finding));
  }
  std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

void print_notes(const Verdict& verdict) {
  if (!verdict.inspection.taken.empty()) std::cout << verdict.inspection.taken << "\n";
  for (const auto& note : verdict.inspection.origins.notes()) {
    std::cout << "note: " << note.text() << "\n";
  }
  for (const auto& doubt : verdict.doubts) {
    std::cout << "note: " << verdict.inspection.origins.of(doubt.key) << ": " << doubt.what
              << "\n  " << doubt.hint << "\n";
  }
  for (const auto& finding : verdict.inspection.findings) {
    const std::string place = finding.place == "default" ? "" : finding.place + ": ";
    const std::string default_value = place.empty() ? " (default)" : "";
    std::cout << "note " << finding.code << ": " << place << "`" << finding.key << "`"
              << default_value << ": " << finding.reason << "\n  " << finding.fix << "\n";
    if (!finding.source.empty()) std::cout << "  see " << finding.source << "\n";
  }
}

/// Errors first, then what is noted beside them. What a look with more time would find can wait
/// until they are mended.
void print_errors(const Verdict& verdict) {
  log::error(config::problems_text(verdict.errors));
  for (const auto& line : experiment::details_in_full(verdict.errors)) std::cout << line << "\n";
  print_notes(verdict);
  if (verdict.waiting.empty()) return;
  std::vector<std::string> keys;
  for (const auto& unread : verdict.waiting) keys.push_back("`" + unread.key + "`");
  std::cout << "not compared until the model has no errors: " << join(keys, ", ") << "\n";
}

/// Notes, the verdict, and in one line what it does not cover.
void print_sound(const CheckArguments& options, const Verdict& verdict) {
  print_notes(verdict);
  const auto& inspection = verdict.inspection;
  const size_t notes =
      inspection.findings.size() + inspection.origins.notes().size() + verdict.doubts.size();
  std::cout << options.config << ": no errors";
  if (!verdict.unread.empty()) std::cout << " in what was looked at";
  if (notes > 0) std::cout << ", " << counted(static_cast<int64_t>(notes), "note");
  std::cout << "\n";
  if (verdict.unread.empty()) return;
  std::vector<std::string> parts;
  for (const auto& unread : verdict.unread) parts.push_back("`" + unread.key + "`: " + unread.what);
  if (verdict.full_reads_more) parts.emplace_back("--full looks at all that is on this machine");
  std::cout << "not looked at: " << join(parts, "; ") << "\n";
}

int run_check(const CheckArguments& options) {
  log::set_quiet(true);  // the engine tells what it loads
  const Verdict verdict = judge(options);
  if (options.resolved) {
    config::throw_problems(verdict.errors, verdict.code);
    tell_notes(verdict.inspection.origins);
    std::cout << verdict.inspection.resolved_toml;
    return 0;
  }
  if (options.json) {
    print_json(verdict);
    std::cout.flush();
    config::throw_problems(verdict.errors, verdict.code);
  } else if (!verdict.errors.empty()) {
    print_errors(verdict);
    return static_cast<int>(verdict.code);
  } else {
    print_sound(options, verdict);
  }
  const bool refused = options.strict && !verdict.inspection.findings.empty();
  return static_cast<int>(refused ? ExitCode::kUsage : ExitCode::kOk);
}

}  // namespace

std::function<int()> declare_check(CLI::App& app) {
  auto options = std::make_shared<CheckArguments>();
  app.add_option("CONFIG", options->config, "configuration file")->required()->type_name("");
  app.add_option("key=value", options->overrides, "keys that replace those of the file")
      ->type_name("");
  app.add_option("--processes", options->processes,
                 "processes that will train together; some notes depend on it")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  app.add_flag("--full", options->preflight.full,
               "read all of the data, train the tokenizer, verify weights; without it, it reads "
               "for a second and says what it left out");
  app.add_flag("--elsewhere", options->preflight.elsewhere,
               "the run will be on another machine: files and a GPU that are missing here are no "
               "errors");
  app.add_flag("--resolved,--print", options->resolved, "print every key with its value instead");
  app.add_flag("--strict", options->strict, "leave with 2 when there is a finding");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run_check(*options); };
}

}  // namespace stretto::cli
