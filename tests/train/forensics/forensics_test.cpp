#include "train/forensics/forensics.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "nn/batch_norm.h"
#include "nn/embedding.h"
#include "parallel/gradient_reducer.h"
#include "tests/distributed/thread_group.h"
#include "tests/train/bare_task.h"
#include "tests/train/forensics/examined.h"

namespace stretto::train {
namespace {

using stretto::test::BareTask;
using test::batch_of, test::kInf, test::look, test::RootsTask;
using test::TransformerTask, test::TwoLossesTask, test::weight;

TEST(Forensics, AFiniteUpdateLeavesNoTrace) {
  TransformerTask task;
  optim::Arena arena(task.model());
  const auto before = arena.params().clone();
  arena.grads().fill_(7);
  const auto report = look(task, arena, {batch_of({1, 2}), batch_of({3})});
  EXPECT_FALSE(report.found());
  EXPECT_EQ(report.first, FirstNonfinite());
  EXPECT_TRUE(report.weights.empty() && report.samples.empty());
  EXPECT_EQ(report.micro_batch, -1);
  ASSERT_EQ(report.micro_batches.size(), 2U);
  EXPECT_TRUE(report.micro_batches[0].finite && report.micro_batches[1].finite);
  EXPECT_EQ(report.gradients.size(), 10U);
  EXPECT_GT(report.gradients[0].max_abs, report.gradients[9].max_abs);
  EXPECT_TRUE(at::equal(arena.params(), before));
  EXPECT_EQ(arena.grads().abs().max().item<double>(), 0);
}

TEST(Forensics, AnInfiniteWeightIsNamedWithTheModuleThatItSpoilsFirst) {
  struct Case {
    const char* weight;
    const char* module;
    const char* last_finite;
  };
  const std::vector<Case> cases{
      {"encoder.layers.1.ffn.up.weight", "encoder.layers.1.ffn.up",
       "encoder.layers.1.ffn_residual.norm"},
      {"decoder.layers.0.cross_attention.q.weight", "decoder.layers.0.cross_attention.q",
       "decoder.layers.0.cross_residual.norm"},
      {"decoder.final_norm.bias", "decoder.final_norm", "decoder.layers.1.ffn_residual"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.weight);
    TransformerTask task;
    optim::Arena arena(task.model());
    weight(arena, c.weight).view({-1})[5] = kInf;
    const auto report = look(task, arena, {batch_of({1, 2}), batch_of({3})});
    EXPECT_EQ(report.first, (FirstNonfinite{TensorKind::kOutput, c.module, c.last_finite}));
    EXPECT_EQ(report.weights, (std::vector<NonfiniteWeight>{{c.weight, 1}}));
    EXPECT_EQ(report.micro_batch, 0);
    EXPECT_TRUE(report.samples.empty());  // no sample is to blame
    EXPECT_FALSE(report.micro_batches[1].finite);
    EXPECT_FALSE(std::isfinite(report.micro_batches[0].loss_sum));
    EXPECT_GT(report.gradients[0].num_nonfinite, 0);
    EXPECT_EQ(arena.grads().abs().max().item<double>(), 0);
  }
}

TEST(Forensics, TheSampleThatOverflowsIsFound) {
  TransformerTask task;
  optim::Arena arena(task.model());
  // Finite, but too large for fp32 after the multiplication by sqrt(16).
  weight(arena, "encoder.embedding.weight")[4 + 9].fill_(2e38F);
  const auto report =
      look(task, arena, {batch_of({1, 2}), batch_of({3, 9, 4}), batch_of({5}), batch_of({9})});
  EXPECT_EQ(report.first, (FirstNonfinite{TensorKind::kOutput, "encoder.embedding", ""}));
  EXPECT_TRUE(report.weights.empty());
  EXPECT_EQ(report.micro_batch, 1);
  EXPECT_EQ(report.samples, (std::vector<int64_t>{9}));
  std::vector<bool> finite;
  for (const auto& batch : report.micro_batches) finite.push_back(batch.finite);
  EXPECT_EQ(finite, (std::vector<bool>{true, false, true, false}));
}

TEST(Forensics, ALossScaleThatIsTooLargeIsABackwardProblem) {
  TransformerTask task;
  optim::Arena arena(task.model());
  const std::vector<data::Batch> batches{batch_of({1, 2, 3})};
  EXPECT_FALSE(look(task, arena, batches, 128).found());
  const auto report = look(task, arena, batches, 3e38);
  ASSERT_TRUE(report.found());
  EXPECT_NE(report.first.kind, TensorKind::kOutput);
  EXPECT_TRUE(std::isfinite(report.micro_batches[0].loss_sum));
  EXPECT_EQ(report.loss_scale, 3e38);
}

/// Where only the gradient of the output projection overflows, or it first and then what lies
/// below.
struct ProjectionCase {
  float rows;  ///< of the projection, times what they were
  double scale;
};

// Tied, the table's whole gradient is known at the end of backward alone; and with several
// processes looked-up rows go another way.
TEST(Forensics, TheOutputProjectionIsNamedHoweverItIsTiedOnAnyNumberOfProcesses) {
  const FirstNonfinite expected{TensorKind::kParameterGradient, "output.weight", "loss"};
  for (const ProjectionCase c : {ProjectionCase{0, 1e4}, ProjectionCase{1e-8F, 1e10}}) {
    for (const char* tie : {"none", "decoder", "all"}) {
      for (const int processes : {1, 2}) {
        SCOPED_TRACE(tie + (" " + std::to_string(processes)) + " " + std::to_string(c.rows));
        stretto::test::run_ranks(processes, [&](const distributed::ProcessGroup& group) {
          TransformerTask task(tie);
          optim::Arena arena(task.model());
          const std::string table = std::string(tie) == "none"      ? "output.weight"
                                    : std::string(tie) == "decoder" ? "decoder.embedding.weight"
                                                                    : "embedding.weight";
          weight(arena, table).mul_(c.rows);
          weight(arena, "decoder.final_norm.weight").fill_(1e36F);
          std::vector<NonfiniteReport> reports{look(task, arena, {batch_of({1, 2})}, c.scale)};
          {  // as training does; what follows is as a replay does
            parallel::GradientReducer reducer(arena, group, {});
            reducer.watch_embeddings(task.model());
            reports.push_back(look(task, arena, {batch_of({1, 2})}, c.scale));
          }
          reports.push_back(look(task, arena, {batch_of({1, 2})}, c.scale));
          for (const auto& report : reports) {
            EXPECT_EQ(report.first, expected)
                << report.first.name << ", before it " << report.first.last_finite;
            EXPECT_TRUE(report.weights.empty());
          }
        });
      }
    }
  }
}

TEST(Forensics, LookedUpRowsGoTheirOwnWayAgainAfterwards) {
  stretto::test::run_ranks(2, [](const distributed::ProcessGroup& group) {
    TransformerTask task("all");
    optim::Arena arena(task.model());
    parallel::GradientReducer reducer(arena, group, {});
    reducer.watch_embeddings(task.model());
    const auto ways = [&] {
      std::vector<nn::RowGradients*> found;
      for (const auto& module : task.model().modules(/*include_self=*/false)) {
        const auto embedding = std::dynamic_pointer_cast<nn::EmbeddingImpl>(module);
        if (embedding) found.push_back(embedding->rows_to().get());
      }
      return found;
    };
    const auto before = ways();
    ASSERT_FALSE(before.empty());
    EXPECT_NE(before[0], nullptr);
    look(task, arena, {batch_of({1, 2})});
    EXPECT_EQ(ways(), before);
  });
}

TEST(Forensics, AnInfiniteSlopeIsNamedInBackwardWithItsSample) {
  RootsTask task;
  optim::Arena arena(task.model());
  const auto report = look(task, arena, {batch_of({4, 9}), batch_of({1, 0, 4})});
  // The gradient of `first`'s output is what the root behind it made of a finite one.
  EXPECT_EQ(report.first.kind, TensorKind::kOutputGradient);
  EXPECT_EQ(report.first.name, "first");
  EXPECT_TRUE(report.first.last_finite.starts_with("second")) << report.first.last_finite;
  EXPECT_EQ(report.micro_batch, 1);
  EXPECT_EQ(report.samples, (std::vector<int64_t>{0}));
  EXPECT_TRUE(std::isfinite(report.micro_batches[1].loss_sum));
}

/// With a last layer of zeros the loss is 0 whatever `factor` is; its weight's gradient is not.
void silence(optim::Arena& arena) {
  weight(arena, "second.weight").zero_();
  weight(arena, "second.bias").zero_();
}

TEST(Forensics, AParameterGradientIsNamedWhenThoseOfAllOutputsAreFinite) {
  RootsTask task;
  optim::Arena arena(task.model());
  silence(arena);
  const int64_t large = int64_t{1} << 62;  // its root is 2^31
  task.factor = 1e20;
  EXPECT_FALSE(look(task, arena, {batch_of({large, 4})}).found());
  task.factor = 1e30;
  const auto report = look(task, arena, {batch_of({large, 4})});
  EXPECT_EQ(report.first.kind, TensorKind::kParameterGradient);
  EXPECT_EQ(report.first.name, "second.weight");
  EXPECT_EQ(report.samples, (std::vector<int64_t>{large}));
  EXPECT_EQ(report.gradients[0].name, "second.weight");
  EXPECT_EQ(report.gradients[0].num_nonfinite, 1);
}

TEST(Forensics, MicroBatchesThatOverflowOnlyTogetherAreToldApart) {
  RootsTask task;
  optim::Arena arena(task.model());
  silence(arena);
  task.factor = 2e38;
  EXPECT_FALSE(look(task, arena, {batch_of({1})}).found());
  const auto report = look(task, arena, {batch_of({1}), batch_of({1})});
  EXPECT_EQ(report.first.kind, TensorKind::kSum);
  EXPECT_TRUE(report.first.name.starts_with("second.")) << report.first.name;
  EXPECT_EQ(report.micro_batch, -1);
  EXPECT_TRUE(report.samples.empty());
  EXPECT_TRUE(report.micro_batches[0].finite && report.micro_batches[1].finite);
}

TEST(Forensics, SeveralLossesAreDividedBeforeTheyAreScaledAsInTraining) {
  TwoLossesTask task;
  optim::Arena arena(task.model());
  const double scale = 1e36;  // the slopes of the sums, 3000 and 5000, leave the range of fp32
  const std::vector<data::Batch> batches{batch_of({1000, 2000}), batch_of({5000})};
  const auto report = look(task, arena, batches, scale);
  EXPECT_FALSE(report.found()) << report.first.name;
  EXPECT_EQ(report.divisors, (std::vector<double>{2e6, 2e6}));
  EXPECT_NEAR(report.gradients[0].max_abs, 8000 / 2e6 * scale, 1e-5 * scale);
  // The divisors of all processes, where this one has only a part of the weights.
  const std::vector<double> all{1e7, 1e8};
  const auto part =
      examine(task, arena, batches, {.seed = 1, .update = 6}, scale, kernels::Compute::kFp32, all);
  EXPECT_EQ(part.divisors, all);
  EXPECT_NEAR(part.gradients[0].max_abs, 8000 / 1e7 * scale, 1e-6 * scale);
  // The sums of both heads would overflow, and the second's first.
  task.weight = {1, 1e6};
  const auto ill = look(task, arena, batches, scale);
  EXPECT_EQ(ill.first.kind, TensorKind::kParameterGradient);
  EXPECT_EQ(ill.first.name, "first.weight");
  EXPECT_EQ(ill.micro_batches[0].loss_sum, report.micro_batches[0].loss_sum) << "not divided";
}

TEST(Forensics, BuffersOfTheModelStayAsTheyWere) {
  RootsTask task;
  optim::Arena arena(task.model());
  look(task, arena, {batch_of({4}), batch_of({0})});
  EXPECT_EQ(task.net->calls.item<double>(), 0);
}

class NormedTask : public BareTask {
 public:
  torch::nn::Module& model() override { return *net_; }
  Sums loss(const Prepared& prepared, const StepContext&) override {
    const data::Batch& batch = prepared;
    const auto ids = torch::tensor(batch.sample_ids, torch::kInt64).to(torch::kFloat32);
    return sums(net_(ids.view({-1, 1}).log()).square().sum(), batch);
  }

