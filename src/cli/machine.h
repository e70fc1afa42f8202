#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/system_info.h"

namespace stretto::cli {

struct Gpu {
  std::string name;
  uint64_t memory_bytes = 0;  ///< 0 = not known
  int compute_major = 0, compute_minor = 0;
};

/// What `stretto doctor` looks at. A library that is not there has an empty string.
struct Machine {
  std::string host, system;
  CpuInfo cpu;
  uint64_t memory_bytes = 0, free_memory_bytes = 0;
  std::vector<Gpu> gpus;
  std::string driver;        ///< of the GPUs, "580.65"
  std::string engine;        ///< path of libstretto_engine.so
  std::string engine_text;   ///< what it says of itself
  std::string engine_error;  ///< why it could not be opened
  /// Operators that take their reference on a GPU; none in a build without CUDA.
  std::vector<std::string> gpu_fallbacks;
  std::string mpi, nccl;
  std::string cache_dir;
  uint64_t cache_free_bytes = 0;
};

/// @param with_engine  open libtorch too, which takes a third of a second
Machine look_at_machine(bool with_engine);

struct Precision {
  std::string name;     ///< as train.precision has it
  std::string verdict;  ///< "fast", "works", "no"
  std::string why;
};

/// How fast each kind of arithmetic is here.
std::vector<Precision> precisions(const Machine& machine);

/// What would make this machine faster, or is amiss; empty = nothing.
std::vector<std::string> remedies(const Machine& machine);

}  // namespace stretto::cli
