#include "experiment/data_files.h"

#include <string>
#include <variant>

#include "base/error.h"
#include "base/file.h"
#include "base/system_info.h"
#include "experiment/experiment_schema.h"

namespace stretto::experiment {
namespace {

constexpr const char* kCacheKey = "data.cache_dir";

std::vector<std::string> files_of_key(const config::Key& key) {
  if (const auto* const* many = std::get_if<std::vector<std::string>*>(&key.value)) return **many;
  const auto* const* one = std::get_if<std::string*>(&key.value);
  if (one == nullptr || (*one)->empty()) return {};
  return {**one};
}

}  // namespace

std::vector<data::DataFile> data_files_of(const Experiment& experiment) {
  Experiment options = experiment;
  std::vector<data::DataFile> files;
  for (const auto& key : experiment_schema(options).keys) {
    const auto& meta = key.meta;
    if (!key.path.starts_with("data.") || !meta.is_path || config::is_free(meta.change)) continue;
    for (const auto& path : files_of_key(key)) files.push_back({key.path, path});
  }
  return files;
}

data::DigestSetting digest_setting_of(const Experiment& experiment) {
  Experiment options = experiment;
  data::DigestSetting setting{.threads = usable_cores()};
  const auto schema = experiment_schema(options);
  if (const auto* key = schema.find(kCacheKey)) {
    const auto named = files_of_key(*key);
    try {
      setting.memory_dir =
          (named.empty() ? user_cache_dir() : std::filesystem::path(named.front())) / "hashes";
    } catch (const Error&) {
      // A user without a home folder has no such memory.
    }
  }
  return setting;
}

}  // namespace stretto::experiment
