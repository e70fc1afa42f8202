#pragma once

#include <string>
#include <string_view>

/// The terminal at stderr, for code that draws a live line on it.
namespace stretto::report {

/// Begins a line anew: to the left margin, the rest erased.
inline constexpr std::string_view kEraseLine = "\r\x1b[K";

/// Whether stderr is a terminal that knows kEraseLine (TERM is not "dumb"), and no one asked for
/// silence (log::set_quiet).
bool live_lines_wanted();

/// NO_COLOR is not set (no-color.org: any value that is not empty counts).
bool colour_wanted();

/// Columns that a line may have; asked anew for every drawing, so that a resized window needs no
/// signal handler.
int terminal_columns();

/// All of it in one write where the system lets it, or another program's output could come between.
/// A terminal that is gone is no failure.
void write_stderr(std::string_view bytes);

/// Dims the separators "·", so that the numbers stand out on any background.
std::string decorated(const std::string& line);

}  // namespace stretto::report
