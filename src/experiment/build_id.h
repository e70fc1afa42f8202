#pragma once

#include <cstdint>

namespace stretto::experiment {

/// A hash of all headers that a part was built from; each part defines its own. Parts of different
/// builds must not hand structures to each other. See cmake/StrettoBuildId.cmake.
uint64_t core_build_id();     ///< libstretto_core.so
uint64_t engine_build_id();   ///< libstretto_engine.so; others see it as EngineApi::build_id
uint64_t program_build_id();  ///< stretto

}  // namespace stretto::experiment
