#include "distributed/launch.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/base/failure.h"

namespace stretto::distributed {
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
  return testing::failure(ExitCode::kUsage, [&] { detect(variables); }).what();
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

}  // namespace
}  // namespace stretto::distributed
