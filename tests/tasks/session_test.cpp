#include "tasks/session.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace stretto::tasks {
namespace {

/// A group between GPUs, as far as who trains on which goes.
class BetweenGpus : public dist::Transport {
 public:
  int rank() const override { return 5; }
  int size() const override { return 8; }
  const char* name() const override { return "gpus"; }
  bool on_device() const override { return true; }
  int device() const override { return 1; }
  void all_reduce(dist::Buffer) override {}
  void reduce(dist::Buffer, int) override {}
  void broadcast(dist::Buffer, int) override {}
  void reduce_scatter(dist::Buffer, std::span<const int64_t>) override {}
  void all_gather(dist::Buffer, std::span<const int64_t>) override {}
  void exchange(dist::Buffer, dist::Buffer, std::span<const int64_t>) override {}
  std::vector<std::string> all_gather_bytes(const std::string& mine) override { return {mine}; }
  void barrier() override {}
  std::shared_ptr<dist::Transport> duplicate() override { return nullptr; }
};

TEST(Session, TrainsOnTheGpuThatTheGroupJoinedWith) {
  EXPECT_EQ(gpu_of(dist::ProcessGroup(std::make_shared<BetweenGpus>())), at::Device(at::kCUDA, 1));
  EXPECT_EQ(gpu_of({}), at::Device(at::kCUDA));
}

TEST(Session, ProductsOfHalfTypesAreAddedUpInSinglePrecision) {
  experiment::Experiment experiment;
  experiment.run.device = "cpu";
  experiment.run.threads = at::get_num_threads();
  at::globalContext().setAllowFP16ReductionCuBLAS(true);
  at::globalContext().setAllowBF16ReductionCuBLAS(true);
  EXPECT_EQ(prepare_process(experiment), at::kCPU);
  const auto wanted = at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK;
  EXPECT_EQ(at::globalContext().allowFP16ReductionCuBLAS(), wanted);
  EXPECT_EQ(at::globalContext().allowBF16ReductionCuBLAS(), wanted);
}

}  // namespace
}  // namespace stretto::tasks
