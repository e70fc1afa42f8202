#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace stretto::log {

/// Plain lines on stderr, and in the run's log.txt once it is open. A live progress line, when
/// there is one, is cleared before and redrawn after through the hooks, so that lines never
/// interleave.
void info(std::string_view message);
void warn(std::string_view message);   ///< prefixed "warning: "
void error(std::string_view message);  ///< prefixed "error: "

/// Appends every later line, with a UTC time stamp, to this file, which
/// open_own_file() opens (base/descriptor.h). Throws as that does.
void open_file(const std::filesystem::path& path);
/// Ends what `open_file` began; harmless when no file is open.
void close_file();

/// Functions called around each line while a progress line is on the screen; null to remove.
struct ScreenHooks {
  void (*clear)(void* context) = nullptr;
  void (*redraw)(void* context) = nullptr;
  void* context = nullptr;
};
void set_screen_hooks(ScreenHooks hooks);

/// Stands before every line: "rank 3: ".
void set_prefix(std::string prefix);

/// Suppresses info lines on the screen (not in the file); warnings and errors stay.
void set_quiet(bool quiet);
bool is_quiet();

}  // namespace stretto::log
