#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "data/pairs/pair_columns.h"
#include "tests/distributed/thread_group.h"
#include "tests/parallel/refusing_allocator.h"
#include "tests/train/bare_task.h"
#include "train/updater.h"

/// What an update measures beside its gradients, and how the optimizer's state travels.
namespace stretto::train {
namespace {

using stretto::test::run_ranks;

constexpr int64_t kWidth = 24;

double curvature(int64_t i) {
  return 0.5 + 1.5 * static_cast<double>(i) / kWidth;
}
double deviation(int64_t i) {
  return i % 2 == 0 ? 1.0 : 0.25;
}

/// Micro-batches of unequal length; each sample is one token and has its own number.
class SampleSource : public data::BatchSource {
 public:
  explicit SampleSource(bool equal) : equal_(equal) {}
  int64_t num_batches() const override { return 1 << 14; }
  data::Batch load(int64_t, int64_t index) const override {
    data::Batch batch = data::pair_batch();
    const int64_t count = equal_ ? 3 : 3 + index % 4;
    for (int64_t i = 0; i < count; ++i) {
      batch.sample_ids.push_back(equal_ ? i : 8 * index + i);
      for (auto* side : {&data::source(batch), &data::target(batch)}) {
        side->values.push_back(i);
        side->offsets.push_back(static_cast<int32_t>(i + 1));
      }
    }
    return batch;
  }

 private:
  bool equal_;
};

/// L(w; x) = 1/2 (w - x)^T H (w - x) with diagonal H and x ~ N(0, diag(v)): the gradient of a
/// sample is H w - H x, so G = H w and Sigma = H diag(v) H.
class QuadraticTask : public stretto::test::BareTask {
 public:
  explicit QuadraticTask(bool equal = false) : source_(equal) {
    w_ = net_->register_parameter("w", torch::empty({kWidth}));
    h_ = torch::empty({kWidth});
    const torch::NoGradGuard no_grad;
    for (int64_t i = 0; i < kWidth; ++i) {
      w_[i] = i % 3 == 0 ? 1.0 : -0.5;
      h_[i] = curvature(i);
    }
  }
  torch::nn::Module& model() override { return *net_; }
  const data::BatchSource& train_batches() override { return source_; }

  static std::vector<double> sample(int64_t id) {
    RandomStream random(mix64(77, static_cast<uint64_t>(id)));
    std::vector<double> x;
    for (int64_t i = 0; i < kWidth; ++i) x.push_back(deviation(i) * random.normal());
    return x;
  }
  /// Sum of the gradients of a micro-batch, in double.
  std::vector<double> gradient(int64_t index) const {
    std::vector<double> sum(kWidth, 0.0);
    for (const int64_t id : source_.load(0, index).sample_ids) {
      const auto x = sample(id);
      for (int64_t i = 0; i < kWidth; ++i) {
        const auto at = static_cast<size_t>(i);
        sum[at] += curvature(i) * ((i % 3 == 0 ? 1.0 : -0.5) - x[at]);
      }
    }
    return sum;
  }

  Sums loss(const Prepared& prepared, const StepContext& context) override {
    const data::Batch& batch = prepared;
    std::vector<float> rows;
    for (const int64_t id : batch.sample_ids) {
      for (const double value : sample(id)) rows.push_back(static_cast<float>(value));
    }
    const auto x = torch::tensor(rows).view({-1, kWidth});
    return sums((0.5 * h_ * (w_ - x).square()).sum() * factor(context.update), batch);
  }
  double factor(int64_t update) const {
    return factors.empty() ? 1 : factors[static_cast<size_t>(update)];
  }

  std::vector<double> factors;  ///< of the loss, by update

