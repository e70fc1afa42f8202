#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/log_history.h"
#include "base/log_silence.h"
#include "base/system_info.h"
#include "base/text.h"
#include "base/told_error.h"

namespace stretto::log {
namespace {

constexpr size_t kMostWithheld = 8;

// The screen and the log file are one for the process, and so is this.
struct Logger {
  std::mutex mutex;
  ScreenHooks hooks;
  std::string prefix;
  bool quiet = false;
  std::deque<std::string> withheld;
  int fd = -1;
  bool file_failed = false;
};

Logger& logger() {
  static Logger instance;
  return instance;
}

int& silences() {
  thread_local int count = 0;
  return count;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// Every line of a message is made safe for terminals on its own.
std::string safe_lines(std::string_view prefix, std::string_view message) {
  std::string text(prefix);
  bool first = true;
  for (const std::string& line : split(message, '\n')) {
    if (!first) text += '\n';
    text += printable(line, 1 << 20);
    first = false;
  }
  text += '\n';
  return text;
}

void emit(std::string_view prefix, std::string_view message, bool on_screen) {
  Logger& log = logger();
  const std::lock_guard lock(log.mutex);
  const std::string text = safe_lines(log.prefix + std::string(prefix), message);
  if (on_screen || !log.quiet) {
    if (log.hooks.clear != nullptr) log.hooks.clear(log.hooks.context);
    std::fwrite(text.data(), 1, text.size(), stderr);
    if (log.hooks.redraw != nullptr) log.hooks.redraw(log.hooks.context);
  } else {
    for (auto& line : split(trim(text), '\n')) log.withheld.push_back(std::move(line));
    while (log.withheld.size() > kMostWithheld) log.withheld.pop_front();
  }
  if (log.fd >= 0 && !write_all(log.fd, utc_now() + " " + text) && !log.file_failed) {
    // A full disk must not end a training run, nor flood the screen.
    log.file_failed = true;
    const std::string reason = "warning: cannot write the log file; later lines may be missing\n";
    std::fwrite(reason.data(), 1, reason.size(), stderr);
  }
}

}  // namespace

void info(std::string_view message) {
  if (silences() == 0) emit("", message, false);
}
void warn(std::string_view message) {
  if (silences() == 0) emit("warning: ", message, true);
}
void error(std::string_view message) {
  emit(kErrorPrefix, message, true);
}

void open_file(const std::filesystem::path& path) {
  Descriptor file = open_own_file(path, O_WRONLY | O_APPEND);
  Logger& log = logger();
  const std::lock_guard lock(log.mutex);
  if (log.fd >= 0) ::close(log.fd);
  log.fd = file.release();
  log.file_failed = false;
}

void close_file() {
  Logger& log = logger();
  const std::lock_guard lock(log.mutex);
  if (log.fd >= 0) ::close(log.fd);
  log.fd = -1;
}

void set_screen_hooks(ScreenHooks hooks) {
  const std::lock_guard lock(logger().mutex);
  logger().hooks = hooks;
}

void set_prefix(std::string prefix) {
  const std::lock_guard lock(logger().mutex);
  logger().prefix = std::move(prefix);
}

void set_quiet(bool quiet) {
  const std::lock_guard lock(logger().mutex);
  logger().quiet = quiet;
}

bool is_quiet() {
  const std::lock_guard lock(logger().mutex);
  return logger().quiet;
}

Silence::Silence() {
  ++silences();
}
Silence::~Silence() {
  --silences();
}

SilenceLifted::SilenceLifted() : silences_(std::exchange(silences(), 0)) {}
SilenceLifted::~SilenceLifted() {
  silences() = silences_;
}

std::vector<std::string> withheld_lines() {
  const std::lock_guard lock(logger().mutex);
  return {logger().withheld.begin(), logger().withheld.end()};
}

}  // namespace stretto::log
