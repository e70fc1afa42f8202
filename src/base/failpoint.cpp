#include "base/failpoint.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace stretto {
namespace {

enum class Action { kKill, kTerminate, kErrno, kShortWrite, kThrow, kBug };

struct Rule {
  std::string name;
  Action action = Action::kKill;
  int errno_value = 0;
  uint64_t first = 1;
  bool repeats = false;
  uint64_t passes = 0;
};

struct NamedAction {
  std::string_view name;
  Action action;
  int errno_value;
};
constexpr std::array<NamedAction, 10> kActions{{
    {"kill", Action::kKill, 0},
    {"term", Action::kTerminate, 0},
    {"enospc", Action::kErrno, ENOSPC},
    {"eio", Action::kErrno, EIO},
    {"eintr", Action::kErrno, EINTR},
    {"einval", Action::kErrno, EINVAL},
    {"enomem", Action::kErrno, ENOMEM},
    {"short", Action::kShortWrite, 0},
    {"throw", Action::kThrow, 0},
    {"bug", Action::kBug, 0},
}};

[[noreturn]] void reject(std::string_view text) {
  throw Error(ExitCode::kUsage, "STRETTO_FAILPOINT: cannot understand \"" + printable(text) + "\"",
              "it is for tests: name:action[:n|:n+], action one of kill, term, enospc, eio, "
              "eintr, einval, enomem, short, throw, bug; unset it for real runs");
}

Rule parse_rule(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].empty()) reject(text);
  Rule rule{.name = parts[0]};
  const auto* found = std::find_if(kActions.begin(), kActions.end(),
                                   [&](const NamedAction& a) { return a.name == parts[1]; });
  if (found == kActions.end()) reject(text);
  rule.action = found->action;
  rule.errno_value = found->errno_value;
  if (parts.size() == 3) {
    std::string_view number = parts[2];
    rule.repeats = number.ends_with('+');
    if (rule.repeats) number.remove_suffix(1);
    const char* end = number.data() + number.size();
    const auto result = std::from_chars(number.data(), end, rule.first);
    if (result.ec != std::errc() || result.ptr != end || rule.first == 0) reject(text);
  }
  return rule;
}

// One for the process: failpoints exist to fail places that know nothing of tests.
struct Rules {
  std::once_flag environment_read;
  std::atomic<bool> armed = false;
  std::mutex mutex;
  std::vector<Rule> rules;
  uint64_t passes = 0;

  void set(std::string_view spec) {
    std::vector<Rule> parsed;
    for (const std::string& part : split(spec, ';')) {
      if (!trim(part).empty()) parsed.push_back(parse_rule(trim(part)));
    }
    const std::lock_guard lock(mutex);
    rules = std::move(parsed);
    passes = 0;
    armed = !rules.empty();
  }

  void read_environment() {
    std::call_once(environment_read, [this] {
      if (const char* spec = std::getenv("STRETTO_FAILPOINT")) set(spec);
    });
  }
};

Rules& global_rules() {
  static Rules rules;
  return rules;
}

int pass(std::string_view name, size_t* size) {
  Rules& all = global_rules();
  all.read_environment();
  if (!all.armed.load(std::memory_order_relaxed)) return 0;
  const std::lock_guard lock(all.mutex);
  ++all.passes;
  for (Rule& rule : all.rules) {
    if (rule.name != "*" && rule.name != name) continue;
    ++rule.passes;
    if (rule.repeats ? rule.passes < rule.first : rule.passes != rule.first) continue;
    switch (rule.action) {
      case Action::kKill:
        std::raise(SIGKILL);
        break;
      case Action::kTerminate:
        std::raise(SIGTERM);
        break;
      case Action::kErrno:
        return rule.errno_value;
      case Action::kShortWrite:
        if (size != nullptr && *size > 1) *size /= 2;
        break;
      case Action::kThrow:
        throw std::bad_alloc();
      case Action::kBug:
        throw std::logic_error("failpoint " + std::string(name));
    }
  }
  return 0;
}

}  // namespace

int failpoint(std::string_view name) {
  return pass(name, nullptr);
}

int failpoint(std::string_view name, size_t& size) {
  return pass(name, &size);
}

bool failpoints_armed() {
  global_rules().read_environment();
  return global_rules().armed.load(std::memory_order_relaxed);
}

void set_failpoints(std::string_view spec) {
  global_rules().read_environment();  // so that the environment cannot replace `spec` later
  global_rules().set(spec);
}

uint64_t failpoint_passes() {
  const std::lock_guard lock(global_rules().mutex);
  return global_rules().passes;
}

}  // namespace stretto
