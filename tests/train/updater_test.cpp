#include "train/updater.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <functional>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/random.h"
#include "distributed/watch/peer_watch.h"
#include "parallel/embedding_gradients.h"
#include "tests/distributed/thread_group.h"
#include "tests/parallel/difference.h"
#include "tests/parallel/refusing_allocator.h"
#include "tests/train/bare_task.h"
#include "tests/train/pair_source.h"
#include "tests/train/strategies.h"

namespace stretto::train {
namespace {

using stretto::test::difference;
using stretto::test::refusal;
using stretto::test::run_ranks;
using train::test::kStrategies;

constexpr int64_t kMicroBatches = 6, kSentences = 4, kVocabulary = 40;
constexpr double kSame = 1e-6;  // norm of the difference over the norm
/// Micro-batches of so many sentences, of unequal length.
stretto::test::PairSource pairs_of(int64_t sentences) {
  return stretto::test::PairSource({.batches = 4 * kMicroBatches,
                                    .pairs = sentences,
                                    .vocabulary = kVocabulary,
                                    .shortest = 4,
                                    .lengths = 6});
}

/// What of one micro-batch finds no memory.
struct Shortage {
  int64_t update = 0;
  int64_t micro = 0;  ///< of the update, over all ranks
  double where = 0;   ///< 0 = first allocation of its backward, 1 = the last; -1 = in forward
  int64_t fits = kSentences - 1;  ///< parts of it with so many sentences find memory
};

/// A small Transformer that may lack memory.
class ShortTask : public stretto::test::BareTask {
 public:
  explicit ShortTask(int64_t sentences = kSentences)
      : sentences_(sentences), source_(pairs_of(sentences)) {}
  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return source_; }

  Sums loss(const Prepared& batch, const StepContext& context) override {
    refusal() = {};
    const Shortage* shortage = find(batch, context.update);
    if (shortage != nullptr && shortage->where < 0) refusal().nth = 5;
    if (before_loss) before_loss();
    const auto output = model_->loss(
        batch, {.training = true,
                .dropout_key = mix64(context.seed, static_cast<uint64_t>(context.update))});
    refusal() = {.above = backward_above};
    if (shortage != nullptr && shortage->where >= 0) {
      refusal().nth = nth_allocation > 0 ? nth_allocation : nth(batch, context, shortage->where);
    }
    return sums(output.loss_sum, batch);
  }

  std::vector<Shortage> shortages;
  int64_t nth_allocation = 0;  ///< instead of Shortage::where, where it is not 0
  size_t backward_above =
      stretto::test::Refusal::kNone;  ///< every backward lacks memory for more bytes
  std::function<void()> before_loss;

 private:
  const Shortage* find(const data::Batch& batch, int64_t update) const {
    const int64_t micro = batch.sample_ids[0] / sentences_ % kMicroBatches;
    for (const auto& shortage : shortages) {
      if (shortage.update == update && shortage.micro == micro &&
          batch.num_sequences() > shortage.fits) {
        return &shortage;
      }
    }
    return nullptr;
  }
  static int64_t nth(const data::Batch& batch, const StepContext& context, double where);

  std::shared_ptr<models::Seq2SeqModel> model_ = stretto::test::small_transformer(1, kVocabulary);
  int64_t sentences_;
  stretto::test::PairSource source_;
};

/// What the backward of a batch asks an allocator for.
stretto::test::Refusal asked_for(const data::Batch& batch, const StepContext& context,
                                 bool rows_apart = false) {
  const auto before = refusal();
  ShortTask task;
  optim::Arena arena(task.model());
  std::unique_ptr<parallel::EmbeddingGradients> rows;
  if (rows_apart) {
    rows = std::make_unique<parallel::EmbeddingGradients>(arena, distributed::ProcessGroup(),
                                                          task.model());
    rows->begin();
  }
  const auto loss = task.loss(task.prepare(batch), context);
  loss.losses.front().backward();
  return std::exchange(refusal(), before);
}

int64_t ShortTask::nth(const data::Batch& batch, const StepContext& context, double where) {
  // Looked-up rows that are summed apart ask for other memory than a dense gradient.
  const auto last = std::min(asked_for(batch, context, /*rows_apart=*/false).seen,
                             asked_for(batch, context, /*rows_apart=*/true).seen) -
                    1;
  return 1 + static_cast<int64_t>(where * static_cast<double>(last));
}

/// What one update left on one rank.
struct Step {
  torch::Tensor grads;   ///< those that the rank owns
  torch::Tensor params;  ///< after the step
  UpdateResult result;
};
using Steps = std::vector<Step>;

struct UpdaterRank {
  ShortTask task;
  optim::Arena arena;
  Updater updater;

