#include "runs/checkpointer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/version.h"
#include "optim/weight_average.h"
#include "runs/average.h"
#include "runs/initial_weights.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::runs {
namespace {

namespace fs = std::filesystem;
using Steps = std::vector<int64_t>;

/// An optimizer that is only its state: two buffers beside the arena, and a few numbers.
class StateOnly : public optim::Optimizer {
 public:
  explicit StateOnly(const optim::Arena& arena)
      : m(torch::zeros({arena.size()})), v(torch::zeros({arena.size()})) {}
  void step(optim::Arena&, const optim::UpdateStep&) override {}
  std::vector<optim::StateTensor> state() override {
    return {{"m", m}, {"v", v}, {"norms", norms, /*flat=*/false}};
  }
  at::Tensor m, v, norms = torch::zeros({3, 2});
};

/// A model whose every number is a function of the step.
struct Lab {
  explicit Lab(int64_t width = 5) : net(width, 3), arena(*net), optimizer(arena) {}

  void set(int64_t step) {
    const torch::NoGradGuard no_grad;
    const auto count = [&](const at::Tensor& like, double first) {
      return torch::arange(like.numel()).view_as(like) + first;
    };
    // Gaps between parameters belong to nobody and stay zero.
    for (const auto& slot : arena.slots()) {
      const auto first = static_cast<double>(100 * step + slot.offset);
      optim::Arena::view(arena.params(), slot).copy_(count(torch::empty(slot.shape), first));
      optim::Arena::view(optimizer.m, slot).fill_(first + 0.25);
      optim::Arena::view(optimizer.v, slot).fill_(first + 0.5);
    }
    optimizer.norms.copy_(count(optimizer.norms, static_cast<double>(step) + 0.75));
    state.step = step;
  }

  bool is_at(int64_t step) const {
    Lab other(net->options.in_features());
    other.set(step);
    return state.step == step && arena.params().equal(other.arena.params()) &&
           optimizer.m.equal(other.optimizer.m) && optimizer.v.equal(other.optimizer.v) &&
           optimizer.norms.equal(other.optimizer.norms);
  }

  torch::nn::Linear net;
  optim::Arena arena;
  StateOnly optimizer;
  TrainState state;
};

class CheckpointerTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { ::testing::internal::CaptureStderr(); }
  void TearDown() override {
    set_failpoints("");
    log_ += ::testing::internal::GetCapturedStderr();
  }
  /// What was logged until now.
  std::string log() {
    log_ += ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return log_;
  }

  std::unique_ptr<Checkpointer> checkpointer(KeepOptions options = {.keep_last = 9}) const {
    return std::make_unique<Checkpointer>(dir_.path(), RunIdentity{"run-1", "c0ffee"}, options,
                                          SaveOptions{.in_background = GetParam()});
  }
  static void save(Checkpointer& to, Lab& lab, int64_t step) {
    lab.set(step);
    to.save(lab.arena, lab.optimizer, lab.state);
  }
  /// Step of the checkpoint that a fresh process takes; -1 when its content is not that step's.
  int64_t restored_step(int64_t width = 5) const {
    Lab lab(width);
    const auto state = checkpointer()->restore(lab.arena, lab.optimizer);
    if (!state) return 0;
    lab.state = *state;
    return lab.is_at(state->step) ? state->step : -1;
  }
  Steps steps() const { return store::CheckpointStore(dir_.path()).steps(); }

  testing::TempDir dir_;
  std::string log_;
};
INSTANTIATE_TEST_SUITE_P(Background, CheckpointerTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? "InTheBackground" : "InTheForeground";
});

TEST_P(CheckpointerTest, AnAverageIsTheModelAndTheTrainedWeightsComeBackToTheArena) {
  Lab lab;
  lab.set(7);
  const at::Tensor average = lab.arena.params() * 0.5;
  auto state = lab.optimizer.state();
  state.push_back({optim::kWeightAverage, average});
  auto saver = checkpointer();
  saver->save(lab.arena, state, lab.state);
  saver->wait();

  Lab evaluated;
  const auto loaded = store::CheckpointStore::load(store::CheckpointStore(dir_.path()).path_of(7));
  load_weights(loaded.file("model"), "here", evaluated.arena);
  EXPECT_TRUE(evaluated.arena.params().equal(average));

  Lab resumed;
  auto fresh = resumed.optimizer.state();
  fresh.push_back({optim::kWeightAverage, torch::zeros({resumed.arena.size()})});
  const auto restored = checkpointer()->restore(resumed.arena, fresh);
  ASSERT_TRUE(restored);
  resumed.state = *restored;
  EXPECT_TRUE(resumed.is_at(7));
  EXPECT_TRUE(fresh.back().values.equal(average));
}

