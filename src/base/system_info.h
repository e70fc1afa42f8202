#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto {

/// What this machine's processor offers, as far as Stretto has a use for it. Linux only; the
/// instruction sets are those of x86-64 and false elsewhere.
struct CpuInfo {
  std::string model;
  int cores = 1;  ///< usable_cores()
  bool avx2 = false, fma = false, f16c = false;
  bool avx512f = false, avx512_bf16 = false, avx512_vnni = false, avx_vnni = false;
  bool amx_bf16 = false, amx_int8 = false;

  std::vector<std::string> features() const;  ///< names for people of those that are there
};
CpuInfo cpu_info();

/// Cores that this process may use: the CPU affinity mask, cut by the control group's CPU quota
/// (versions 1 and 2), rounded up; at least 1.
int usable_cores();

uint64_t total_memory_bytes();      ///< of the machine, or the control group's limit if lower
uint64_t available_memory_bytes();  ///< before the system would swap, or the control group kill
uint64_t peak_rss_bytes();          ///< largest resident set of this process so far

std::string host_name();    ///< "localhost" when the machine has none
std::string system_name();  ///< "Debian GNU/Linux 12 (bookworm), Linux 6.1.0-18-amd64"
std::string utc_now();      ///< "2026-03-01T12:34:56Z"

}  // namespace stretto
