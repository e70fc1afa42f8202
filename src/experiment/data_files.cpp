#include "experiment/data_files.h"

#include <string>
#include <variant>

#include "base/error.h"
#include "base/file.h"
#include "base/system_info.h"
#include "experiment/experiment_schema.h"
#include "experiment/family_spec.h"

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

std::vector<data::DataFile> files_of_path_keys(const Experiment& experiment) {
  Experiment options = experiment;
  std::vector<data::DataFile> files;
  for (const auto& key : experiment_schema(options).keys) {
    if (!key.path.starts_with("data.") || !key.meta.is_path || key.path == kCacheKey) continue;
    for (const auto& path : files_of_key(key)) files.push_back({key.path, path});
  }
  return files;
}

std::vector<data::DataFile> all_data_files_of(const Experiment& experiment) {
  const FamilySpec* family = find_family(experiment);
  const bool has_own = family != nullptr && family->data_files != nullptr;
  return has_own ? family->data_files(experiment) : files_of_path_keys(experiment);
}

std::vector<data::DataFile> data_files_of(const Experiment& experiment) {
  Experiment options = experiment;
  const auto schema = experiment_schema(options);
  auto files = all_data_files_of(experiment);
  std::erase_if(files, [&](const auto& file) {
    const auto* key = schema.find(file.key);
    return key != nullptr && config::is_free(key->meta.change);
  });
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
