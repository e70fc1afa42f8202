#include "dist/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/error.h"
#include "dist/cores.h"
#include "dist/make_group.h"
#include "tests/base/failure.h"

namespace stretto::dist {
namespace {

using Variables = std::map<std::string, std::string>;
using Kind = Launch::Kind;

Launch detect(const Variables& variables) {
  return detect_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const Variables& variables) {
  try {
    detect(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_FALSE(error.advice().empty());
    return error.what();
  }
  return "";
}

TEST(DistLaunch, IsFoundFromWhatEachLauncherSets) {
  struct Row {
    const char* what;
    Variables variables;
    Kind kind;
    int rank, size, local_rank;
  };
  const Row rows[] = {
      {"nobody", {}, Kind::kSingle, 0, 1, 0},
      {"mpirun",
       {{"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_RANK", "3"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}},
       Kind::kMpi,
       3,
       4,
       1},
      {"mpirun of one",
       {{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}},
       Kind::kMpi,
       0,
       1,
       0},
      {"MPICH, Intel MPI, srun --mpi=pmi2",
       {{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}},
       Kind::kMpi,
       1,
       2,
       0},
      {"srun --mpi=pmix",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "5"},
        {"SLURM_STEP_NUM_TASKS", "8"},
        {"PMIX_RANK", "5"},
        {"SLURM_LOCALID", "1"}},
       Kind::kMpi,
       5,
       8,
       1},
      {"a shell inside an allocation of Slurm",
       {{"SLURM_STEP_ID", "0"},
        {"SLURM_PROCID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_NTASKS", "8"}},
       Kind::kSingle,
       0,
       1,
       0},
      {"a batch script of Slurm",
       {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}},
       Kind::kSingle,
       0,
       1,
       0},
      {"torchrun",
       {{"RANK", "2"},
        {"WORLD_SIZE", "4"},
        {"LOCAL_RANK", "2"},
        {"MASTER_ADDR", "h"},
        {"MASTER_PORT", "99"}},
       Kind::kRendezvous,
       2,
       4,
       2},
      {"torchrun of one",
       {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "99"}},
       Kind::kSingle,
       0,
       1,
       0},
      {"a stray RANK", {{"RANK", "7"}}, Kind::kSingle, 0, 1, 0},
      {"mpirun, with variables of torchrun left behind",
       {{"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_RANK", "1"},
        {"RANK", "0"},
        {"WORLD_SIZE", "4"}},
       Kind::kMpi,
       1,
       2,
       0},
      {"told to be alone",
       {{"STRETTO_LAUNCHER", "none"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}},
       Kind::kSingle,
       0,
       1,
       0},
      {"told which of two",
       {{"STRETTO_LAUNCHER", "rendezvous"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"RANK", "1"},
        {"WORLD_SIZE", "4"},
        {"MASTER_ADDR", "h"},
        {"MASTER_PORT", "99"}},
       Kind::kRendezvous,
       1,
       4,
       0},
  };
  for (const auto& row : rows) {
    const Launch launch = detect(row.variables);
    EXPECT_EQ(launch.kind, row.kind) << row.what;
    EXPECT_EQ(launch.rank, row.rank) << row.what;
    EXPECT_EQ(launch.size, row.size) << row.what;
    EXPECT_EQ(launch.local_rank, row.local_rank) << row.what;
  }
}

TEST(DistLaunch, PortOfTheRendezvousAvoidsThatOfTorchrunsStore) {
  Variables variables{
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "500"}};
  EXPECT_EQ(detect(variables).master_port, 500);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  EXPECT_EQ(detect(variables).master_port, 501);
  variables["STRETTO_RENDEZVOUS_PORT"] = "7000";
  EXPECT_EQ(detect(variables).master_port, 7000);
}

TEST(DistLaunch, WhatIsMissingOrWrongIsNamed) {
  EXPECT_NE(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}}).find("MASTER_ADDR is not set"),
            std::string::npos);
  EXPECT_NE(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}}).find("MASTER_PORT"),
            std::string::npos);
  EXPECT_NE(
      refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "9"}})
          .find("rank 2 is not below size 2"),
      std::string::npos);
  EXPECT_NE(refusal({{"OMPI_COMM_WORLD_SIZE", "many"}}).find("OMPI_COMM_WORLD_SIZE"),
            std::string::npos);
  EXPECT_NE(
      refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "70000"}})
          .find("MASTER_PORT"),
      std::string::npos);
  EXPECT_NE(refusal({{"STRETTO_LAUNCHER", "slurm"}}).find("STRETTO_LAUNCHER"), std::string::npos);
  EXPECT_NE(refusal({{"STRETTO_LAUNCHER", "mpi"}}).find("not set"), std::string::npos);
}