 private:
  struct Net : torch::nn::Module {};
  std::shared_ptr<Net> net_ = std::make_shared<Net>();
  torch::Tensor w_, h_;
  SampleSource source_;
};

double square(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

/// How the updates are made.
struct Measurement {
  int ranks = 1;
  int64_t micro_batches = 4;  ///< of an update, over all ranks
  double loss_scale = 1;
  std::string strategy = "all_reduce";
  bool overlap = true, deterministic = false;

  std::string text() const {
    return std::to_string(ranks) + " ranks, " + std::to_string(micro_batches) +
           " micro-batches, scale " + std::to_string(loss_scale) + ", " + strategy +
           (overlap ? ", overlap" : "") + (deterministic ? ", deterministic" : "");
  }
  UpdaterSetup setup() const {
    UpdaterSetup setup;
    setup.train.update_freq = micro_batches;
    setup.train.loss_scale = {.name = "static", .init = loss_scale};
    setup.dist = {.strategy = strategy, .overlap = overlap};
    setup.dist.deterministic = deterministic;
    setup.precision = {.compute = kernels::Compute::kFp32, .name = "fp32", .why = ""};
    return setup;
  }
};

const std::vector<Measurement> kWays{
    {},
    {.loss_scale = 1024},
    {.micro_batches = 2, .loss_scale = 0.125},
    {.ranks = 2, .micro_batches = 2, .loss_scale = 64},  // one each: measured while it is sent
    {.ranks = 2, .micro_batches = 2, .loss_scale = 64, .overlap = false},
    {.ranks = 3, .micro_batches = 3, .loss_scale = 64, .strategy = "sharded"},
    {.ranks = 2, .micro_batches = 6, .loss_scale = 64},
    {.ranks = 2, .micro_batches = 4, .loss_scale = 64, .strategy = "parameter_server"},
    {.ranks = 2, .micro_batches = 2, .loss_scale = 64, .deterministic = true},
};

/// |G|^2 and tr(Sigma) as one update estimates them.
struct Estimates {
  double norm_sq = 0, trace = 0;
};

std::vector<Estimates> measured(const Measurement& way, int64_t updates) {
  std::vector<Estimates> found;
  run_ranks(way.ranks, [&](const distributed::ProcessGroup& group) {
    at::set_num_threads(1);
    QuadraticTask task;
    optim::Arena arena(task.model());
    Updater updater(task, arena, group, way.setup());
    for (int64_t update = 0; update < updates; ++update) {
      updater.noise_scale().restore({});  // the averages of one update are its own estimates
      updater.gradients(update, [] { return 0; });
      if (!group.is_root()) continue;
      EXPECT_EQ(updater.noise_scale().count(), 1);
      found.push_back({updater.noise_scale().norm_sq(), updater.noise_scale().trace()});
    }
  });
  return found;
}

/// The formulas of optim/noise_scale.h on the samples themselves.
Estimates by_hand(const QuadraticTask& task, int64_t first, int64_t count) {
  std::vector<double> sum(kWidth, 0.0);
  double tokens = 0, small_tokens = 0, small_norm_sq = 0;
  for (int64_t index = first; index < first + count; ++index) {
    const auto part = task.gradient(index);
    const auto size = static_cast<double>(3 + index % 4);
    for (size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
    tokens += size;
    if (index == first) {
      small_tokens = size;
      small_norm_sq = square(part) / (size * size);
    }
  }
  const double big_norm_sq = square(sum) / (tokens * tokens);
  return {(tokens * big_norm_sq - small_tokens * small_norm_sq) / (tokens - small_tokens),
          (small_norm_sq - big_norm_sq) / (1 / small_tokens - 1 / tokens)};
}

TEST(UpdaterMeasures, TheNoiseScaleOfAnUpdateIsThatOfItsSamples) {
  const QuadraticTask task;
  for (const Measurement& way : kWays) {
    SCOPED_TRACE(way.text());
    const auto found = measured(way, 12);
    ASSERT_EQ(found.size(), 12U);
    for (size_t update = 0; update < found.size(); ++update) {
      const auto want =
          by_hand(task, static_cast<int64_t>(update) * way.micro_batches, way.micro_batches);
      const double size = std::abs(want.norm_sq) + std::abs(want.trace);
      EXPECT_NEAR(found[update].norm_sq, want.norm_sq, 1e-5 * size);
      EXPECT_NEAR(found[update].trace, want.trace, 1e-5 * size);
    }
  }
}

TEST(UpdaterMeasures, TheNoiseScaleConvergesToThatOfAQuadraticWithKnownCovariance) {
  double norm_sq = 0, trace = 0;
  for (int64_t i = 0; i < kWidth; ++i) {
    const double g = curvature(i) * (i % 3 == 0 ? 1.0 : -0.5), s = curvature(i) * deviation(i);
    norm_sq += g * g;
    trace += s * s;
  }
  for (const Measurement& way : {kWays[1], kWays[3]}) {
    SCOPED_TRACE(way.text());
    const auto found = measured(way, 600);
    const auto count = static_cast<double>(found.size());
    for (const auto member : {&Estimates::norm_sq, &Estimates::trace}) {
      const double truth = member == &Estimates::norm_sq ? norm_sq : trace;
      double sum = 0, squares = 0;
      for (const auto& one : found) {
        sum += one.*member;
        squares += one.*member * (one.*member);
      }
      const double mean = sum / count;
      const double error = std::sqrt((squares / count - mean * mean) / count);
      EXPECT_NEAR(mean, truth, 4 * error);
      EXPECT_LT(error, 0.06 * truth) << "too few updates to tell";
    }
  }
}

TEST(UpdaterMeasures, APartOfAMicroBatchIsNoSmallBatch) {
  const Measurement way{.ranks = 4, .micro_batches = 2};  // two ranks share each
  run_ranks(way.ranks, [&](const distributed::ProcessGroup& group) {
    at::set_num_threads(1);
    QuadraticTask task;
    optim::Arena arena(task.model());
    Updater updater(task, arena, group, way.setup());
    for (int64_t update = 0; update < 3; ++update) updater.gradients(update, [] { return 0; });
    EXPECT_EQ(updater.noise_scale().count(), 0);
  });
}

// The largest gradient is that of a mean: an update of many equal micro-batches is like one.
TEST(UpdaterMeasures, LogmaxDoesNotDependOnTheNumberOfMicroBatches) {
  const std::vector<double> factors{64, 80, 40, 64, 256, 100, 64, 70};
  QuadraticTask alone(/*equal=*/true);
  double largest = 0;
  for (const double value : alone.gradient(0)) largest = std::max(largest, std::abs(value));
  const auto scaler = optim::make_loss_scaler({.name = "logmax"}, 1);
  std::vector<double> table;  // over steps
  for (const double factor : factors) {
    scaler->update({.max_abs = factor * largest});
    table.push_back(scaler->scale());
  }
  EXPECT_LT(table.back(), 4096);
  EXPECT_GT(table.back(), 2);

  for (const auto& strategy : {"all_reduce", "sharded", "parameter_server"}) {
    for (const int ranks : {1, 2}) {
      for (const int64_t update_freq : {1, 4, 16}) {
        Measurement way{.ranks = ranks, .micro_batches = update_freq, .strategy = strategy};
        SCOPED_TRACE(way.text());
        run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
          at::set_num_threads(1);
          QuadraticTask task(/*equal=*/true);
          task.factors = factors;
          optim::Arena arena(task.model());
          auto setup = way.setup();
          setup.train.loss_scale = {.name = "logmax"};
          Updater updater(task, arena, group, setup);
          for (size_t step = 0; step < factors.size(); ++step) {
            updater.scaled(updater.gradients(static_cast<int64_t>(step), [] { return 0; }));
            EXPECT_NEAR(updater.scaler().scale(), table[step], 1e-4 * table[step]) << step;
          }
        });
      }
    }
  }
}

TEST(UpdaterMeasures, CommunicationIsThatOfGradientsAndAfterTheStepOfParametersToo) {
  for (const std::string strategy : {"all_reduce", "sharded", "parameter_server"}) {
    for (const bool deterministic : {false, true}) {
      const Measurement way{.ranks = 2,
                            .micro_batches = 4,
                            .strategy = strategy,
                            .overlap = false,
                            .deterministic = deterministic};
      SCOPED_TRACE(way.text());
      run_ranks(way.ranks, [&](const distributed::ProcessGroup& group) {
        at::set_num_threads(1);
        QuadraticTask task;
        optim::Arena arena(task.model());
        Updater updater(task, arena, group, way.setup());
        for (int64_t update = 0; update < 2; ++update) {
          const auto result = updater.gradients(update, [] { return 0; });
          const double gradients = updater.communication().wait_seconds;
          EXPECT_GT(gradients, 0);
          updater.step(result, 1e-3, 1, update + 1);
          const auto all = updater.communication();
          EXPECT_EQ(all.wait_seconds > gradients, strategy != "all_reduce");
          EXPECT_EQ(all.seconds(), all.wait_seconds) << "nothing is sent beside training";
        }
      });
    }
  }
}

/// Several slices of several blocks each, no two tensors of one size.
class WideTask : public QuadraticTask {
 public:
  WideTask() {
    net_->register_parameter("a", torch::zeros({3, 65536}));
    net_->register_parameter("b", torch::zeros({500, 333}));
    net_->register_parameter("c", torch::zeros({12345}));
  }
  torch::nn::Module& model() override { return *net_; }
  Sums loss(const Prepared& batch, const StepContext& context) override {
    torch::Tensor sum = torch::zeros({});
    for (const auto& parameter : net_->parameters()) {
      const auto slopes =
          torch::arange(parameter.numel(), torch::kFloat32).add(double(context.update)).sin();
      sum = sum + (parameter.flatten() * slopes).sum();
    }
    return sums(sum, batch);
  }

