#include "distributed/launch.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace stretto::distributed {
namespace {

constexpr int kMaxRanks = 1 << 20;

/// The environment, with values checked as they are read.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  std::string text(const char* name) const {
    const char* value = environment_(name);
    return value == nullptr ? "" : value;
  }

  bool has(const char* name) const { return !text(name).empty(); }

  std::optional<int> number(const char* name, int low, int high) const {
    const std::string value = text(name);
    if (value.empty()) return std::nullopt;
    int parsed = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error != std::errc() || end != value.data() + value.size() || parsed < low ||
        parsed > high) {
      throw Error(ExitCode::kUsage,
                  std::string("environment variable ") + name + " must be a number from " +
                      std::to_string(low) + " to " + std::to_string(high) + ", it is `" +
                      printable(value) + "`",
                  "unset it, or start the processes with mpirun, srun or torchrun");
    }
    return parsed;
  }

  /// The first of several variables that is set.
  int first(std::initializer_list<const char*> names, int low, int otherwise) const {
    for (const char* name : names) {
      if (const auto value = number(name, low, kMaxRanks)) return *value;
    }
    return otherwise;
  }

 private:
  const Environment& environment_;
};

void require_rank_below_size(const Launch& launch) {
  if (launch.rank < launch.size) return;
  throw Error(ExitCode::kUsage,
              launch.evidence + ": rank " + std::to_string(launch.rank) + " is not below size " +
                  std::to_string(launch.size),
              "ranks count from 0");
}

// One entry for each family of variables: the first whose size is set decides.
std::optional<Launch> from_mpi(const Reader& env) {
  struct Family {
    const char *size, *rank, *local_rank;
  };
  constexpr Family kFamilies[] = {
      {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"},
  };
  for (const auto& family : kFamilies) {
    const auto size = env.number(family.size, 1, kMaxRanks);
    if (!size) continue;
    return Launch{.kind = Launch::Kind::kMpi,
                  .rank = env.first({family.rank}, 0, 0),
                  .size = *size,
                  .local_rank = env.first({family.local_rank, "SLURM_LOCALID"}, 0, 0),
                  .evidence = std::string(family.size) + "=" + std::to_string(*size)};
  }
  return std::nullopt;
}

// `srun` sets these for each task of a step. A shell inside an allocation is a step of one task.
std::optional<Launch> from_slurm(const Reader& env) {
  if (!env.has("SLURM_STEP_ID") || !env.has("SLURM_PROCID")) return std::nullopt;
  const int size = env.first({"SLURM_STEP_NUM_TASKS"}, 1, 1);
  if (size == 1) return std::nullopt;
  return Launch{.kind = Launch::Kind::kMpi,
                .rank = env.first({"PMIX_RANK", "SLURM_PROCID"}, 0, 0),
                .size = size,
                .local_rank = env.first({"SLURM_LOCALID"}, 0, 0),
                .evidence = "SLURM_STEP_NUM_TASKS=" + std::to_string(size)};
}

std::optional<Launch> from_rendezvous(const Reader& env) {
  const auto rank = env.number("RANK", 0, kMaxRanks);
  const auto size = env.number("WORLD_SIZE", 1, kMaxRanks);
  if (!rank || !size) return std::nullopt;
  Launch launch{
      .kind = Launch::Kind::kRendezvous,
      .rank = *rank,
      .size = *size,
      .local_rank = env.first({"LOCAL_RANK", "SLURM_LOCALID"}, 0, 0),
      .master_address = env.text("MASTER_ADDR"),
      .evidence = "RANK=" + std::to_string(*rank) + " WORLD_SIZE=" + std::to_string(*size)};
  require_rank_below_size(launch);
  if (launch.size == 1) return Launch{.local_rank = launch.local_rank};
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (env.has(name)) continue;
    throw Error(ExitCode::kUsage, launch.evidence + ", but " + name + " is not set",
                "set MASTER_ADDR to the host of rank 0 and MASTER_PORT to a free port there, or "
                "unset RANK and WORLD_SIZE");
  }
  launch.master_port = *env.number("MASTER_PORT", 1, 65535);
  // torchrun keeps the master's port for a store of its own, when it says so.
  if (env.text("TORCHELASTIC_USE_AGENT_STORE") == "True") launch.master_port += 1;
  if (const auto port = env.number("STRETTO_RENDEZVOUS_PORT", 1, 65535)) launch.master_port = *port;
  return launch;
}

}  // namespace

Launch detect_launch(const Environment& environment) {
  const Reader env(environment);
  const std::string wish = env.text("STRETTO_LAUNCHER");
  if (!wish.empty() && wish != "none" && wish != "mpi" && wish != "rendezvous") {
    throw Error(ExitCode::kUsage,
                "STRETTO_LAUNCHER must be none, mpi or rendezvous, it is `" + printable(wish) + "`",
                "unset it: the launcher is then found by itself");
  }
  if (wish == "none") return {};
  std::optional<Launch> found;
  if (wish != "rendezvous") found = from_mpi(env);
  if (!found && wish != "mpi") found = from_rendezvous(env);
  if (!found && wish != "rendezvous") found = from_slurm(env);
  if (!found && !wish.empty()) {
    throw Error(ExitCode::kUsage, "STRETTO_LAUNCHER=" + wish + ", but its variables are not set",
                "unset STRETTO_LAUNCHER, or start the processes with mpirun, srun or torchrun");
  }
  if (!found) return {};
  require_rank_below_size(*found);
  return *found;
}

Launch detect_launch() {
  return detect_launch([](const char* name) -> const char* { return std::getenv(name); });
}

double join_seconds(double timeout_seconds, const Environment& environment) {
  constexpr double kLeast = 60;
  constexpr int kMost = 86'400;
  if (const auto wish = Reader(environment).number("STRETTO_JOIN_SECONDS", 1, kMost)) return *wish;
  return std::max(timeout_seconds, kLeast);
}

double join_seconds(double timeout_seconds) {
  return join_seconds(timeout_seconds,
                      [](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace stretto::distributed
