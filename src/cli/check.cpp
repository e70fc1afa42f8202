#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "experiment/advice.h"
#include "experiment/load_experiment.h"

namespace stretto::cli {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> overrides;
  bool resolved = false, json = false;
};

void print_json(const experiment::LoadedExperiment& loaded,
                const std::vector<config::Problem>& findings) {
  nlohmann::ordered_json json{{"sound", true}, {"config_hash", loaded.config_hash}};
  json["findings"] = nlohmann::ordered_json::array();
  for (const auto& finding : findings) {
    json["findings"].push_back(
        {{"place", finding.place}, {"what", finding.what}, {"hint", finding.hint}});
  }
  std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

int run(const Options& options) {
  const auto loaded = experiment::load_experiment(options.config, options.overrides);
  if (options.resolved) {
    std::cout << loaded.resolved_toml;
    return 0;
  }
  const auto findings = experiment::advise(loaded.options, loaded.origins);
  if (options.json) {
    print_json(loaded, findings);
    return 0;
  }
  for (const auto& finding : findings) {
    std::cout << "note: " << finding.place << ": " << finding.what << "\n  " << finding.hint
              << "\n";
  }
  std::cout << options.config << ": no errors";
  if (!findings.empty()) {
    std::cout << ", " << findings.size() << (findings.size() == 1 ? " note" : " notes");
  }
  std::cout << "\n";
  return 0;
}

}  // namespace

std::function<int()> declare_check(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("CONFIG", options->config, "configuration file")->required()->type_name("");
  app.add_option("key=value", options->overrides, "keys that replace those of the file")
      ->type_name("");
  app.add_flag("--resolved,--print", options->resolved, "print every key with its value instead");
  app.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run(*options); };
}

}  // namespace stretto::cli