 private:
  nn::BatchNorm net_{nn::Init(1, at::kCPU), 1};
};

TEST(Forensics, SamplesThatBatchNormTiesTogetherAreNotTriedAlone) {
  NormedTask task;
  optim::Arena arena(task.model());
  const auto report = look(task, arena, {batch_of({4, 9}), batch_of({1, 0, 4})});  // log(0)
  EXPECT_EQ(report.first.kind, TensorKind::kOutput);
  EXPECT_EQ(report.first.name, "model");
  EXPECT_EQ(report.micro_batch, 1);
  EXPECT_TRUE(report.samples.empty());
  for (const auto& buffer : task.model().buffers()) {
    EXPECT_TRUE(torch::isfinite(buffer).all().item<bool>());
  }
}

TEST(Forensics, ALayerIsTheModuleThatOwnsTheParameterOrTheMemberOfAStack) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"encoder.layers.3.ffn.up.weight", "encoder.layers.3"},
      {"encoder.layers.12.self_attention.k.bias", "encoder.layers.12"},
      {"encoder.layers.0.experts.7.weight", "encoder.layers.0"},  // the outer stack
      {"encoder.embedding.weight", "encoder.embedding"},
      {"decoder.final_norm.bias", "decoder.final_norm"},
      {"decoder.layer2.weight", "decoder.layer2"},  // a name with a digit is no index
      {"0.weight", "0"},
      {"convolutions.4", "convolutions"},  // a list of parameters has no layers
      {"weight", "model"},
  };
  for (const auto& [parameter, layer] : rows) EXPECT_EQ(layer_of(parameter), layer) << parameter;
}