  UpdaterRank(const distributed::ProcessGroup& group, const distributed::DistOptions& options,
              int64_t update_freq = kMicroBatches, int64_t sentences = kSentences)
      : task(sentences),
        arena(task.model()),
        updater(task, arena, group, setup(options, update_freq)) {
    at::set_num_threads(1);
  }

  Step update(int64_t number) {
    Step step{.result = updater.gradients(number, [] { return 0; })};
    refusal() = {};
    const auto owned = updater.owned();
    step.grads = arena.grads().narrow(0, owned.begin, owned.size()).clone();
    updater.step(step.result, 1e-3, 1.0, number + 1);
    step.params = arena.params().clone();
    return step;
  }

 private:
  static UpdaterSetup setup(const distributed::DistOptions& options, int64_t update_freq) {
    UpdaterSetup setup;
    setup.run.seed = 5;
    setup.train.update_freq = update_freq;
    setup.optim.name = "adam";
    setup.dist = options;
    setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
    setup.loading.depth = 2;
    return setup;
  }
};

/// One job: the same updates on all ranks, some of which lack memory.
struct UpdaterJob {
  int size = 1;
  distributed::DistOptions dist;
  int64_t updates = 1;
  int64_t update_freq = kMicroBatches;
  std::vector<Shortage> shortages;
  int64_t nth_allocation = 0;
  int64_t sentences = kSentences;  ///< of a micro-batch
};

std::vector<Steps> run(const UpdaterJob& job) {
  std::vector<Steps> ranks(static_cast<size_t>(job.size));
  run_ranks(job.size, [&](const distributed::ProcessGroup& group) {
    UpdaterRank rank(group, job.dist, job.update_freq, job.sentences);
    rank.task.shortages = job.shortages;
    rank.task.nth_allocation = job.nth_allocation;
    for (int64_t update = 0; update < job.updates; ++update) {
      ranks[static_cast<size_t>(group.rank())].push_back(rank.update(update));
    }
  });
  return ranks;
}

/// The sum over ranks, as they own it.
torch::Tensor gradient(const std::vector<Steps>& ranks, size_t update,
                       const std::string& strategy) {
  if (strategy != "sharded") return ranks[0][update].grads;
  std::vector<torch::Tensor> slices;
  for (const auto& steps : ranks) slices.push_back(steps[update].grads);
  return torch::cat(slices);
}

/// Weights without key biases: their true gradient is zero, and Adam steps by its rounding.
torch::Tensor steady(const torch::Tensor& params) {
  static const std::vector<optim::Arena::Slot> slots = [] {
    ShortTask task;
    return optim::Arena(task.model()).slots();
  }();
  torch::Tensor kept = params.clone();
  int64_t left_out = 0;
  for (const auto& slot : slots) {
    // Key and value, or query, key and value, one after the other.
    const bool self = slot.name.ends_with(".qkv.bias");
    if (!self && !slot.name.ends_with(".kv.bias")) continue;
    optim::Arena::view(kept, slot).chunk(self ? 3 : 2)[self ? 1 : 0].zero_();
    ++left_out;
  }
  EXPECT_EQ(left_out, 3);  // of three attentions
  return kept;
}

/// Gradients, weights and what was counted are the same on every rank, within rounding.
void expect_same(const std::vector<Steps>& got, const std::vector<Steps>& want,
                 const UpdaterJob& job) {
  for (size_t update = 0; update < want[0].size(); ++update) {
    SCOPED_TRACE("update " + std::to_string(update));
    const auto expected =
        gradient(want, update, want.size() == 1 ? "all_reduce" : job.dist.strategy);
    EXPECT_LE(difference(gradient(got, update, job.dist.strategy), expected), kSame);
    const UpdateResult& reference = want[0][update].result;
    for (const auto& steps : got) {
      const UpdateResult& result = steps[update].result;
      EXPECT_LE(difference(steady(steps[update].params), steady(want[0][update].params)), kSame);
      EXPECT_TRUE(torch::equal(steps[update].params, got[0][update].params));
      EXPECT_NEAR(result.totals.loss(), reference.totals.loss(), kSame * reference.totals.loss());
      EXPECT_NEAR(result.grad_norm, reference.grad_norm, kSame * reference.grad_norm);
      EXPECT_EQ(result.totals.weights, reference.totals.weights);
      EXPECT_EQ(result.totals.counts, reference.totals.counts);
      EXPECT_EQ(result.batch_hash, reference.batch_hash);
      EXPECT_TRUE(result.finite);
    }
  }
}

// Rounds of an update: of several micro-batches that fail on one rank each takes one.
int64_t rounds(const UpdaterJob& job, int64_t update) {
  std::map<int64_t, int64_t> of_rank;
  int64_t most = 0;
  for (const auto& shortage : job.shortages) {
    if (shortage.update == update) most = std::max(most, ++of_rank[shortage.micro % job.size]);
  }
  return most;
}

std::string text(const UpdaterJob& job) {
  std::string text = std::to_string(job.size) + " ranks, " + job.dist.strategy +
                     (job.dist.overlap ? ", overlap" : "") +
                     (job.dist.deterministic ? ", deterministic" : "") + ":";
  for (const auto& shortage : job.shortages) {
    text += " micro-batch " + std::to_string(shortage.micro) + " of update " +
            std::to_string(shortage.update) + " at " + std::to_string(shortage.where) + ";";
  }
  return text + " allocation " + std::to_string(job.nth_allocation);
}

class UpdaterTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override {
    set_failpoints("");
    at::set_num_threads(threads_before_);
  }

