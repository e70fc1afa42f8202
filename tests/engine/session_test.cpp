#include "engine/session.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include "families/translation/translation_options.h"
#include "tests/base/failure.h"
#include "tests/distributed/thread_group.h"

namespace stretto::engine {
namespace {

/// A group between GPUs, as far as who trains on which goes.
class BetweenGpus : public distributed::Transport {
 public:
  int rank() const override { return 5; }
  int size() const override { return 8; }
  const char* name() const override { return "gpus"; }
  bool on_device() const override { return true; }
  int device() const override { return 1; }
  void all_reduce(distributed::Buffer) override {}
  void reduce(distributed::Buffer, int) override {}
  void broadcast(distributed::Buffer, int) override {}
  void reduce_scatter(distributed::Buffer, std::span<const int64_t>) override {}
  void all_gather(distributed::Buffer, std::span<const int64_t>) override {}
  void exchange(distributed::Buffer, distributed::Buffer, std::span<const int64_t>) override {}
  std::vector<std::string> all_gather_bytes(const std::string& mine) override { return {mine}; }
  void barrier() override {}
  std::shared_ptr<distributed::Transport> duplicate() override { return nullptr; }
};

TEST(Session, TrainsOnTheGpuThatTheGroupJoinedWith) {
  EXPECT_EQ(gpu_of(distributed::ProcessGroup(std::make_shared<BetweenGpus>())),
            at::Device(at::kCUDA, 1));
  EXPECT_EQ(gpu_of({}), at::Device(at::kCUDA));
}

TEST(Session, ProcessesMayDifferInPathsAndInWhatIsTheirOwn) {
  stretto::test::run_ranks(2, [](const distributed::ProcessGroup& group) {
    experiment::Experiment own;
    if (group.rank() == 1) {
      own.run.threads = 3;
      own.run.name = "second";
      own.report.tensorboard = false;
      own.report.html = false;
      own.report.html_seconds = 5;
      experiment::translation_of(own).data.prefetch = 2;
      experiment::translation_of(own).data.train_src = {"/of/this/machine/train.src"};
    }
    EXPECT_NO_THROW(require_same_start(own, group)) << "rank " << group.rank();
  });
}

TEST(Session, ProcessesDifferInNothingElse) {
  const auto start = [] {
    stretto::test::run_ranks(2, [](const distributed::ProcessGroup& group) {
      experiment::Experiment own;
      own.run.threads = 1 + group.rank();
      own.eval.every = 10 + group.rank();
      own.report.every = 20 + group.rank();
      require_same_start(own, group);
    });
  };
  const auto error = stretto::testing::failure(ExitCode::kUsage, start);
  EXPECT_EQ(std::string(error.what()),
            "the processes were not started alike: eval.every: 10 on rank 0; 11 on rank 1\n"
            "report.every: 20 on rank 0; 21 on rank 1");
}

TEST(Session, OperatorsWithoutAKernelAreNamedInOneLineOrNotAtAll) {
  EXPECT_EQ(text_of_fallbacks({}), "");
  EXPECT_EQ(text_of_fallbacks({"rotary", "glu"}),
            "operators without a kernel on a GPU, which run as plain libtorch operations there: "
            "rotary, glu");
}

TEST(Session, OfACpuNothingIsSaid) {
  ::testing::internal::CaptureStderr();
  tell_of_fallbacks(at::kCPU);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
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
}  // namespace stretto::engine
