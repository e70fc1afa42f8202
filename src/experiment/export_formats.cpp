#include "experiment/export_formats.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "experiment/family_spec.h"

namespace stretto::experiment {
namespace {

ExportFormat safetensors_format() {
  return {.name = kSafetensorsFormat, .models = "all models"};
}

std::vector<std::string> names_of(const std::vector<ExportFormat>& formats) {
  std::vector<std::string> names;
  for (const auto& format : formats) names.push_back(format.name);
  return names;
}

/// What the families that write a format say of their models, each text once.
std::string models_written_as(const std::string& name) {
  std::vector<std::string> models;
  for (const auto& family : families()) {
    for (const auto& format : family.formats) {
      const bool is_new = format.name == name && std::ranges::count(models, format.models) == 0;
      if (is_new && !format.models.empty()) models.push_back(format.models);
    }
  }
  return join(models, " and ");
}

}  // namespace

std::vector<ExportFormat> known_export_formats() {
  std::vector<ExportFormat> known;
  for (const auto& family : families()) {
    for (const auto& format : family.formats) {
      if (std::ranges::count(known, format.name, &ExportFormat::name) == 0) known.push_back(format);
    }
  }
  for (auto& format : known) format.models = models_written_as(format.name);
  std::stable_partition(known.begin(), known.end(),
                        [](const ExportFormat& format) { return format.has_classes; });
  known.push_back(safetensors_format());
  return known;
}

std::vector<ExportFormat> export_formats_of(const Experiment& experiment) {
  std::vector<ExportFormat> formats;
  if (const auto* family = find_family(experiment)) formats = family->formats;
  formats.push_back(safetensors_format());
  return formats;
}

ExportFormat export_format_of(const Experiment& experiment, const std::string& name) {
  auto known = export_formats_of(experiment);
  const auto found = std::ranges::find(known, name, &ExportFormat::name);
  if (found != known.end()) return std::move(*found);
  throw Error(ExitCode::kUsage,
              "--format " + name + ": a model of " + experiment.task.name() + " is not written so",
              "formats for it: " + join(names_of(known), ", "));
}

}  // namespace stretto::experiment
