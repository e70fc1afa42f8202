#include "experiment/run_config.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "experiment/load_experiment.h"
#include "store/checkpoint.h"
#include "store/manifest.h"
#include "store/run_record.h"

namespace stretto::experiment {
namespace {

namespace fs = std::filesystem;
using Seal = store::SealedConfig::State;

// A configuration is written in the order of its sections, and this was the last one already when
// there were no seals: a file without it was cut short.
constexpr std::string_view kLastSection = "\n[report]\n";

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw Error(ExitCode::kBadData, path.string() + ": " + what,
              "put the file back from a copy of the run folder; keys that are free to change go on "
              "the command line (decode.beam_size=8), others into a new run");
}

// The hashes in the run's own checkpoints: releases that did not note a second configuration in
// run.json (`--extend` makes one) noted it there.
std::vector<std::string> hashes_in_checkpoints(const fs::path& run_directory,
                                               const std::string& run_id) {
  const store::CheckpointStore checkpoints(run_directory);
  std::vector<std::string> hashes;
  for (const int64_t step : checkpoints.steps()) {
    try {
      const auto manifest = store::Manifest::read(checkpoints.path_of(step));
      if (manifest.run_id == run_id) hashes.push_back(manifest.config_hash);
    } catch (const Error&) {  // whoever loads it says what is wrong with it
      continue;
    }
  }
  return hashes;
}

bool holds(const std::vector<std::string>& hashes, const std::string& hash) {
  return std::find(hashes.begin(), hashes.end(), hash) != hashes.end();
}

bool is_of_run(const fs::path& path, const std::string& toml, const store::RunRecord& record) {
  std::string hash;
  try {
    hash = stated_config_hash(toml, path.string());
  } catch (const Error& error) {
    if (error.code() != ExitCode::kUsage) throw;
    refuse(path,
           std::string("is not the configuration that the run was trained with: ") + error.what());
  }
  return holds(record.config_hashes, hash) ||
         holds(hashes_in_checkpoints(path.parent_path(), record.run_id), hash);
}

}  // namespace

std::string read_run_config(const fs::path& run_directory, Extend extend) {
  const fs::path path = run_directory / "config.toml";
  auto config = store::unseal_config(read_file(path, kMaxSmallTextBytes));
  const auto record = store::read_run_record(run_directory);
  if (!record) return config.toml;
  if (config.state == Seal::kCutShort) refuse(path, "its end is missing: the file was cut short");
  const bool own = config.state == Seal::kUnsealed || config.run_id == record->run_id;
  if (!own) {
    refuse(path, "is the configuration of run " + printable(config.run_id) +
                     ", this folder holds run " + printable(record->run_id));
  }
  if (config.state == Seal::kWhole) return config.toml;
  if (config.state == Seal::kUnsealed && config.toml.find(kLastSection) == std::string::npos) {
    refuse(path, "its end is missing: the file was cut short");
  }
  const bool any_length = extend == Extend::kYes && config.state == Seal::kUnsealed;
  if (!is_of_run(path, config.toml, *record) && !any_length) {
    refuse(path,
           "is not the configuration that the run was trained with (its hash is not that in "
           "run.json)");
  }
  if (config.state == Seal::kChanged) {
    log::warn(path.string() +
              " was changed since Stretto wrote it; the keys that shape training are as they were");
  }
  return config.toml;
}

}  // namespace stretto::experiment
