#include "cli/machine.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/engine.h"

namespace stretto::cli {
namespace {

namespace fs = std::filesystem;

std::string first_line_of(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return trim(line);
}

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

// The driver's own library tells more than /proc; it is there wherever CUDA can run at all.
std::vector<Gpu> gpus_of_driver() {
  void* const cuda = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (cuda == nullptr) return {};
  const auto init = symbol<int(unsigned)>(cuda, "cuInit");
  const auto count = symbol<int(int*)>(cuda, "cuDeviceGetCount");
  const auto name = symbol<int(char*, int, int)>(cuda, "cuDeviceGetName");
  const auto memory = symbol<int(size_t*, int)>(cuda, "cuDeviceTotalMem_v2");
  const auto attribute = symbol<int(int*, int, int)>(cuda, "cuDeviceGetAttribute");
  if (!init || !count || !name || !memory || !attribute) return {};
  int devices = 0;
  if (init(0) != 0 || count(&devices) != 0) return {};
  std::vector<Gpu> found;
  for (int device = 0; device < devices; ++device) {
    std::array<char, 128> text{};
    size_t bytes = 0;
    Gpu gpu;
    if (name(text.data(), static_cast<int>(text.size()) - 1, device) == 0) gpu.name = text.data();
    if (memory(&bytes, device) == 0) gpu.memory_bytes = bytes;
    attribute(&gpu.compute_major, 75, device);  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    attribute(&gpu.compute_minor, 76, device);  // …_MINOR
    found.push_back(std::move(gpu));
  }
  return found;
}

std::vector<Gpu> gpus_of_proc() {
  std::vector<Gpu> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    std::ifstream in(entry.path() / "information");
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("Model:")) found.push_back({.name = trim(line.substr(6))});
    }
  }
  return found;
}

std::string mpi_version() {
  void* library = ::dlopen("libmpi.so.40", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) library = ::dlopen("libmpi.so", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return "";
  std::array<char, 8192> text{};  // MPI_MAX_LIBRARY_VERSION_STRING of every MPI is below this
  int length = 0;
  const auto version = symbol<int(char*, int*)>(library, "MPI_Get_library_version");
  if (version == nullptr || version(text.data(), &length) != 0) return "found";
  const std::string line(text.data());
  return line.substr(0, line.find_first_of(",\n"));
}

std::string nccl_version() {
  void* const library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return "";
  int code = 0;
  const auto version = symbol<int(int*)>(library, "ncclGetVersion");
  if (version == nullptr || version(&code) != 0) return "found";
  return "NCCL " + std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

int best_compute(const Machine& machine) {
  int best = 0;
  for (const auto& gpu : machine.gpus) best = std::max(best, gpu.compute_major);
  return best;
}

}  // namespace

Machine look_at_machine(bool with_engine) {
  Machine machine;
  machine.host = host_name();
  machine.system = system_name();
  machine.cpu = cpu_info();
  machine.memory_bytes = total_memory_bytes();
  machine.free_memory_bytes = available_memory_bytes();
  machine.gpus = gpus_of_driver();
  if (machine.gpus.empty()) machine.gpus = gpus_of_proc();
  if (fs::exists("/proc/driver/nvidia/version")) {
    machine.driver = first_line_of("/proc/driver/nvidia/version");
  }
  machine.mpi = mpi_version();
  machine.nccl = nccl_version();
  machine.engine = engine_path().string();
  if (with_engine && !machine.engine.empty()) {
    try {
      machine.engine_text = engine().describe();
      machine.gpu_fallbacks = engine().gpu_fallbacks();
    } catch (const std::exception& error) {
      machine.engine_error = error.what();
    }
  }
  const fs::path cache = user_cache_dir();
  machine.cache_dir = cache.string();
  fs::path there = cache;
  while (!fs::exists(there) && there.has_parent_path() && there != there.parent_path()) {
    there = there.parent_path();
  }
  std::error_code error;
  if (const auto space = fs::space(there, error); !error)
    machine.cache_free_bytes = space.available;
  return machine;
}

std::vector<Precision> precisions(const Machine& machine) {
  const int compute = best_compute(machine);
  std::vector<Precision> list;
  list.push_back({"fp32", machine.cpu.avx2 || compute > 0 ? "fast" : "works",
                  machine.cpu.avx512f ? "AVX-512 kernels"
                  : machine.cpu.avx2  ? "AVX2 kernels"
                                      : "portable kernels, no AVX2"});
  list.push_back({"tf32", compute >= 8 ? "fast" : "no",
                  compute >= 8 ? "tensor cores" : "needs a GPU of compute capability 8 or later"});
  if (compute >= 8) {
    list.push_back({"bf16", "fast", "tensor cores"});
  } else if (machine.cpu.avx512_bf16) {
    list.push_back({"bf16", "fast", "AVX512-BF16"});
  } else {
    list.push_back({"bf16", "works", "no AVX512-BF16 and no GPU: rounded, not faster than fp32"});
  }
  list.push_back({"fp16", compute >= 7 ? "fast" : "works",
                  compute >= 7 ? "tensor cores" : "rounded, not faster than fp32 without a GPU"});
  return list;
}

std::vector<std::string> remedies(const Machine& machine) {
  std::vector<std::string> list;
  if (machine.engine.empty()) {
    list.emplace_back(
        "libstretto_engine.so is not beside the program: `./dev build` builds it; without it there "
        "is no training");
  } else if (!machine.engine_error.empty()) {
    list.push_back("the engine cannot be opened: " + machine.engine_error +
                   "; `./dev build` builds it anew");
  }
  if (!machine.gpus.empty() && machine.engine_text.find("no CUDA") != std::string::npos) {
    list.emplace_back(
        "there is a GPU, and this build has no CUDA: install nvcc 13 and run `./dev build`");
  }
  const char* threads = std::getenv("OMP_NUM_THREADS");
  if (threads != nullptr && std::atoi(threads) > 0 && std::atoi(threads) < machine.cpu.cores) {
    list.push_back("OMP_NUM_THREADS=" + std::string(threads) + " leaves cores idle: unset it (" +
                   std::to_string(machine.cpu.cores) + " may be used)");
  }
  if (first_line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") == "powersave") {
    list.emplace_back(
        "the processor saves power: `cpupower frequency-set -g performance` makes it faster");
  }
  if (machine.gpus.empty() && !machine.cpu.avx2) {
    list.emplace_back("the processor has no AVX2: a newer one is several times faster");
  }
  if (machine.free_memory_bytes < (uint64_t{2} << 30)) {
    list.push_back("only " + human_bytes(machine.free_memory_bytes) +
                   " of memory are free: halve data.max_tokens and double train.update_freq");
  }
  if (machine.cache_free_bytes < (uint64_t{1} << 30)) {
    list.push_back("the disk of " + machine.cache_dir + " has only " +
                   human_bytes(machine.cache_free_bytes) +
                   " free: make room, or set STRETTO_CACHE or data.cache_dir");
  }
  return list;
}

}  // namespace stretto::cli
