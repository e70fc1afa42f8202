#include "distributed/make_group.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "distributed/launch.h"
#include "tests/base/failure.h"

namespace stretto::distributed {
namespace {

using Kind = Launch::Kind;

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

// `stretto check` puts the place of the key in front, and leaves "KEY: " out for that.
TEST(DistBackend, ABackendThatDoesNotGoWithTheDeviceIsNamedWithItsKeyOnce) {
  const Launch ranks{.kind = Kind::kMpi, .size = 2, .evidence = "OMPI_COMM_WORLD_SIZE=2"};
  const auto said = [&](const std::string& backend, DeviceKind device) {
    DistOptions options;
    options.backend = backend;
    return std::string(
        testing::failure(ExitCode::kUsage, [&] { choose_backend(options, ranks, device); }).what());
  };
  EXPECT_EQ(said("nccl", DeviceKind::kCpu),
            "dist.backend: \"nccl\" works between GPUs, and this run is on a CPU");
  EXPECT_EQ(said("mpi", DeviceKind::kCuda),
            "dist.backend: \"mpi\" sums in host memory, and this run is on GPUs");
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

}  // namespace
}  // namespace stretto::distributed