  // Buckets smaller than most tensors, in each way in which they may leave.
  static std::vector<distributed::DistOptions> ways(const std::string& strategy) {
    distributed::DistOptions overlap{.strategy = strategy, .bucket_bytes = 4096};
    auto after = overlap, ordered = overlap;
    after.overlap = false;
    ordered.deterministic = true;
    return {overlap, after, ordered};
  }

  stretto::test::RefusingScope allocator_;

 private:
  int threads_before_ = at::get_num_threads();
};

/// A group of one that loses a peer when it is asked for the `nth` time.
class LosingTransport : public stretto::test::ThreadTransport {
 public:
  explicit LosingTransport(int nth)
      : ThreadTransport(0, std::make_shared<stretto::test::ThreadChannel>(1)), left_(nth) {}
  void check_peers() const override {
    if (--left_ == 0) throw distributed::PeerLost(1, "rank 1 is lost", "");
  }

 private:
  mutable int left_;
};

TEST_F(UpdaterTest, ALostPeerEndsTheUpdateBeforeTheNextMicroBatch) {
  UpdaterRank rank(distributed::ProcessGroup(std::make_shared<LosingTransport>(4)), {});
  int losses = 0;
  rank.task.before_loss = [&] { ++losses; };
  EXPECT_THROW(rank.updater.gradients(0, [] { return 0; }), distributed::PeerLost);
  EXPECT_EQ(losses, 3);
}

TEST_F(UpdaterTest, NoMemoryInAMicroBatchGivesTheSameUpdateOnAllRanks) {
  const std::vector<std::vector<Shortage>> cases{
      {{.update = 0, .micro = 0, .where = 0}},  // while the order of buckets is learned
      {{.update = 0, .micro = 5, .where = 0.5}},
      {{.update = 1, .micro = 0, .where = -1}},   // in forward
      {{.update = 1, .micro = 5, .where = 0.5}},  // when some buckets have left
      {{.update = 1, .micro = 3, .where = 1}},
      {{.update = 1, .micro = 4, .where = 0.9}, {.update = 1, .micro = 5, .where = 0.4}},
      {{.update = 1, .micro = 0, .where = 0.3}, {.update = 1, .micro = 5, .where = 0.7}},
  };
  const auto single = run({.size = 1, .updates = 3});
  for (int size = 1; size <= 3; ++size) {
    for (const auto& strategy : kStrategies) {
      for (const auto& way : ways(strategy)) {
        const UpdaterJob calm{.size = size, .dist = way, .updates = 3};
        const auto undisturbed = run(calm);
        for (const auto& shortages : cases) {
          UpdaterJob job = calm;
          job.shortages = shortages;
          SCOPED_TRACE(text(job));
          const auto ranks = run(job);
          expect_same(ranks, undisturbed, job);
          expect_same(ranks, single, job);
          for (const auto& steps : ranks) {
            for (int64_t update = 0; update < job.updates; ++update) {
              EXPECT_EQ(steps[static_cast<size_t>(update)].result.split, rounds(job, update));
            }
          }
        }
      }
    }
  }
}