 private:
  struct Net : torch::nn::Module {};
  std::shared_ptr<Net> net_ = std::make_shared<Net>();
};

/// State after two updates of a job, as its rank 0 gathers it; and the most bytes that another rank
/// asked for at once while state was gathered or given out.
struct Gathered {
  std::vector<optim::StateTensor> first, again;  ///< again: scattered to a new job and gathered
  size_t room = 0;
};

Gathered gathered(int ranks, const std::string& strategy, const std::string& optimizer,
                  int64_t chunk) {
  Gathered result;
  const stretto::test::RefusingScope allocator;
  run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
    at::set_num_threads(1);
    WideTask task;
    optim::Arena arena(task.model());
    auto setup = Measurement{.ranks = ranks, .micro_batches = 3, .strategy = strategy}.setup();
    setup.dist.deterministic = true;  // no micro-batch is cut: the gradient is of any one
    setup.optim.name = optimizer;
    setup.state_chunk = chunk;
    const auto make = [&] { return std::make_unique<Updater>(task, arena, group, setup); };
    auto updater = make();
    for (int64_t update = 0; update < 2; ++update) {
      updater->step(updater->gradients(update, [] { return 0; }), 1e-3, 1, update + 1);
    }
    stretto::test::refusal() = {};
    const auto tensors = updater->gather_state();
    const size_t gathering = stretto::test::refusal().largest;
    updater = make();
    stretto::test::refusal() = {};
    updater->scatter_state(tensors);
    const size_t scattering = stretto::test::refusal().largest;
    const auto again = updater->gather_state();
    if (group.is_root()) {
      result.first = tensors;
      result.again = again;
    } else if (group.rank() == 1) {
      EXPECT_TRUE(tensors.empty() && again.empty());
      result.room = std::max(gathering, scattering);
    }
  });
  return result;
}

