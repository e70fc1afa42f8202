#include "train/forensics/forensics.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "data/pairs/pair_columns.h"
#include "nn/batch_norm.h"
#include "nn/embedding.h"
#include "nn/watch.h"
#include "parallel/gradient_reducer.h"
#include "store/safetensors.h"
#include "tests/distributed/thread_group.h"
#include "tests/train/bare_task.h"
#include "train/forensics/forensics_report.h"

namespace stretto::train {
namespace {

namespace fs = std::filesystem;
using stretto::test::BareTask;

constexpr float kInf = std::numeric_limits<float>::infinity();

void append(data::PackedTokens& tokens, const std::vector<int64_t>& ids) {
  tokens.append(ids);
}

/// Sample i: one pair with a token that no other has, 4 + i, on both sides.
data::Batch batch_of(const std::vector<int64_t>& samples) {
  auto batch = data::pair_batch(samples);
  for (const int64_t sample : samples) {
    append(data::source(batch), {4 + sample, 20, 3});
    append(data::target(batch), {21, 4 + sample, 3});
  }
  return batch;
}

class TransformerTask : public BareTask {
 public:
  explicit TransformerTask(const std::string& tie_embeddings = "decoder")
      : model_(stretto::test::small_transformer(2, 24, tie_embeddings)) {}
  torch::nn::Module& model() override { return *model_; }
  Sums loss(const Prepared& batch, const StepContext& context) override {
    const auto output = model_->loss(
        batch, {.training = true, .dropout_key = static_cast<uint64_t>(context.update)});
    return sums(output.loss_sum, batch);
  }

 private:
  std::shared_ptr<models::Seq2SeqModel> model_;
};

torch::Tensor weight(optim::Arena& arena, const std::string& name) {
  for (const auto& slot : arena.slots()) {
    if (slot.name == name) return optim::Arena::view(arena.params(), slot);
  }
  throw std::logic_error("no weight " + name);
}

NonfiniteReport look(Task& task, optim::Arena& arena, const std::vector<data::Batch>& batches,
                     double scale = 1) {
  return examine(task, arena, batches, {.seed = 1, .update = 6}, scale, kernels::Compute::kFp32);
}

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

/// y = w2 * sqrt(relu(w1 * x)): the root's slope is infinite where relu gives zero.
struct RootsImpl : torch::nn::Module {
  RootsImpl() {
    first = register_module("first", torch::nn::Linear(1, 1));
    second = register_module("second", torch::nn::Linear(1, 1));
    calls = register_buffer("calls", torch::zeros({1}));
    torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) parameter.fill_(1);
    first->bias.zero_();
  }
  torch::Tensor forward(const torch::Tensor& x) {
    calls.add_(1);
    const auto inner = nn::watch(*first, first->forward(x).clamp_min(0));
    return nn::watch(*second, second->forward(inner.sqrt()));
  }

  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::Tensor calls;  // as running statistics
};
TORCH_MODULE(Roots);

class RootsTask : public BareTask {
 public:
  torch::nn::Module& model() override { return *net; }
  Sums loss(const Prepared& prepared, const StepContext&) override {
    const data::Batch& batch = prepared;
    const auto x =
        torch::tensor(std::vector<float>(batch.sample_ids.begin(), batch.sample_ids.end()))
            .view({-1, 1});
    return sums(net(x).sum() * factor, batch);
  }
  Roots net;
  double factor = 1;
};

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

/// Two heads on one input, each with a loss that counts for so much in a micro-batch.
class TwoLossesTask : public BareTask {
 public:
  torch::nn::Module& model() override { return *net_; }
  std::vector<std::string> losses() const override { return {"first", "second"}; }
  std::vector<double> weights(const data::Batch&) const override { return weight; }
  Sums loss(const Prepared& prepared, const StepContext&) override {
    const data::Batch& batch = prepared;
    const auto x =
        torch::tensor(std::vector<float>(batch.sample_ids.begin(), batch.sample_ids.end()))
            .view({-1, 1});
    Sums both = sums(net_->first(x).sum(), batch);
    both.losses.push_back(net_->second(x).sum());
    return both;
  }
  std::vector<double> weight{1e6, 1e6};

 private:
  struct Net : torch::nn::Module {
    torch::nn::Linear first = register_module("first", torch::nn::Linear(1, 1));
    torch::nn::Linear second = register_module("second", torch::nn::Linear(1, 1));
  };
  std::shared_ptr<Net> net_ = std::make_shared<Net>();
};

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

class ForensicsReport : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = fs::temp_directory_path() /
           ("stretto_forensics_" + std::to_string(::getpid()) + "_" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(run_);
    fs::create_directories(run_);
    record_ = {.run_id = "abc",
               .config_hash = "0123",
               .step = 7,
               .positions = {{.epoch = 1, .index = 5}, {.epoch = 1, .index = 6}},
               .lr = 5e-4,
               .checkpoint = "step_00000005",
               .loss_scales = {128, 64},
               .device = "cpu"};
  }
  void TearDown() override { fs::remove_all(run_); }