TEST_F(UpdaterTest, AMicroBatchWithAnOddNumberOfSentencesIsSplitWithoutLosingOne) {
  for (const int64_t sentences : {3, 5, 7}) {
    UpdaterJob job{.size = 1, .updates = 2, .sentences = sentences};
    const auto calm = run(job);
    job.shortages = {{.update = 1, .micro = 2, .where = 0.5, .fits = 1}};
    SCOPED_TRACE(text(job) + " " + std::to_string(sentences) + " sentences");
    const auto split = run(job);
    expect_same(split, calm, job);
    EXPECT_EQ(split[0][1].result.split, sentences - 1);
  }
}

// Whatever is half done when memory runs out, nothing of it is left in the redone update.
TEST_F(UpdaterTest, ProcessesThatOutnumberMicroBatchesShareThem) {
  // Whole ones and halves, halves alone, thirds and one rank without work, a part for each
  // sentence, and more parts than there are sentences.
  const std::vector<std::pair<int64_t, int>> cases{{3, 2}, {1, 2}, {2, 5}, {1, 3}, {1, 4}, {1, 6}};
  for (const auto& [update_freq, size] : cases) {
    const auto single = run({.size = 1, .updates = 3, .update_freq = update_freq});
    for (const auto& strategy : kStrategies) {
      for (const auto& way : ways(strategy)) {
        if (way.deterministic) continue;
        const UpdaterJob job{.size = size, .dist = way, .updates = 3, .update_freq = update_freq};
        SCOPED_TRACE(text(job) + " update_freq " + std::to_string(update_freq));
        expect_same(run(job), single, job);
      }
    }
  }
}

TEST_F(UpdaterTest, RanksThatShareAMicroBatchHaveWorkUnlessBitsMustBeTheSame) {
  for (const bool deterministic : {false, true}) {
    std::vector<size_t> sentences(3);
    run_ranks(3, [&](const distributed::ProcessGroup& group) {
      UpdaterRank rank(group, {.deterministic = deterministic}, /*update_freq=*/1);
      rank.update(0);
      for (const data::Batch& batch : rank.updater.batches())
        sentences[static_cast<size_t>(group.rank())] += batch.sample_ids.size();
      for (const auto& at : rank.updater.positions())
        EXPECT_EQ(at, (data::Position{.epoch = 0, .index = 0}));
    });
    EXPECT_EQ(sentences,
              deterministic ? (std::vector<size_t>{4, 0, 0}) : (std::vector<size_t>{1, 2, 1}));
  }
}

TEST_F(UpdaterTest, APartOfAMicroBatchMayLackMemory) {
  const auto single = run({.size = 1, .updates = 2, .update_freq = 1});
  for (const auto& strategy : kStrategies) {
    // Whichever half holds more sentences than fit is cut again.
    UpdaterJob job{.size = 2,
                   .dist = {.strategy = strategy, .bucket_bytes = 4096},
                   .updates = 2,
                   .update_freq = 1};
    job.shortages = {{.update = 1, .micro = 1, .where = -1, .fits = 1}};
    SCOPED_TRACE(text(job));
    const auto ranks = run(job);
    expect_same(ranks, single, job);
    EXPECT_GT(ranks[0][1].result.split, 0);
  }
}