TEST(Forensics, TheLargestGradientOfEveryLayerIsKeptInTheOrderOfForward) {
  TransformerTask task;
  optim::Arena arena(task.model());
  const auto report = look(task, arena, {batch_of({1, 2}), batch_of({3})}, 4);
  std::vector<std::string> names;
  for (const auto& layer : report.layers) names.push_back(layer.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"encoder.embedding", "encoder.layers.0", "encoder.layers.1",
                                      "encoder.final_norm", "decoder.embedding", "decoder.layers.0",
                                      "decoder.layers.1", "decoder.final_norm"}));
  // Autograd alone: the truth.
  std::map<std::string, double> largest;
  for (const auto& ids : {std::vector<int64_t>{1, 2}, std::vector<int64_t>{3}}) {
    (task.loss(task.prepare(batch_of(ids)), {.seed = 1, .update = 6}).losses.front() * 4)
        .backward();
  }
  for (const auto& parameter : task.model().named_parameters()) {
    double& value = largest[layer_of(parameter.key())];
    value = std::max(value, parameter.value().grad().abs().max().item<double>());
  }
  for (const auto& layer : report.layers) {
    EXPECT_NEAR(layer.max_abs, largest.at(layer.name), 1e-5 * largest.at(layer.name)) << layer.name;
    EXPECT_GT(layer.max_abs, 0) << layer.name;
    EXPECT_EQ(layer.num_nonfinite, 0) << layer.name;
  }
}

TEST(Forensics, ElementsThatAreNotFiniteAreCountedByLayer) {
  TransformerTask task;
  optim::Arena arena(task.model());
  weight(arena, "decoder.layers.1.ffn.down.weight").fill_(kInf);
  const auto report = look(task, arena, {batch_of({1, 2})});
  ASSERT_TRUE(report.found());
  ASSERT_EQ(report.layers.size(), 8U);
  int64_t all = 0, first_layer = 0;
  for (const auto& parameter : task.model().named_parameters()) {
    const int64_t numel = parameter.value().numel();
    all += numel;
    if (parameter.key().starts_with("decoder.layers.1.")) first_layer += numel;
  }
  int64_t counted = 0;
  for (const auto& layer : report.layers) counted += layer.num_nonfinite;
  const auto& spoilt = report.layers[6];
  EXPECT_EQ(spoilt.name, "decoder.layers.1");
  EXPECT_GT(spoilt.num_nonfinite, 0);
  EXPECT_LE(spoilt.num_nonfinite, first_layer);
  EXPECT_GT(counted, spoilt.num_nonfinite);  // what lies before it in the model too
  EXPECT_LE(counted, all);
}

}  // namespace
}  // namespace stretto::train
