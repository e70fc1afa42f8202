// Fuzz target: a configuration file and overrides, from bytes to rules. A NUL byte ends the file;
// what follows are overrides, separated by NUL bytes. Every outcome but an experiment or an Error
// is a bug, and a resolved copy must read back to itself.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "experiment/load_experiment.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stretto;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto parts = split(input, '\0');
  const std::vector<std::string> overrides(parts.begin() + (parts.empty() ? 0 : 1), parts.end());
  const std::string text = parts.empty() ? "" : parts.front();
  try {
    const auto loaded = experiment::load_stored_experiment(text, "/nowhere/config.toml", overrides);
    const auto again =
        experiment::load_stored_experiment(loaded.resolved_toml, "/elsewhere/config.toml", {});
    if (again.resolved_toml != loaded.resolved_toml || again.config_hash != loaded.config_hash) {
      std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