  /// The report of one rank alone.
  fs::path write(const NonfiniteReport& report, const optim::Arena& arena) const {
    const ReportText text{record_.rank,
                          report_to_json(report, record_, weights_name(record_.step))};
    return write_reports(run_, record_.step, {text}, arena).front();
  }

  fs::path run_;
  UpdateRecord record_;
};

TEST_F(ForensicsReport, SurvivesTheFileWithTheWeightsBesideIt) {
  TransformerTask task;
  optim::Arena arena(task.model());
  weight(arena, "encoder.embedding.weight")[4 + 9].fill_(2e38F);
  weight(arena, "decoder.final_norm.bias")[0] = kInf;
  const auto report = look(task, arena, {batch_of({1, 2}), batch_of({3, 9})}, 64);
  const auto file = write(report, arena);
  EXPECT_EQ(file, run_ / "forensics" / "step_00000007.json");

  const auto saved = read_report(file);
  EXPECT_EQ(saved.record, record_);
  EXPECT_EQ(saved.report.first, report.first);
  EXPECT_EQ(saved.report.weights, report.weights);
  EXPECT_EQ(saved.report.gradients, report.gradients);
  EXPECT_EQ(saved.report.layers, report.layers);
  EXPECT_EQ(saved.report.layers.size(), 8U);
  EXPECT_EQ(saved.report.samples, report.samples);
  EXPECT_EQ(saved.report.context.seed, 1U);
  EXPECT_EQ(saved.report.context.update, 6);
  EXPECT_EQ(report_to_json(saved.report, saved.record, "x"), report_to_json(report, record_, "x"));
  EXPECT_EQ(saved.weights, run_ / "forensics" / "step_00000007.safetensors");
  const store::SafetensorsFile weights(saved.weights);
  ASSERT_EQ(weights.tensors().size(), arena.slots().size());
  for (const auto& slot : arena.slots()) {
    const auto own = optim::Arena::view(arena.params(), slot).contiguous();
    EXPECT_EQ(weights.find(slot.name)->bytes,
              std::string_view(static_cast<const char*>(own.const_data_ptr()), own.nbytes()))
        << slot.name;
  }
}

TEST_F(ForensicsReport, KeepsWhatSeveralLossesWereDividedBy) {
  TwoLossesTask several;
  optim::Arena arena(several.model());
  const auto report = look(several, arena, {batch_of({1}), batch_of({2})});
  EXPECT_EQ(read_report(write(report, arena)).report.divisors, (std::vector<double>{2e6, 2e6}));
  RootsTask one;
  optim::Arena roots(one.model());
  const auto file = write(look(one, roots, {batch_of({4}), batch_of({0})}), roots);
  EXPECT_TRUE(read_report(file).report.divisors.empty());
  EXPECT_FALSE(nlohmann::json::parse(read_file(file, 1 << 20)).contains("divisors"));
}

TEST_F(ForensicsReport, AnotherOneOnTheSameStepLeavesTheFirst) {
  RootsTask task;
  optim::Arena arena(task.model());
  const auto report = look(task, arena, {batch_of({4}), batch_of({0})});
  std::vector<std::string> names;
  for (const std::vector<int64_t>& ranks : {std::vector<int64_t>{0}, {0, 2}, {2}}) {
    record_.lr += 1;
    std::vector<ReportText> reports;
    for (const int64_t rank : ranks) {
      reports.push_back({rank, report_to_json(report, record_, weights_name(record_.step))});
    }
    const auto files = write_reports(run_, record_.step, reports, arena);
    for (const auto& file : files) {
      names.push_back(file.stem().string());
      EXPECT_EQ(read_report(file).record, record_);
      EXPECT_TRUE(fs::exists(read_report(file).weights));
      EXPECT_EQ(reports_beside(file).size(), ranks.size());
    }
    names.push_back(read_report(files[0]).weights.filename().string());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"step_00000007", "step_00000007.safetensors",
                                             "step_00000007-2", "step_00000007-2.rank2",
                                             "step_00000007-2.safetensors", "step_00000007-3.rank2",
                                             "step_00000007-3.safetensors"}));
}

TEST_F(ForensicsReport, OtherRanksHaveNamesOfTheirOwnAndShareTheWeights) {
  RootsTask task;
  optim::Arena arena(task.model());
  record_.rank = 2;
  record_.world_size = 3;
  const auto report = look(task, arena, {batch_of({4}), batch_of({0})});
  const auto file = write(report, arena);
  EXPECT_EQ(file.filename(), "step_00000007.rank2.json");
  EXPECT_EQ(read_report(file).weights.filename(), "step_00000007.safetensors");
}