void expect_same(const std::vector<optim::StateTensor>& got,
                 const std::vector<optim::StateTensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, want[i].name);
    EXPECT_EQ(got[i].flat, want[i].flat);
    EXPECT_TRUE(torch::equal(got[i].values, want[i].values)) << got[i].name;
  }
}

TEST(UpdaterState, TravelsInChunksOfAnySizeWithTheSameBits) {
  constexpr int64_t kWhole = int64_t{1} << 22;
  for (const std::string optimizer : {"adam", "novograd"}) {
    const auto truth = gathered(1, "all_reduce", optimizer, kWhole).first;
    ASSERT_FALSE(truth.empty());
    bool has_values = false;
    for (const auto& tensor : truth) {
      has_values = has_values || (tensor.flat && tensor.values.abs().max().item<float>() > 0);
    }
    EXPECT_TRUE(has_values);
    for (const std::string strategy : {"sharded", "all_reduce"}) {
      for (const int ranks : {2, 3}) {
        const auto whole = gathered(ranks, strategy, optimizer, kWhole);
        if (optimizer == "adam") expect_same(whole.first, truth);  // no sums over ranks in it
        for (const int64_t chunk : {int64_t{10007}, int64_t{65536}, int64_t{262143}}) {
          SCOPED_TRACE(optimizer + ", " + strategy + ", " + std::to_string(ranks) + " ranks, " +
                       std::to_string(chunk));
          const auto got = gathered(ranks, strategy, optimizer, chunk);
          expect_same(got.first, whole.first);
          expect_same(got.again, got.first);
          EXPECT_LE(got.room, static_cast<size_t>(chunk) * sizeof(float) + 4096);
        }
        EXPECT_GT(whole.room, size_t{300000} * sizeof(float));  // what chunks save
      }
    }
  }
}

}  // namespace
}  // namespace stretto::train
