// Fuzz target: a configuration file and overrides, from bytes to rules. A NUL byte ends the file;
// what follows are overrides, separated by NUL bytes. Every outcome but an experiment or problems
// in words is a bug, and a resolved copy must read back to itself. Most inputs are made by mistakes
// that people make, line by line: the bytes of a recipe rarely go wrong in a way that rules see.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/load.h"
#include "experiment/load_experiment.h"
#include "experiment/schedule_length.h"
#include "tests/fuzz/config_mutator.h"

namespace {

using namespace stretto;

// Whether the text is refused; stops the program where a problem lacks what corrects it.
bool is_refused(const std::string& text, const std::vector<std::string>& overrides) {
  experiment::Experiment options, fallback;
  std::vector<config::Problem> problems;
  const auto origins = config::load_text(text, "/nowhere/config.toml", "/nowhere", overrides,
                                         experiment::experiment_schema(options),
                                         experiment::experiment_schema(fallback), problems);
  if (experiment::readable(problems)) {
    experiment::resolve_defaults(options, origins);
    experiment::check_rules(options, origins, problems);
  }
  for (const auto& problem : problems) {
    const std::string fault = testing::lacks(problem);
    if (fault.empty()) continue;
    std::cerr << fault << "\n";
    std::abort();
  }
  return !problems.empty();
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  static const testing::ConfigMutator mutator({});
  testing::ConfigMutator::Random random(seed);
  if (random() % 4 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string out = mutator.mutated(input.substr(0, end), random) + input.substr(end);
  if (out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(out.begin(), out.end(), data);
  return out.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto parts = split(input, '\0');
  const std::vector<std::string> overrides(parts.begin() + (parts.empty() ? 0 : 1), parts.end());
  const std::string text = parts.empty() ? "" : parts.front();
  if (is_refused(text, overrides)) return 0;
  try {
    const auto loaded = experiment::load_stored_experiment(text, "/nowhere/config.toml", overrides);
    const auto again =
        experiment::load_stored_experiment(loaded.resolved_toml, "/elsewhere/config.toml", {});
    if (again.resolved_toml != loaded.resolved_toml || again.config_hash != loaded.config_hash) {
      std::abort();
    }
  } catch (const Error&) {
    // A file that an override names and that is not there.
  }
  return 0;
}