TEST_F(UpdaterTest, AnyAllocationOfABackwardMayFail) {
  const auto batch = pairs_of(kSentences).load(0, 5);
  const int64_t count = asked_for(batch, {.seed = 5, .update = 0}).seen;
  ASSERT_GT(count, 30);
  for (const int size : {1, 2}) {
    UpdaterJob job{.size = size, .dist = ways("all_reduce")[0], .updates = 1};
    const auto undisturbed = run(job);
    job.shortages = {{.update = 0, .micro = 5}};
    for (int64_t nth = 1; nth <= count; nth += size == 1 ? 1 : 7) {
      job.nth_allocation = nth;
      SCOPED_TRACE(text(job));
      const auto ranks = run(job);
      expect_same(ranks, undisturbed, job);
      EXPECT_EQ(ranks[0][0].result.split, 1);
    }
  }
}

TEST_F(UpdaterTest, AHalfThatDoesNotFitIsSplitAgain) {
  for (int size = 1; size <= 3; ++size) {
    UpdaterJob job{.size = size, .dist = ways("all_reduce")[0], .updates = 2};
    const auto undisturbed = run(job);
    job.shortages = {{.update = 1, .micro = 4, .where = 0.5, .fits = 1}};
    SCOPED_TRACE(text(job));
    const auto ranks = run(job);
    expect_same(ranks, undisturbed, job);
    for (const auto& steps : ranks)
      EXPECT_EQ(steps[1].result.split, 3);  // 4 = 2 + 2 = 1 + 1 + 1 + 1
  }
}

// Memory that no whole micro-batch fits into; each of twelve is halved, one after the other.
TEST_F(UpdaterTest, EveryMicroBatchOfAnUpdateMayBeSplit) {
  constexpr int64_t kMany = 2 * kMicroBatches;
  size_t halves = 0, wholes = std::numeric_limits<size_t>::max();
  for (int64_t micro = 0; micro < kMany; ++micro) {
    const auto batch = pairs_of(kSentences).load(0, micro);
    const StepContext context{.seed = 5, .update = 0};
    for (const int64_t begin : {0, 2}) {
      halves = std::max(halves, asked_for(data::part(batch, begin, begin + 2), context).largest);
    }
    wholes = std::min(wholes, asked_for(batch, context).largest);
  }
  ASSERT_LT(halves, wholes);
  UpdaterRank calm({}, ways("all_reduce")[0], kMany),
      short_of_memory({}, ways("all_reduce")[0], kMany);
  short_of_memory.task.backward_above = halves;
  const Step want = calm.update(0), got = short_of_memory.update(0);
  EXPECT_EQ(got.result.split, kMany);
  EXPECT_LE(difference(got.grads, want.grads), kSame);
  EXPECT_LE(difference(steady(got.params), steady(want.params)), kSame);
}

TEST_F(UpdaterTest, ASentenceThatDoesNotFitEndsAllRanksTogether) {
  for (const auto& strategy : kStrategies) {
    for (int size = 1; size <= 3; ++size) {
      std::atomic<int> told = 0;
      run_ranks(size, [&](const distributed::ProcessGroup& group) {
        UpdaterRank rank(group, ways(strategy)[0]);
        rank.task.shortages = {{.update = 0, .micro = 1, .where = 0.5, .fits = 0}};
        try {
          rank.update(0);
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ExitCode::kOutOfMemory);
          EXPECT_NE(error.advice().find("micro-batches smaller"), std::string::npos);
          ++told;
        }
      });
      EXPECT_EQ(told, size) << strategy;
    }
  }
}

TEST_F(UpdaterTest, AnotherErrorEndsTheUpdateAsItIs) {
  UpdaterRank rank({}, {});
  rank.task.before_loss = [] { TORCH_CHECK(false, "unsupported memory format option"); };
  try {
    rank.update(0);
    FAIL() << "nothing was thrown";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("memory format"), std::string::npos);
  }
  EXPECT_EQ(rank.updater.batches().size(), static_cast<size_t>(kMicroBatches));  // none was split
}

