#include "distributed/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/system_info.h"

namespace stretto::distributed {
namespace {

std::string cpu_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return std::string(CPU_SETSIZE, '1');
  std::string mask;
  for (size_t i = 0; i < CPU_SETSIZE; ++i) mask += CPU_ISSET(i, &set) ? '1' : '0';
  return mask;
}

int64_t openmp_limit() {
  const char* wish = std::getenv("OMP_NUM_THREADS");
  const int number = wish == nullptr ? 0 : std::atoi(wish);  // of a list, the outermost level
  return number > 0 ? number : std::numeric_limits<int64_t>::max();
}

bool overlap(const std::string& a, const std::string& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == '1' && b[i] == '1') return true;
  }
  return false;
}

}  // namespace

int64_t threads_for(const ProcessGroup& group, int64_t configured) {
  if (configured > 0) return configured;
  const std::string mask = cpu_mask(), here = machine_id() + " " + host_name();
  int64_t sharers = 0;
  for (const auto& text : group.all_gather_bytes(mask + here)) {
    const size_t cut = std::min<size_t>(CPU_SETSIZE, text.size());
    if (text.substr(cut) == here && overlap(text.substr(0, cut), mask)) ++sharers;
  }
  const int64_t share = usable_cores() / std::max<int64_t>(1, sharers);
  return std::max<int64_t>(1, std::min(share, openmp_limit()));
}

std::string machine_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id.empty() ? host_name() : id;
}

std::string network_place() {
  std::error_code ignored;
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", ignored);
  return machine_id() + " " + network.string();
}

}  // namespace stretto::distributed
