#pragma once

#include <functional>
#include <string>

#include "engine/engine_api.h"

/// The one symbol of libstretto_engine.so: engine::kEngineSymbol.
extern "C" const stretto::engine::EngineApi stretto_engine;

namespace stretto::engine {

/// Runs a command of the engine and returns its exit code. What it throws for lack of memory
/// (parallel::is_out_of_memory, whatever library says it and in which words) becomes
/// Error(kOutOfMemory) with `advice` here, where those types are known; the command line sees no
/// libtorch. Everything else passes as it is.
int with_memory_advice(const std::string& advice, const std::function<int()>& command);

}  // namespace stretto::engine