TEST_F(ForensicsReport, OnlyTheLastHundredLossScalesAreKept) {
  for (int i = 0; i < 150; ++i) record_.loss_scales.push_back(i);
  RootsTask task;
  optim::Arena arena(task.model());
  const auto report = look(task, arena, {batch_of({4}), batch_of({0})});
  const auto scales = read_report(write(report, arena)).record.loss_scales;
  ASSERT_EQ(scales.size(), 100U);
  EXPECT_EQ(scales.front(), 50);
  EXPECT_EQ(scales.back(), 149);
}

TEST_F(ForensicsReport, FilesThatAreNoReportsAreRefused) {
  const auto refused = [&](const std::string& text) {
    write_file_atomic(run_ / "x.json", text);
    try {
      read_report(run_ / "x.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
      EXPECT_NE(std::string(error.what()).find("x.json"), std::string::npos) << error.what();
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused("{"));
  EXPECT_TRUE(refused("[]"));
  EXPECT_TRUE(refused("{\"step\": 1}"));
  EXPECT_TRUE(refused("{\"format\": \"stretto forensics\", \"version\": 2}"));
  EXPECT_TRUE(refused("{\"format\": \"stretto forensics\", \"version\": 1, \"step\": 1}"));
  EXPECT_THROW(read_report(run_ / "none.json"), Error);
}

// As earlier versions wrote it: without `layer_gradients`.
TEST_F(ForensicsReport, OneWithoutLayersIsStillRead) {
  TransformerTask task;
  optim::Arena arena(task.model());
  weight(arena, "encoder.embedding.weight")[4 + 9].fill_(2e38F);
  const auto report = look(task, arena, {batch_of({1, 2}), batch_of({3, 9})}, 64);
  const auto file = write(report, arena);
  auto json = nlohmann::ordered_json::parse(read_file(file, 1 << 20));
  ASSERT_EQ(json.erase("layer_gradients"), 1U);
  EXPECT_EQ(json.at("version"), 1);
  write_file_atomic(file, json.dump());
  const auto saved = read_report(file);
  EXPECT_TRUE(saved.report.layers.empty());
  EXPECT_EQ(saved.report.gradients, report.gradients);
  EXPECT_EQ(saved.report.first, report.first);
  EXPECT_EQ(report_to_text(saved.report, saved.record).find("by layer"), std::string::npos);
  // The same bytes but for the layers.
  json["layer_gradients"] = nlohmann::ordered_json::array();
  EXPECT_EQ(nlohmann::json::parse(report_to_json(saved.report, saved.record, json.at("weights"))),
            nlohmann::json::parse(json.dump()));
}

TEST_F(ForensicsReport, TheParagraphShowsTheLargestLayers) {
  NonfiniteReport report{.first = {TensorKind::kSum, "a.layers.1.up.weight", ""},
                         .layers = {{"a.embedding", 0.5, 0},
                                    {"a.layers.0", 4, 0},
                                    {"a.layers.1", 0.25, 12},
                                    {"a.layers.2", 3, 0}}};
  const auto text = report_to_text(report, record_);
  EXPECT_NE(text.find("\n  by layer: a.layers.1 12 not finite, a.layers.0 4 (2^2), "
                      "a.layers.2 3 (2^1)\n"),
            std::string::npos)
      << text;
}

TEST_F(ForensicsReport, TheParagraphNamesModuleSamplesAndRemedy) {
  TransformerTask task;
  optim::Arena arena(task.model());
  const auto calm = report_to_text(look(task, arena, {batch_of({1}), batch_of({2})}), record_);
  EXPECT_NE(calm.find("doubt the machine"), std::string::npos) << calm;

  weight(arena, "encoder.embedding.weight")[4 + 9].fill_(2e38F);
  const auto one = report_to_text(look(task, arena, {batch_of({1}), batch_of({3, 9, 4})}), record_);
  EXPECT_NE(one.find("step 7: first not finite was the output of encoder.embedding (forward)"),
            std::string::npos)
      << one;
  EXPECT_NE(one.find("micro-batch 2 of 2 (epoch 2, index 6): of its 3 samples 1 alone makes it "
                     "so, sample 9\n"),
            std::string::npos)
      << one;

  weight(arena, "decoder.final_norm.bias")[0] = kInf;
  const auto spoilt = report_to_text(look(task, arena, {batch_of({1}), batch_of({2})}), record_);
  EXPECT_NE(spoilt.find("not finite themselves: decoder.final_norm.bias (1)"), std::string::npos)
      << spoilt;
  EXPECT_NE(spoilt.find("\n  the weights are spoilt: try "), std::string::npos) << spoilt;
}

}  // namespace
}  // namespace stretto::train
