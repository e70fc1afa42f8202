#pragma once

#include <filesystem>
#include <string_view>

namespace stretto {

/// Turns errno into Error(kIo, "<action> <path>: <strerror>") with a remedy for ENOSPC, EDQUOT,
/// EACCES, EROFS and EMFILE.
[[noreturn]] void throw_io_error(std::string_view action, const std::filesystem::path& path,
                                 int errno_value);

}  // namespace stretto
