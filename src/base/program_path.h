#pragma once

#include <filesystem>

namespace stretto {

/// The file of the running program; empty where /proc does not tell.
std::filesystem::path program_path();

/// A file that is installed with the program: beside it, or in `lib` beside its folder. Empty where
/// there is none.
std::filesystem::path find_beside_program(const char* name);

}  // namespace stretto