TEST_P(CheckpointerTest, WeightsStateAndCountersComeBack) {
  Lab lab;
  auto saver = checkpointer();
  EXPECT_FALSE(saver->restore(lab.arena, lab.optimizer));
  save(*saver, lab, 7);
  saver->wait();
  EXPECT_FALSE(saver->last_save_failed());
  EXPECT_EQ(restored_step(), 7);
}

TEST_P(CheckpointerTest, WhatChangesAfterwardsIsNotInTheCheckpoint) {
  constexpr int64_t kWidth = 200'000;  // a few megabytes: written long after save() has returned
  Lab lab(kWidth);
  auto saver = checkpointer();
  for (const int64_t step : {1, 2}) {  // the second time the buffers are used again
    save(*saver, lab, step);
    lab.set(1000 + step);
    saver->wait();
    EXPECT_EQ(restored_step(kWidth), step);
  }
}

TEST_P(CheckpointerTest, PiecesKeepTheNamesThatEarlierRunsGaveThem) {
  Lab lab;
  auto saver = checkpointer();
  save(*saver, lab, 3);
  saver->wait();
  const auto loaded = store::CheckpointStore(dir_.path()).load_newest(false);
  ASSERT_TRUE(loaded);
  const auto& file = loaded->file("optimizer");
  for (const char* name : {"m/weight", "m/bias", "v/weight", "v/bias", "norms"}) {
    EXPECT_NE(file.find(name), nullptr) << name;
  }
  EXPECT_EQ(file.tensors().size(), 5U);
  EXPECT_EQ(file.find("m/weight")->shape, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(file.find("norms")->shape, (std::vector<int64_t>{6}));
}

/// A model with running statistics.
struct CountingImpl : torch::nn::Module {
  CountingImpl()
      : weight(register_parameter("weight", torch::ones({2, 2}))),
        mean(register_buffer("mean", torch::zeros({3}))) {}
  at::Tensor weight, mean;
};
TORCH_MODULE(Counting);

TEST_P(CheckpointerTest, RunningStatisticsComeBackAndAreAveraged) {
  Counting model;
  optim::Arena arena(*model);
  StateOnly optimizer(arena);
  auto saver = checkpointer();
  for (const int64_t step : {1, 2}) {
    TrainState state;
    state.step = step;
    model->mean.fill_(static_cast<double>(step));
    saver->save(arena, optimizer, state);
    saver->wait();
  }
  const auto mean = average_last_checkpoints(dir_.path(), 2, {"run-1", "c0ffee"}, "averaged");

  Counting again;
  optim::Arena other(*again);
  StateOnly fresh(other);
  ASSERT_TRUE(checkpointer()->restore(other, fresh));
  EXPECT_TRUE(again->mean.equal(torch::full({3}, 2.0)));
  initialise_from(open_initial_run(mean), other);
  EXPECT_TRUE(again->mean.equal(torch::full({3}, 1.5)));
}

TEST_P(CheckpointerTest, SaysWhatItWasWrittenByAndRefusesAnotherTokenizer) {
  const auto with = [&](const std::string& hash) {
    return Checkpointer(dir_.path(),
                        {.run_id = "run-1",
                         .config_hash = "c0ffee",
                         .world_size = 3,
                         .tokenizer = {{"joint.model", hash}}},
                        {.keep_last = 9}, {.in_background = GetParam()});
  };
  Lab lab;
  auto saver = with("aaaa");
  save(saver, lab, 7);
  saver.wait();
  const auto provenance =
      store::CheckpointStore::load(dir_ / "checkpoints/step_00000007").provenance;
  EXPECT_EQ(provenance.world_size, 3);
  EXPECT_EQ(provenance.stretto, stretto::kVersion);
  EXPECT_EQ(provenance.libtorch, TORCH_VERSION);
  EXPECT_TRUE(with("aaaa").restore(lab.arena, lab.optimizer));
  const Error error =
      testing::failure(ExitCode::kBadData, [&] { with("bbbb").restore(lab.arena, lab.optimizer); });
  for (const char* word : {"joint.model", "aaaa", "bbbb", "step_00000007"}) {
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
  EXPECT_EQ(steps(), Steps{7}) << "the checkpoint is whole and stays where it is";
  initialise_from(open_initial_run(dir_.path()), lab.arena, {{"joint.model", "aaaa"}});
  const Error other = testing::failure(ExitCode::kUsage, [&] {
    initialise_from(open_initial_run(dir_.path()), lab.arena, {{"joint.model", "bbbb"}});
  });
  EXPECT_NE(std::string(other.what()).find("joint.model: SHA-256 bbbb, trained with SHA-256 aaaa"),
            std::string::npos)
      << other.what();
}

TEST_P(CheckpointerTest, SavesComeOneAfterTheOther) {
  Lab lab;
  auto saver = checkpointer();
  for (int64_t step = 1; step <= 6; ++step) {
    save(*saver, lab, step);
    saver->poll();
  }
  saver->wait();
  EXPECT_EQ(steps(), (Steps{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(restored_step(), 6);
}

TEST_P(CheckpointerTest, OlderOnesGoWhenTheNewOneIsThere) {
  Lab lab;
  auto saver = checkpointer({.keep_last = 2, .keep_best = 1});
  lab.state.quality = {{1, -1.0}, {2, -2.0}};
  for (int64_t step = 1; step <= 5; ++step) save(*saver, lab, step);
  saver->wait();
  EXPECT_EQ(steps(), (Steps{1, 4, 5}));
}

TEST_P(CheckpointerTest, TheEndWaitsForTheLastSave) {
  Lab lab(50'000);
  {
    auto saver = checkpointer();
    save(*saver, lab, 1);
  }
  EXPECT_EQ(restored_step(50'000), 1);
}

TEST_P(CheckpointerTest, RestoringWaitsForTheSaveOnItsWay) {
  Lab lab(50'000);
  auto saver = checkpointer();
  save(*saver, lab, 4);
  lab.set(5);
  const auto state = saver->restore(lab.arena, lab.optimizer);
  ASSERT_TRUE(state);
  lab.state = *state;
  EXPECT_TRUE(lab.is_at(4));
}

TEST_P(CheckpointerTest, WhatIsGivenUpIsNamedAndKeptOutOfTheWay) {
  Lab lab;
  auto saver = checkpointer();
  for (int64_t step = 1; step <= 5; ++step) save(*saver, lab, step);
  EXPECT_EQ(saver->steps(), (Steps{1, 2, 3, 4, 5}));  // the last is on its way until it asks
  saver->undo_after(3);
  EXPECT_EQ(saver->steps(), (Steps{1, 2, 3}));
  EXPECT_EQ(restored_step(), 3);
  std::map<std::string, int64_t> undone;
  for (const auto& entry : fs::directory_iterator(dir_ / "checkpoints")) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("undone-")) continue;
    undone[name.substr(0, name.rfind('-', name.rfind('-') - 1))] =
        store::CheckpointStore::load(entry.path()).step;
    EXPECT_NE(log().find(name), std::string::npos) << log_;
  }
  EXPECT_EQ(undone, (std::map<std::string, int64_t>{{"undone-step_00000004", 4},
                                                    {"undone-step_00000005", 5}}));
  save(*saver, lab, 4);
  saver->undo_after(3);  // the same step once more
  EXPECT_EQ(saver->steps(), (Steps{1, 2, 3}));
  saver->undo_after(3);
  EXPECT_EQ(saver->steps(), (Steps{1, 2, 3}));
}

TEST_P(CheckpointerTest, AFailedSaveIsWarnedOfAndTheOneBeforeStays) {
  Lab lab;
  auto saver = checkpointer();
  save(*saver, lab, 1);
  saver->wait();
  set_failpoints("checkpoint.write:enospc");
  save(*saver, lab, 2);
  saver->wait();
  EXPECT_TRUE(saver->last_save_failed());
  EXPECT_NE(log().find("checkpoint of step 2 could not be saved"), std::string::npos) << log_;
  EXPECT_EQ(restored_step(), 1);
  save(*saver, lab, 3);
  saver->wait();
  EXPECT_FALSE(saver->last_save_failed());
  EXPECT_EQ(steps(), (Steps{1, 3}));
  EXPECT_EQ(saver->stats().saves, 3);
  EXPECT_EQ(saver->stats().failed, 1);
}

TEST_P(CheckpointerTest, TheThirdFailureInARowIsThrown) {
  Lab lab;
  auto saver = checkpointer();
  int64_t thrown_at = 0;
  for (int64_t step = 1; step <= 6 && thrown_at == 0; ++step) {
    set_failpoints(step == 3 ? "" : "checkpoint.rename:eio");
    try {
      save(*saver, lab, step);
      saver->wait();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kIo);
      thrown_at = step;
    }
  }
  EXPECT_EQ(thrown_at, 6);
  EXPECT_TRUE(saver->last_save_failed());
  set_failpoints("");
  EXPECT_EQ(restored_step(), 3);
}

TEST_P(CheckpointerTest, PollHearsOfAFailureSoonerOrLater) {
  Lab lab;
  auto saver = checkpointer();
  set_failpoints("checkpoint.fsync:eio");
  save(*saver, lab, 1);
  for (int tries = 0; tries < 20'000 && !saver->last_save_failed(); ++tries) {
    saver->poll();
    ::usleep(1000);
  }
  EXPECT_TRUE(saver->last_save_failed());
  EXPECT_NE(log().find("checkpoint of step 1"), std::string::npos) << log_;
}

TEST_P(CheckpointerTest, WhatIsNoDiskFailureIsThrownAsItIs) {
  Lab lab;
  auto saver = checkpointer();
  set_failpoints("checkpoint.open:throw");
  EXPECT_THROW(
      {
        save(*saver, lab, 1);
        saver->wait();
      },
      std::bad_alloc);
}

TEST_P(CheckpointerTest, OldOnesThatCannotBeRemovedAreNoFailure) {
  Lab lab;
  auto saver = checkpointer({.keep_last = 1, .keep_best = 0});
  save(*saver, lab, 1);
  saver->wait();
  set_failpoints("checkpoint.unlink:eio:1+");
  save(*saver, lab, 2);
  saver->wait();
  EXPECT_FALSE(saver->last_save_failed());
  EXPECT_NE(log().find("could not be removed"), std::string::npos) << log_;
  set_failpoints("");
  EXPECT_EQ(restored_step(), 2);
}

TEST_P(CheckpointerTest, AKillAtAnyCallLeavesTheNewOrTheOneBefore) {
  // The child saves 1, then is killed at the n-th system call of saving 2 and pruning 1.
  for (int64_t n = 1;; ++n) {
    ASSERT_LT(n, 200) << "the failpoints never ran out";
    const testing::TempDir dir;
    const pid_t child = ::fork();
    if (child == 0) {
      log::set_quiet(true);
      Lab lab;
      Checkpointer saver(dir.path(), {"run-1", "c0ffee"}, {.keep_last = 1, .keep_best = 0},
                         {.in_background = GetParam()});
      save(saver, lab, 1);
      saver.wait();
      set_failpoints("*:kill:" + std::to_string(n));
      save(saver, lab, 2);
      saver.wait();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    Lab lab;
    Checkpointer saver(dir.path(), {"run-1", "c0ffee"}, {});
    const auto state = saver.restore(lab.arena, lab.optimizer);
    ASSERT_TRUE(state) << "no checkpoint after a kill at call " << n;
    lab.state = *state;
    EXPECT_TRUE(lab.is_at(state->step)) << "a mixture after a kill at call " << n;
    if (!WIFSIGNALED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      EXPECT_EQ(state->step, 2);
      EXPECT_GT(n, 10) << "the kills did not reach the writer";
      break;
    }
  }
}

TEST_P(CheckpointerTest, ASliceOfTheStateIsRefused) {
  Lab lab;
  auto saver = checkpointer();
  auto tensors = lab.optimizer.state();
  tensors[0].values = tensors[0].values.narrow(0, 0, 16);
  EXPECT_THROW(saver->save(lab.arena, tensors, lab.state), c10::Error);
}

// The state of the bias alone: as a checkpoint has it, and from one of an earlier version, which
// has zeros for the weight too.
TEST_P(CheckpointerTest, AStateOfSomeTensorsComesBackFromOneOfAll) {
  Lab lab;
  const auto& weight = lab.arena.slots().at(0);
  const auto& bias = lab.arena.slots().at(1);
  ASSERT_EQ(weight.name, "weight");
  const optim::HeldElements held(
      std::vector<optim::Slice>{{.begin = bias.offset, .end = lab.arena.size()}});
  const auto some = [&](double value) {
    return optim::StateTensor{
        .name = "v", .values = torch::full({lab.arena.size() - bias.offset}, value), .held = held};
  };
  auto saver = checkpointer();
  lab.state.step = 1;
  saver->save(lab.arena, std::vector<optim::StateTensor>{some(0.75)}, lab.state);
  saver->wait();
  const auto stored = store::CheckpointStore::load(store::CheckpointStore(dir_.path()).path_of(1));
  ASSERT_EQ(stored.file("optimizer").tensors().size(), 1U);
  EXPECT_EQ(stored.file("optimizer").tensors().front().name, "v/bias");
  const std::vector<optim::StateTensor> back{some(0)};
  ASSERT_TRUE(saver->restore(lab.arena, back));
  EXPECT_EQ(back[0].values.narrow(0, 0, bias.numel).min().item<float>(), 0.75F);

  lab.optimizer.v.zero_();
  optim::Arena::view(lab.optimizer.v, bias).fill_(0.5);
  lab.state.step = 2;
  saver->save(lab.arena, lab.optimizer, lab.state);
  saver->wait();
  const std::vector<optim::StateTensor> old{some(0)};
  ASSERT_TRUE(saver->restore(lab.arena, old));
  EXPECT_EQ(old[0].values.narrow(0, 0, bias.numel).min().item<float>(), 0.5F);
}

TEST_P(CheckpointerTest, StateOfAnotherShapeIsNamed) {
  Lab lab;
  auto saver = checkpointer();
  save(*saver, lab, 1);
  saver->wait();
  const auto complaint = [&](optim::StateTensor tensor) -> std::string {
    try {
      saver->restore(lab.arena, std::vector<optim::StateTensor>{std::move(tensor)});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint({"norms", torch::zeros({7}), false}).find("`norms` is [6]"),
            std::string::npos);
  EXPECT_NE(complaint({"rows", torch::zeros({7}), false}).find("`rows` is missing"),
            std::string::npos);
  EXPECT_NE(complaint({"u", torch::zeros({lab.arena.size()})}).find("`weight` is missing"),
            std::string::npos);
}

TEST_P(CheckpointerTest, CountsWhatSavingCosts) {
  Lab lab(50'000);
  auto saver = checkpointer();
  for (int64_t step = 1; step <= 3; ++step) save(*saver, lab, step);
  saver->wait();
  const SaveStats stats = saver->stats();
  EXPECT_EQ(stats.saves, 3);
  EXPECT_EQ(stats.failed, 0);
  EXPECT_GT(stats.write_seconds, 0);
  EXPECT_GT(stats.longest_stall_ms, 0);
  EXPECT_LE(stats.longest_stall_ms, 1000 * stats.stall_seconds + 1e-6);
  EXPECT_GE(3 * stats.longest_stall_ms, 1000 * stats.stall_seconds - 1e-6);
  if (!GetParam()) {
    EXPECT_GE(stats.stall_seconds, stats.write_seconds);
  }
}

TEST(CheckpointerFiles, AreTheSameHoweverTheyWereWritten) {
  const testing::TempDir behind, before;
  for (const auto* dir : {&behind, &before}) {
    Lab lab;
    Checkpointer saver(dir->path(), {"run-1", "c0ffee"}, {}, {.in_background = dir == &behind});
    lab.set(12);
    saver.save(lab.arena, lab.optimizer, lab.state);
  }
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string path = std::string("checkpoints/step_00000012/") + name;
    EXPECT_EQ(read_file(behind / path), read_file(before / path)) << name;
  }
}

}  // namespace
}  // namespace stretto::runs
