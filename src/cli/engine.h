#pragma once

#include <filesystem>

#include "engine/engine_api.h"

namespace stretto::cli {

/// Opens libstretto_engine.so beside the program (or in ../lib), once.
/// Throws Error(kUsage) with the loader's reason when it is not there or does not fit, and when it
/// or libstretto_core.so is of another build than the program.
const engine::EngineApi& engine();

/// The same for experiment/preflight.h: opened when it is asked.
experiment::EngineChecks engine_checks();

/// Where `engine()` would find it; empty when it is not there.
std::filesystem::path engine_path();

}  // namespace stretto::cli
