#pragma once

#include <string>
#include <string_view>

namespace stretto {

/// Flushes std::cout. Throws Error(kIo) where it did not take all that was printed: behind each
/// answer that somebody may wait for, and at the end of a command.
void flush_stdout();

/// Text of others as it may be printed to std::cout: paths, labels, answers. Where stdout is a
/// terminal, control characters are escaped, so that data cannot control the terminal; pipes and
/// files get the bytes as they are.
std::string shown_on_stdout(std::string_view text);

}  // namespace stretto
