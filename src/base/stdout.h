#pragma once

namespace stretto {

/// Flushes std::cout. Throws Error(kIo) where it did not take all that was printed: behind each
/// answer that somebody may wait for, and at the end of a command.
void flush_stdout();

}  // namespace stretto
