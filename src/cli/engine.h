#pragma once

#include <filesystem>

#include "engine/engine_api.h"

namespace stretto::cli {

/// Opens libstretto_engine.so beside the program (or in ../lib), once.
/// Throws Error(kUsage) with the loader's reason when it is not there or does not fit, and when it
/// or libstretto_core.so is of another build than the program.
const engine::EngineApi& engine();

/// Begins to open it on a thread of its own, while a command does what needs no tensors: to load
/// libtorch takes longer than to read small data. engine() then waits for it, and throws what went
/// wrong. For a command that starts no other process.
void begin_to_open_engine();

/// Whether it is open, or is being opened. The process then ends by std::_Exit(): nothing may be
/// taken apart while it is being put together.
bool is_engine_begun();

/// The same for experiment/preflight.h: opened when it is asked.
experiment::EngineChecks engine_checks();

/// Where `engine()` would find it; empty when it is not there.
std::filesystem::path engine_path();

}  // namespace stretto::cli
