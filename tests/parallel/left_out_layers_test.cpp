// Layers that an update leaves out (models/layer_drop.h), and the ranks that wait for their
// gradients.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "models/layer_drop.h"
#include "parallel/gradient_reducer.h"
#include "tests/distributed/thread_group.h"
#include "tests/parallel/difference.h"

namespace stretto::parallel {
namespace {

using distributed::DistOptions;
using test::difference;
using test::run_ranks;

constexpr int64_t kStackWidth = 160, kStackRows = 6;
constexpr size_t kStackLayers = 3;
constexpr double kLeftOut = 0.4;

models::ForwardContext context_of(uint64_t update) {
  return {.training = true, .dropout_key = mix64(1, update)};
}

/// The first update that leaves out these layers: "010" is the middle one.
uint64_t update_without(const std::string& wanted) {
  for (uint64_t update = 1; update < 10'000; ++update) {
    std::string found;
    for (size_t i = 0; i < kStackLayers; ++i)
      found += models::is_left_out(kLeftOut, context_of(update), 0, i) ? '1' : '0';
    if (found == wanted) return update;
  }
  ADD_FAILURE() << "no update leaves out " << wanted;
  return 0;
}

/// A layer, three residual ones of which each may be left out, and another layer.
struct ResidualStack : torch::nn::Module {
  torch::nn::Linear first{nullptr}, last{nullptr};
  std::vector<torch::nn::Linear> layers;
  std::function<void()> before_first = [] {};
  bool keeps_in_graph = true;  // else a layer that is left out is simply not called

  ResidualStack() {
    first = register_module("first", torch::nn::Linear(kStackWidth, kStackWidth));
    for (size_t i = 0; i < kStackLayers; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i),
                                       torch::nn::Linear(kStackWidth, kStackWidth)));
    }
    last = register_module("last", torch::nn::Linear(kStackWidth, kStackWidth));
    // The same on every rank without the generator that all threads share.
    const torch::NoGradGuard no_grad;
    double phase = 0;
    for (auto& parameter : parameters()) {
      const auto i = torch::arange(parameter.numel(), torch::kDouble);
      parameter.copy_((0.1 * torch::sin(i * 1.7 + ++phase)).view(parameter.sizes()));
    }
  }

  /// The loss of micro-batch j.
  torch::Tensor loss(uint64_t update, int64_t j) {
    const auto numbers = torch::arange(kStackRows * kStackWidth, torch::kFloat);
    torch::Tensor x = first(torch::cos(numbers * 0.37 + j).view({kStackRows, kStackWidth}));
    x.register_hook([this](const torch::Tensor&) { before_first(); });
    for (size_t i = 0; i < kStackLayers; ++i) {
      if (!models::is_left_out(kLeftOut, context_of(update), 0, i)) {
        x = x + torch::tanh(layers[i](x));
      } else if (keeps_in_graph) {
        x = models::without_layer(x, *layers[i]);
      }
    }
    return last(x).square().sum();
  }
};

DistOptions options_of(const std::string& strategy, bool overlap, bool deterministic) {
  DistOptions options;
  options.strategy = strategy;
  options.overlap = overlap;
  options.deterministic = deterministic;
  options.bucket_bytes = 110'000;  // a matrix is 102,400
  return options;
}

/// One rank of a job; micro-batch j is that of rank j % size.
struct StackRank {
  ResidualStack model;
  optim::Arena arena{model};
  distributed::ProcessGroup group;
  GradientReducer reducer;

  StackRank(const distributed::ProcessGroup& processes, const DistOptions& options)
      : group(processes), reducer(arena, group, options) {}

  void accumulate(uint64_t update, int64_t micro_batches) {
    const int64_t local = (micro_batches - group.rank() + group.size() - 1) / group.size();
    reducer.begin(local);
    for (int64_t i = 0; i < local; ++i) {
      reducer.before_backward(i);
      model.loss(update, i * group.size() + group.rank()).backward();
      reducer.after_backward(i);
    }
  }
  void reduce(uint64_t update, int64_t micro_batches) {
    accumulate(update, micro_batches);
    reducer.finish();
  }
  torch::Tensor owned_grads() {
    const auto slice = reducer.owned();
    return arena.grads().narrow(0, slice.begin, slice.size()).clone();
  }
  /// Names of the matrices, in the order in which they leave.
  std::string order_of_matrices() {
    std::string names;
    for (const size_t slot : reducer.order()) {
      const auto& at = arena.slots()[slot];
      if (at.shape.size() == 2) names += at.name + " ";
    }
    return names;
  }
};

// Ranks are threads here: more threads inside each would only be slower.
class LeftOutLayers : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_before_); }

 private:
  int threads_before_ = at::get_num_threads();
};

/// Autograd alone, and what it left at zero.
struct Plain {
  torch::Tensor gradient;
  std::vector<optim::Arena::Slot> left_out;
};