TEST(DistLaunch, ProcessesHaveAMinuteToFindEachOtherOrAsLongAsTheyAreTold) {
  const auto with = [](const char* wish) {
    return Environment([wish](const char* name) {
      return std::string(name) == "STRETTO_JOIN_SECONDS" ? wish : nullptr;
    });
  };
  EXPECT_EQ(join_seconds(5, with(nullptr)), 60);
  EXPECT_EQ(join_seconds(300, with(nullptr)), 300);
  EXPECT_EQ(join_seconds(300, with("3")), 3);
  EXPECT_THROW(join_seconds(300, with("soon")), Error);
  EXPECT_THROW(join_seconds(300, with("0")), Error);
}

TEST(DistBackend, FollowsFromOptionsLaunchAndDevice) {
  const Launch alone, mpi{.kind = Kind::kMpi, .size = 2}, mpi_of_one{.kind = Kind::kMpi},
      meeting{.kind = Kind::kRendezvous, .rank = 1, .size = 4, .evidence = "RANK=1 WORLD_SIZE=4"};
  struct Row {
    const char* backend;
    const Launch& launch;
    DeviceKind device;
    int expected;  // a Backend, or -1: refused
  };
  constexpr int kSingle = static_cast<int>(Backend::kSingle),
                kMpi = static_cast<int>(Backend::kMpi), kNccl = static_cast<int>(Backend::kNccl);
  const Row rows[] = {
      {"auto", alone, DeviceKind::kCpu, kSingle},
      {"mpi", alone, DeviceKind::kCpu, kSingle},
      {"auto", mpi, DeviceKind::kCpu, kMpi},
      {"auto", mpi, DeviceKind::kCuda, kNccl},
      {"auto", mpi_of_one, DeviceKind::kCpu, kSingle},
      {"mpi", mpi_of_one, DeviceKind::kCpu, kMpi},
      {"mpi", mpi, DeviceKind::kCuda, -1},
      {"nccl", mpi, DeviceKind::kCpu, -1},
      {"nccl", mpi, DeviceKind::kCuda, kNccl},
      {"single", mpi, DeviceKind::kCpu, -1},
      {"single", mpi_of_one, DeviceKind::kCpu, kSingle},
      {"auto", meeting, DeviceKind::kCuda, kNccl},
      {"auto", meeting, DeviceKind::kCpu, -1},
      {"mpi", meeting, DeviceKind::kCpu, -1},
  };
  for (const auto& row : rows) {
    DistOptions options;
    options.backend = row.backend;
    int got = -1;
    try {
      got = static_cast<int>(choose_backend(options, row.launch, row.device));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      EXPECT_FALSE(error.advice().empty());
    }
    EXPECT_EQ(got, row.expected) << row.backend << " " << row.launch.size;
  }
}

TEST(DistBackend, RanksWithoutMpiOnACpuAreSentToMpirun) {
  const Launch launch{
      .kind = Kind::kRendezvous, .rank = 1, .size = 4, .evidence = "RANK=1 WORLD_SIZE=4"};
  const Error error =
      testing::failure(ExitCode::kUsage, [&] { choose_backend({}, launch, DeviceKind::kCpu); });
  EXPECT_NE(error.message().find("RANK=1 WORLD_SIZE=4 says that this is one of 4 processes"),
            std::string::npos);
  EXPECT_NE(error.advice().find("mpirun -np"), std::string::npos);
}

TEST(DistBackend, RanksThatAreToldToBeSingleAllSayTheSame) {
  const auto said = [](int rank) {
    DistOptions options;
    options.backend = "single";
    const Launch launch{
        .kind = Kind::kMpi, .rank = rank, .size = 2, .evidence = "OMPI_COMM_WORLD_SIZE=2"};
    return testing::failure(ExitCode::kUsage,
                            [&] { choose_backend(options, launch, DeviceKind::kCpu); })
        .message();
  };
  EXPECT_EQ(said(0), said(1)) << "so that it can be told once";
}

TEST(Cores, TheLimitOfOpenMpIsHeeded) {
  const char* before = std::getenv("OMP_NUM_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  ::unsetenv("OMP_NUM_THREADS");
  const int64_t all = threads_for({}, 0);
  struct Row {
    const char* value;
    int64_t expected;
  };
  const Row rows[] = {{"1", 1}, {"1,2", 1}, {"99999", all}, {"0", all}, {"many", all}, {"", all}};
  for (const auto& row : rows) {
    ::setenv("OMP_NUM_THREADS", row.value, 1);
    EXPECT_EQ(threads_for({}, 0), row.expected) << row.value;
    EXPECT_EQ(threads_for({}, 3), 3) << "run.threads decides";
  }
  if (before == nullptr) {
    ::unsetenv("OMP_NUM_THREADS");
  } else {
    ::setenv("OMP_NUM_THREADS", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace stretto::dist
