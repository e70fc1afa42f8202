#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "experiment/lint.h"
#include "experiment/load_experiment.h"

namespace stretto::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  int64_t processes = 0;
  bool resolved = false, json = false, strict = false;
};

std::vector<config::Problem> errors_of(const experiment::Inspection& inspection) {
  auto errors = inspection.problems;
  errors.insert(errors.end(), inspection.missing.begin(), inspection.missing.end());
  return errors;
}

Json as_json(const experiment::Finding& finding) {
  return {{"code", finding.code},     {"key", finding.key},       {"place", finding.place},
          {"reason", finding.reason}, {"source", finding.source}, {"fix", finding.fix}};
}

void print_json(const experiment::Inspection& inspection, const std::string& config_hash) {
  const auto errors = errors_of(inspection);
  Json json{{"sound", errors.empty()}};
  if (errors.empty()) json["config_hash"] = config_hash;
  json["errors"] = Json::array();
  for (const auto& error : errors) {
    json["errors"].push_back({{"place", error.place}, {"what", error.what}, {"hint", error.hint}});
  }
  json["findings"] = Json::array();
  for (const auto& finding : inspection.findings) json["findings"].push_back(as_json(finding));
  std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

void print_text(const experiment::Inspection& inspection) {
  for (const auto& finding : inspection.findings) {
    const std::string place = finding.place == "default" ? "" : finding.place + ": ";
    const std::string default_value = place.empty() ? " (default)" : "";
    std::cout << "note " << finding.code << ": " << place << "`" << finding.key << "`"
              << default_value << ": " << finding.reason << "\n  " << finding.fix << "\n";
    if (!finding.source.empty()) std::cout << "  see " << finding.source << "\n";
  }
}

void print_verdict(const Options& options, size_t findings) {
  std::cout << options.config << ": no errors";
  if (findings > 0) std::cout << ", " << counted(findings, "note");
  std::cout << "\n";
}

int run(const Options& options) {
  if (options.resolved) {
    std::cout << experiment::load_experiment(options.config, options.overrides).resolved_toml;
    return 0;
  }
  const auto inspection = experiment::inspect(options.config, options.overrides, options.processes);
  const auto errors = errors_of(inspection);
  std::string hash;
  if (errors.empty()) {
    hash = experiment::load_experiment(options.config, options.overrides).config_hash;
  }
  options.json ? print_json(inspection, hash) : print_text(inspection);
  std::cout.flush();
  config::throw_problems(errors);
  if (!options.json) print_verdict(options, inspection.findings.size());
  const bool refused = options.strict && !inspection.findings.empty();
  return static_cast<int>(refused ? ExitCode::kUsage : ExitCode::kOk);
}

}  // namespace

std::function<int()> declare_check(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("CONFIG", options->config, "configuration file")->required()->type_name("");
  app.add_option("key=value", options->overrides, "keys that replace those of the file")
      ->type_name("");
  app.add_option("--processes", options->processes,
                 "processes that will train together; some notes depend on it")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  app.add_flag("--resolved,--print", options->resolved, "print every key with its value instead");
  app.add_flag("--strict", options->strict, "leave with 2 when there is a finding");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run(*options); };
}

}  // namespace stretto::cli