Plain gradient_of_one_process(uint64_t update, int64_t micro_batches) {
  ResidualStack model;
  model.keeps_in_graph = false;
  optim::Arena arena(model);
  for (int64_t j = 0; j < micro_batches; ++j) model.loss(update, j).backward();
  Plain plain{.gradient = arena.grads().clone(), .left_out = {}};
  for (const auto& slot : arena.slots()) {
    if (optim::Arena::view(plain.gradient, slot).abs().max().item<float>() == 0)
      plain.left_out.push_back(slot);
  }
  return plain;
}

TEST_F(LeftOutLayers, GradientsOfEveryUpdateAreThoseOfOneProcessWhateverTheFirstOneLeftOut) {
  constexpr int64_t kMicroBatches = 4;
  // The middle layer has no gradient in the first update; later others have none, and at last all.
  const std::vector<std::string> updates{"010", "000", "101", "111", "000"};
  std::vector<Plain> expected;
  for (const auto& pattern : updates) {
    expected.push_back(gradient_of_one_process(update_without(pattern), kMicroBatches));
    const auto layers = std::count(pattern.begin(), pattern.end(), '1');
    ASSERT_EQ(static_cast<int64_t>(expected.back().left_out.size()), 2 * layers) << pattern;
  }
  for (const std::string strategy : {"all_reduce", "sharded", "parameter_server"}) {
    for (const auto& [overlap, deterministic] :
         {std::pair{true, false}, {false, false}, {true, true}}) {
      for (const int ranks : {1, 2, 3}) {
        std::vector<std::vector<torch::Tensor>> owned(
            updates.size(), std::vector<torch::Tensor>(static_cast<size_t>(ranks)));
        run_ranks(ranks, [&](const distributed::ProcessGroup& group) {
          StackRank rank(group, options_of(strategy, overlap, deterministic));
          for (size_t u = 0; u < updates.size(); ++u) {
            rank.reduce(update_without(updates[u]), kMicroBatches);
            owned[u][static_cast<size_t>(group.rank())] = rank.owned_grads();
          }
        });
        for (size_t u = 0; u < updates.size(); ++u) {
          SCOPED_TRACE(strategy + (overlap ? ", overlap" : "") +
                       (deterministic ? ", deterministic" : "") + ", " + std::to_string(ranks) +
                       " ranks, " + updates[u]);
          const torch::Tensor whole = strategy == "sharded" ? torch::cat(owned[u]) : owned[u][0];
          EXPECT_LT(difference(whole, expected[u].gradient), 1e-6);
          for (const auto& slot : expected[u].left_out) {
            EXPECT_EQ(optim::Arena::view(whole, slot).abs().max().item<float>(), 0) << slot.name;
          }
        }
      }
    }
  }
}

TEST_F(LeftOutLayers, TheLearnedOrderDoesNotDependOnWhatTheFirstUpdateLeftOut) {
  const auto learned = [](const std::string& pattern, bool keeps_in_graph) {
    std::string order;
    run_ranks(2, [&](const distributed::ProcessGroup& group) {
      StackRank rank(group, options_of("all_reduce", true, false));
      rank.model.keeps_in_graph = keeps_in_graph;
      rank.reduce(update_without(pattern), 2);
      if (group.is_root()) order = rank.order_of_matrices();
    });
    return order;
  };
  const std::string all = learned("000", true);
  EXPECT_EQ(all, "last.weight layer2.weight layer1.weight layer0.weight first.weight ");
  for (const std::string pattern : {"010", "101", "111"}) EXPECT_EQ(learned(pattern, true), all);
  EXPECT_NE(learned("010", false), all) << "there is nothing to be kept in order";
}

// What is above the first layer leaves before backward comes to it: four matrices of each rank.
TEST_F(LeftOutLayers, NobodyWaitsForALayerThatIsLeftOut) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"000", "010"}, {"010", "000"}, {"010", "101"}};
  for (const auto& [learned_from, then] : cases) {
    SCOPED_TRACE(learned_from + ", then " + then);
    const auto channel = std::make_shared<test::ThreadChannel>(2);
    run_ranks(channel,
              [&, &first = learned_from, &second = then](const distributed::ProcessGroup& group) {
                StackRank rank(group, options_of("all_reduce", true, false));
                rank.reduce(update_without(first), 2);
                group.barrier();  // until both have left the first update
                const int64_t before = channel->next->gradient_collectives;
                group.barrier();
                rank.model.before_first = [&] {
                  for (int i = 0; i < 5000 && channel->next->gradient_collectives < before + 8; ++i)
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  EXPECT_GE(channel->next->gradient_collectives, before + 8);
                };
                rank.reduce(update_without(second), 2);
              });
  }
}

}  // namespace
}  // namespace stretto::parallel