TEST_F(UpdaterTest, TheFailpointInBackwardFailsAsTheAllocatorDoes) {
  const auto want = run({.size = 1, .updates = 2});
  ShortTask model;
  const auto tensors = static_cast<int64_t>(optim::Arena(model.model()).slots().size());
  // In the middle of the last micro-batch of the first update.
  const int64_t pass = (kMicroBatches - 1) * tensors + tensors / 2;
  set_failpoints("backward:enomem:" + std::to_string(pass));
  const UpdaterJob job{.size = 1, .updates = 2};
  const auto got = run(job);
  // Gradients up to the failure, of seven parts, and of the next update; and as many micro-batches
  // began, which is a failpoint too.
  const int64_t begun = kMicroBatches + 7 + kMicroBatches;
  EXPECT_EQ(failpoint_passes(),
            static_cast<uint64_t>(pass + (7 + kMicroBatches) * tensors + begun));
  set_failpoints("");
  expect_same(got, want, job);
  EXPECT_EQ(got[0][0].result.split, 1);
  EXPECT_EQ(got[0][1].result.split, 0);
}

TEST_F(UpdaterTest, AFailpointThatIsNotArmedLeavesNoHooks) {
  ShortTask task;
  optim::Arena arena(task.model());
  set_failpoints("other:enomem");
  { const parallel::BackwardFailpoint armed(arena); }
  set_failpoints("");
  { const parallel::BackwardFailpoint unarmed(arena); }
  set_failpoints("backward:enomem:1+");
  task.loss(task.prepare(pairs_of(kSentences).load(0, 0)), {}).losses.front().backward();
  EXPECT_EQ(failpoint_passes(), 0U);
}

/// What a callable throws.
bool throws_out_of_memory(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return parallel::is_out_of_memory(error);
  }
  ADD_FAILURE() << "nothing was thrown";
  return false;
}

TEST(OutOfMemory, IsWhatLibtorchThrowsWithoutMemory) {
  // The CPU allocator's own, from an operator and from within autograd.
  constexpr int64_t kTooMany = int64_t{1} << 60;
  EXPECT_TRUE(throws_out_of_memory([] { torch::empty({kTooMany}, torch::kUInt8); }));
  EXPECT_TRUE(throws_out_of_memory([] {
    const auto leaf = torch::ones({3}, torch::requires_grad());
    const auto loss = leaf.square().sum();
    loss.register_hook([](const torch::Tensor&) { torch::empty({kTooMany}, torch::kUInt8); });
    loss.backward();
  }));
  EXPECT_TRUE(throws_out_of_memory([] { throw std::bad_alloc(); }));
  // As other builds, devices and libraries word it.
  EXPECT_TRUE(throws_out_of_memory([] {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "XPU out of memory. Tried to allocate 2.00 GiB.");
  }));
  for (const char* words :
       {"[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 8388608000000 bytes. Error code 12 (Cannot allocate memory)",
        "[enforce fail at alloc_cpu.cpp:73] data. DefaultCPUAllocator: not enough memory: you "
        "tried "
        "to allocate 8388608000000 bytes.",
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 7.79 GiB",
        "CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"}) {
    EXPECT_TRUE(throws_out_of_memory([&] { TORCH_CHECK(false, words); })) << words;
  }
}

TEST(OutOfMemory, IsWhatCudasAllocatorThrows) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no CUDA device";
  EXPECT_TRUE(throws_out_of_memory(
      [] { torch::empty({int64_t{1} << 50}, torch::device(torch::kCUDA).dtype(torch::kUInt8)); }));
}

TEST(OutOfMemory, AnotherErrorIsNotTakenForIt) {
  for (const char* words : {"unsupported memory format option Preserve",
                            "view size is not compatible with input tensor's size and stride",
                            "The size of tensor a (3) must match the size of tensor b (4)",
                            "CUDA error: an illegal memory access was encountered",
                            "tensors share memory: clone() them first"}) {
    EXPECT_FALSE(throws_out_of_memory([&] { TORCH_CHECK(false, words); })) << words;
  }
  EXPECT_FALSE(throws_out_of_memory([] { torch::ones({3}) + torch::ones({4}); }));
  EXPECT_FALSE(throws_out_of_memory([] { throw std::logic_error("no memory of this"); }));
  // What a lost rank said last is no lack of memory of this one.
  EXPECT_FALSE(throws_out_of_memory([] {
    throw Error(ExitCode::kPeerLost,
                "rank 1 is lost: DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                "64 bytes");
  }));
}

}  // namespace
}  // namespace stretto::train
