#include "base/system_info.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace stretto {
namespace {

constexpr uint64_t kKiB = 1024;

// Files of /proc and /sys, which may be missing; "" then.
std::string read_or_empty(const std::string& path) {
  try {
    return read_file(path, size_t{16} << 20);
  } catch (const Error&) {
    return "";
  }
}

// The value after `key` and `separator` on its line: "model name : X", "ID=X".
std::string value_of(const std::string& text, std::string_view key, char separator) {
  for (const std::string& line : split(text, '\n')) {
    const size_t at = line.find(separator);
    if (at != std::string::npos && trim(line.substr(0, at)) == key)
      return trim(line.substr(at + 1));
  }
  return "";
}

// A leading number; nullopt for "max" and for an absent file.
std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  return value;
}

// This process's control group of version 2 and those above it: a limit may stand in any of them.
std::vector<std::string> cgroup2_folders() {
  std::vector<std::string> folders;
  for (const std::string& line : split(read_or_empty("/proc/self/cgroup"), '\n')) {
    if (!line.starts_with("0::/")) continue;
    std::string path = line.substr(3);
    while (path.size() > 1) {
      folders.push_back("/sys/fs/cgroup" + path);
      path.resize(std::max<size_t>(1, path.rfind('/')));
    }
  }
  folders.emplace_back("/sys/fs/cgroup");
  return folders;
}

double cpu_quota() {
  double quota = HUGE_VAL;
  for (const std::string& folder : cgroup2_folders()) {
    const std::vector<std::string> words = split(trim(read_or_empty(folder + "/cpu.max")), ' ');
    if (words.size() != 2) continue;
    const auto used = number(words[0]);
    const auto period = number(words[1]);
    if (used && period && *period > 0) {
      quota = std::min(quota, static_cast<double>(*used) / static_cast<double>(*period));
    }
  }
  const auto used = number(read_or_empty("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"));
  const auto period = number(read_or_empty("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  if (used && period && *used > 0 && *period > 0) {
    quota = std::min(quota, static_cast<double>(*used) / static_cast<double>(*period));
  }
  return quota;
}

struct MemoryLimit {
  uint64_t limit = UINT64_MAX;
  uint64_t left = UINT64_MAX;
};

void tighten(MemoryLimit& memory, const std::string& limit_file, const std::string& usage_file) {
  const auto limit = number(read_or_empty(limit_file));
  if (!limit || *limit <= 0) return;
  const auto used = static_cast<uint64_t>(number(read_or_empty(usage_file)).value_or(0));
  const auto bytes = static_cast<uint64_t>(*limit);
  memory.limit = std::min(memory.limit, bytes);
  memory.left = std::min(memory.left, bytes > used ? bytes - used : 0);
}

MemoryLimit cgroup_memory() {
  MemoryLimit memory;
  for (const std::string& folder : cgroup2_folders()) {
    tighten(memory, folder + "/memory.max", folder + "/memory.current");
  }
  const std::string v1 = "/sys/fs/cgroup/memory/memory.";
  tighten(memory, v1 + "limit_in_bytes", v1 + "usage_in_bytes");
  return memory;
}

uint64_t meminfo_bytes(std::string_view key) {
  const std::string value = value_of(read_or_empty("/proc/meminfo"), key, ':');
  return static_cast<uint64_t>(number(value).value_or(0)) * kKiB;
}

}  // namespace

// The kernel's list, not CPUID: an instruction set counts only when the kernel saves its registers.
CpuInfo cpu_info() {
  const std::string text = read_or_empty("/proc/cpuinfo");
  const std::vector<std::string> flags = split(value_of(text, "flags", ':'), ' ');
  const auto has = [&](std::string_view flag) {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  };
  const std::string model = value_of(text, "model name", ':');
  return {.model = model.empty() ? "unknown processor" : model,
          .cores = usable_cores(),
          .avx2 = has("avx2"),
          .fma = has("fma"),
          .f16c = has("f16c"),
          .avx512f = has("avx512f"),
          .avx512_bf16 = has("avx512_bf16"),
          .avx512_vnni = has("avx512_vnni"),
          .avx_vnni = has("avx_vnni"),
          .amx_bf16 = has("amx_bf16"),
          .amx_int8 = has("amx_int8")};
}

std::vector<std::string> CpuInfo::features() const {
  std::vector<std::string> names;
  for (const auto& [name, there] : {std::pair{"AVX2", avx2},
                                    {"FMA", fma},
                                    {"F16C", f16c},
                                    {"AVX-512", avx512f},
                                    {"AVX-512 BF16", avx512_bf16},
                                    {"VNNI", avx512_vnni || avx_vnni},
                                    {"AMX BF16", amx_bf16},
                                    {"AMX INT8", amx_int8}}) {
    if (there) names.emplace_back(name);
  }
  return names;
}

int usable_cores() {
  // The mask is as wide as the kernel's, which may be wider than the 1024 of cpu_set_t.
  std::vector<unsigned long> mask(1024);
  int cores = 0;
  const size_t mask_bytes = mask.size() * sizeof(unsigned long);
  auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
  if (::sched_getaffinity(0, mask_bytes, set) == 0) cores = CPU_COUNT_S(mask_bytes, set);
  if (cores <= 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  const double quota = std::ceil(cpu_quota());
  if (quota < cores) cores = static_cast<int>(quota);
  return std::max(1, cores);
}

uint64_t total_memory_bytes() {
  return std::min(meminfo_bytes("MemTotal"), cgroup_memory().limit);
}

uint64_t available_memory_bytes() {
  return std::min(meminfo_bytes("MemAvailable"), cgroup_memory().left);
}

uint64_t peak_rss_bytes() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * kKiB;
}

std::string host_name() {
  std::array<char, 257> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

std::string system_name() {
  std::string name = value_of(read_or_empty("/etc/os-release"), "PRETTY_NAME", '=');
  std::erase(name, '"');
  if (!name.empty()) name += ", ";
  utsname kernel{};
  if (::uname(&kernel) == 0) name += std::string(kernel.sysname) + " " + kernel.release;
  return name;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

}  // namespace stretto
