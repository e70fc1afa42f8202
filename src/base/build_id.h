#pragma once

#include <cstdint>

namespace stretto {

/// A hash of all headers that the part of Stretto which calls it was built from: the program,
/// libstretto_core.so or libstretto_engine.so. Parts of different builds must not hand structures
/// to each other.
///
/// One source, build_id.cpp, is compiled into each part. Hidden, since the dynamic linker would
/// else give all parts the function of the program. See cmake/StrettoBuildId.cmake.
[[gnu::visibility("hidden")]] uint64_t build_id();

/// The same of libstretto_core.so, for the program. That of libstretto_engine.so is
/// EngineApi::build_id.
uint64_t core_build_id();

}  // namespace stretto
