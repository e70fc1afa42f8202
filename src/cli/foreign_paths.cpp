#include "cli/foreign_paths.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "data/byte_stream.h"
#include "data/listed_files.h"
#include "data/manifest.h"
#include "experiment/data_files.h"
#include "experiment/experiment_schema.h"
#include "store/owner_mark.h"
#include "store/run_record.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kData = "data.";
constexpr std::string_view kCacheKey = "data.cache_dir";
constexpr size_t kMostShown = 6;  // paths in a message

// Behind links, which an archive may hold too.
bool lies_within(const std::string& path, const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  const fs::path file = fs::weakly_canonical(data::parse_input_path(path).file, error);
  if (error) return false;
  const auto [end, ignored] = std::mismatch(whole.begin(), whole.end(), file.begin(), file.end());
  return end == whole.end();
}

bool is_own(const fs::path& run_directory) {
  return store::unseal_config(read_file(run_directory / "config.toml", kMaxSmallTextBytes))
      .is_own();
}

// Whether a manifest, or a folder with a link in it, leads out of the run folder. Who cannot be
// looked at might.
bool leads_out(const data::DataFile& file, const fs::path& run_directory) {
  try {
    if (file.kind == data::DataKind::kTree) data::ListedFiles(file, 1);
    if (file.kind != data::DataKind::kManifest) return false;
    const auto named = data::files_named_by(file);
    return std::any_of(named.begin(), named.end(),
                       [&](const auto& one) { return !lies_within(one.path, run_directory); });
  } catch (const Error&) {
    return true;
  }
}

ForeignPath taken_from(const config::Key& key, const std::vector<data::DataFile>& files,
                       const fs::path& run_directory) {
  ForeignPath taken{.key = key.path, .paths = {}};
  const auto is_foreign = [&](const std::string& path) {
    if (key.path == kCacheKey || !lies_within(path, run_directory)) return true;
    // Of a folder, a family may name a file in it: one that names others.
    return std::any_of(files.begin(), files.end(), [&](const auto& file) {
      return file.key == key.path && (file.path == path || lies_within(file.path, path)) &&
             leads_out(file, run_directory);
    });
  };
  if (auto* const* one = std::get_if<std::string*>(&key.value); one != nullptr) {
    if ((**one).empty() || !is_foreign(**one)) return taken;
    taken.paths.push_back(std::exchange(**one, ""));
  } else if (auto* const* many = std::get_if<std::vector<std::string>*>(&key.value)) {
    if (std::none_of((*many)->begin(), (*many)->end(), is_foreign)) return taken;
    taken.paths = std::exchange(**many, {});  // some of its files are no data by themselves
  }
  return taken;
}

bool is_scored_by_default(const std::string& key) {
  const std::string leaf = key.substr(key.rfind('.') + 1);
  return key.starts_with(kData) && (leaf.starts_with("test") || leaf.starts_with("valid"));
}

bool is_test_key(const std::string& key) {
  return key.starts_with(kData) && key.substr(key.rfind('.') + 1).starts_with("test");
}

std::string shown(const ForeignPath& taken) {
  std::vector<std::string> paths;
  for (const auto& path : taken.paths) paths.push_back(printable(path, 1000));
  if (paths.size() > kMostShown) {
    paths.resize(kMostShown);
    paths.emplace_back("…");
  }
  return taken.key + " = " + join(paths, ", ");
}

}  // namespace

std::vector<ForeignPath> take_foreign_paths(experiment::LoadedExperiment& experiment,
                                            const fs::path& run_directory, KeepPaths keep) {
  std::vector<ForeignPath> taken;
  if (is_own(run_directory)) return taken;
  const auto files = experiment::all_data_files_of(experiment.options);
  auto schema = experiment::experiment_schema(experiment.options);
  for (const auto& key : schema.keys) {
    const bool is_data = key.path.starts_with(kData);
    if (!key.meta.is_path || !is_data || experiment.origins.overridden(key.path)) continue;
    if (keep == KeepPaths::kData && key.path != kCacheKey) continue;
    auto one = taken_from(key, files, run_directory);
    if (!one.paths.empty()) taken.push_back(std::move(one));
  }
  return taken;
}

void require_own_data(const std::vector<ForeignPath>& taken,
                      const experiment::LoadedExperiment& experiment, const fs::path& run_directory,
                      const std::string& option) {
  auto options = experiment.options;
  for (const auto& key : experiment::experiment_schema(options).keys) {
    if (is_test_key(key.path) && experiment.origins.overridden(key.path)) return;
  }
  std::vector<std::string> named;
  for (const auto& one : taken) {
    if (is_scored_by_default(one.key)) named.push_back(shown(one));
  }
  if (named.empty()) return;
  throw Error(ExitCode::kUnsafe,
              (run_directory / "config.toml").string() +
                  ": names the data to score, outside of the run folder, and does not have your "
                  "mark, so that somebody else may have written it: " +
                  join(named, "; "),
              "name the data on the command line, if you mean it: " + option +
                  "; or let `stretto train` go on with a run of yours, which marks it. The key of "
                  "the mark is " +
                  printable(store::owner_key_path().native(), 1000));
}

void tell_of_foreign_cache(const std::vector<ForeignPath>& taken) {
  for (const auto& one : taken) {
    if (one.key != kCacheKey) continue;
    log::info(shown(one) +
              " of config.toml is not used, since the file does not have your mark; give the key "
              "on the command line if you mean it");
  }
}

}  // namespace stretto::cli
