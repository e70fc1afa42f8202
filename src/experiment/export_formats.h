#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/family_export.h"

/// The formats of `stretto export`: those that families declare (FamilySpec::formats), and one for
/// models of any family.
namespace stretto::experiment {

/// Tensors under our names, of any model, which no family declares (tasks/safetensors_folder.h).
inline constexpr const char* kSafetensorsFormat = "safetensors";

/// Those of all families, each once, and behind them kSafetensorsFormat; formats with classes come
/// first. Words of several families are joined: "encoders of text and language models".
std::vector<ExportFormat> known_export_formats();

/// Those in which a model of an experiment's task is written, kSafetensorsFormat as the last one.
std::vector<ExportFormat> export_formats_of(const Experiment& experiment);

/// Of export_formats_of() the one with this name. Throws Error(kUsage) with the names where there
/// is none.
ExportFormat export_format_of(const Experiment& experiment, const std::string& name);

}  // namespace stretto::experiment
