#include "search/trial_data.h"

#include "base/error.h"
#include "experiment/data_files.h"

namespace stretto::search {
namespace {

// The configuration of a point is read once for all points with the same values of `[data]`.
std::string data_values_of(const SearchPlan& plan, const Point& point) {
  std::string text;
  const auto& parameters = plan.space.parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].key.starts_with("data.")) continue;
    text += parameters[i].key + "=" + point[i].value_or("") + "\n";
  }
  return text;
}

}  // namespace

TrialData::TrialData(const std::filesystem::path& directory, bool accept)
    : data_(directory, "the search in " + directory.string() + " began", accept) {}

void TrialData::require(const SearchPlan& plan, const Point& point) {
  const auto [entry, is_new] = known_.try_emplace(data_values_of(plan, point));
  auto& [files, setting] = entry->second;
  if (is_new) {
    try {
      const auto experiment = experiment_of(plan, point).options;
      files = experiment::data_files_of(experiment);
      setting = experiment::digest_setting_of(experiment);
    } catch (const Error&) {
      known_.erase(entry);  // the trial itself says what is wrong, should it train again
      return;
    }
  }
  data_.require(files, setting);
}

}  // namespace stretto::search
