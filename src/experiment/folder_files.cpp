#include "experiment/folder_files.h"

#include <string>
#include <system_error>
#include <variant>

#include "base/text.h"
#include "experiment/experiment_schema.h"

namespace stretto::experiment {
namespace {

namespace fs = std::filesystem;

/// The path that a key of such a file has; null for other keys, and where it names none.
std::string* path_of(const config::Key& key) {
  if (!key.meta.is_path || key.meta.change != config::Change::kScoring) return nullptr;
  auto* const* path = std::get_if<std::string*>(&key.value);
  return path != nullptr && !(**path).empty() ? *path : nullptr;
}

/// A link could lead anywhere.
bool is_plain_file(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(fs::symlink_status(path, unknown));
}

}  // namespace

void take_files_of_folder(LoadedExperiment& loaded, const fs::path& run_directory) {
  const auto schema = experiment_schema(loaded.options);
  for (const config::Key& key : schema.keys) {
    std::string* path = path_of(key);
    if (path == nullptr || loaded.origins.overridden(key.path)) continue;
    const fs::path own = fs::absolute(run_directory) / fs::path(*path).filename();
    // A configuration that is written with it has to name it.
    if (is_plain_file(own) && is_valid_utf8(own.string())) *path = own.string();
  }
}

std::vector<fs::path> files_of_folder(const Experiment& experiment, const fs::path& run_directory) {
  Experiment options = experiment;
  const fs::path folder = fs::absolute(run_directory).lexically_normal();
  std::vector<fs::path> files;
  for (const config::Key& key : experiment_schema(options).keys) {
    const std::string* path = path_of(key);
    if (path == nullptr) continue;
    const fs::path file = fs::path(*path).lexically_normal();
    if (folder / file.filename() == file && is_plain_file(file)) files.push_back(file);
  }
  return files;
}

}  // namespace stretto::experiment
