#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/machine.h"

namespace stretto::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string or_none(const std::string& text) {
  return text.empty() ? "not found" : text;
}

std::string gpu_text(const Gpu& gpu) {
  std::string text = gpu.name;
  if (gpu.memory_bytes > 0) text += ", " + human_bytes(gpu.memory_bytes);
  if (gpu.compute_major > 0) {
    text += ", compute capability " + std::to_string(gpu.compute_major) + "." +
            std::to_string(gpu.compute_minor);
  }
  return text;
}

std::string engine_text(const Machine& machine) {
  if (machine.engine.empty()) return "not found";
  if (!machine.engine_error.empty()) return "cannot be opened";
  return machine.engine_text.empty() ? machine.engine : machine.engine_text;
}

void print_doctor_text(const Machine& machine) {
  const auto row = [](const std::string& label, const std::string& value) {
    std::string padded = label;
    padded.resize(11, ' ');
    std::cout << "  " << padded << printable(value, 1000) << "\n";
  };
  std::cout << "stretto " << kVersion << " on " << machine.host << "\n";
  row("system", machine.system);
  row("processor", machine.cpu.model);
  row("features", or_none(join(machine.cpu.features(), " ")));
  row("cores", std::to_string(machine.cpu.cores) + " that this process may use");
  row("memory",
      human_bytes(machine.memory_bytes) + ", " + human_bytes(machine.free_memory_bytes) + " free");
  if (machine.gpus.empty()) row("GPU", "none");
  for (const auto& gpu : machine.gpus) row("GPU", gpu_text(gpu));
  if (!machine.driver.empty()) row("driver", machine.driver);
  row("engine", engine_text(machine));
  row("MPI", or_none(machine.mpi));
  row("NCCL", or_none(machine.nccl));
  row("cache", machine.cache_dir + ", " + human_bytes(machine.cache_free_bytes) + " free");
  std::cout << "\nArithmetic here\n";
  for (const auto& one : precisions(machine)) row(one.name, one.verdict + ": " + one.why);
  if (!machine.gpu_fallbacks.empty()) {
    std::cout << "\nOperators without a kernel on a GPU (plain libtorch operations there)\n  "
              << join(machine.gpu_fallbacks, ", ") << "\n";
  }
  const auto advice = remedies(machine);
  std::cout << "\nWhat would make it faster\n";
  for (const auto& line : advice) std::cout << "  - " << printable(line, 2000) << "\n";
  if (advice.empty()) std::cout << "  nothing that this program knows of\n";
}

void print_doctor_json(const Machine& machine) {
  Json json{{"version", kVersion},
            {"host", machine.host},
            {"system", machine.system},
            {"cpu", machine.cpu.model},
            {"cpu_features", machine.cpu.features()},
            {"cores", machine.cpu.cores},
            {"memory_bytes", machine.memory_bytes},
            {"available_memory_bytes", machine.free_memory_bytes},
            {"gpus", Json::array()},
            {"engine", machine.engine},
            {"engine_text", machine.engine_text},
            {"engine_error", machine.engine_error},
            {"gpu_fallbacks", machine.gpu_fallbacks},
            {"mpi", machine.mpi},
            {"nccl", machine.nccl},
            {"cache_dir", machine.cache_dir},
            {"cache_free_bytes", machine.cache_free_bytes},
            {"precisions", Json::object()},
            {"advice", remedies(machine)}};
  for (const auto& gpu : machine.gpus) {
    json["gpus"].push_back({{"name", gpu.name},
                            {"memory_bytes", gpu.memory_bytes},
                            {"compute_capability", std::to_string(gpu.compute_major) + "." +
                                                       std::to_string(gpu.compute_minor)}});
  }
  for (const auto& one : precisions(machine)) {
    json["precisions"][one.name] = {{"verdict", one.verdict}, {"why", one.why}};
  }
  std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

}  // namespace

std::function<int()> declare_doctor(CLI::App& app) {
  struct Options {
    bool json = false, quick = false;
  };
  auto options = std::make_shared<Options>();
  app.add_flag("--json", options->json, "one JSON object on stdout");
  app.add_flag("--quick", options->quick, "do not open libtorch, which takes a third of a second");
  return [options] {
    const Machine machine = look_at_machine(!options->quick);
    options->json ? print_doctor_json(machine) : print_doctor_text(machine);
    return 0;
  };
}

}  // namespace stretto::cli
