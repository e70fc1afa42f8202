// Convolutions in time in half precision.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <vector>

#include "kernels/compute.h"
#include "kernels/convolution/convolution.h"
#include "kernels/convolution/reference.h"
#include "kernels/cpu/table.h"
#include "kernels/rounding.h"
#include "tests/kernels/cases.h"

namespace stretto::kernels {
namespace {

using testing::Function, testing::Inputs, testing::noise;

/// An operator, and what it computes of operands that are rounded already.
struct Rounding {
  std::string name;
  Function run, plain;
  Inputs inputs;
};

std::vector<Rounding> all_of(const TimeWindow& window, Compute compute) {
  const int64_t rows = window.offsets.values[-1].item<int64_t>();
  const at::Tensor x = noise({rows, 40}), shares = at::softmax(noise({4, 3}, 9), 1);
  return {
      {"time_convolution",
       [=](const Inputs& in) { return time_convolution(in[0], in[1], {}, window); },
       [=](const Inputs& in) { return reference::time_convolution(in[0], in[1], {}, window); },
       {x, noise({33, 120}, 8) * 0.1}},
      {"depthwise_convolution",
       [=](const Inputs& in) { return depthwise_convolution(in[0], in[1], {}, window); },
       [=](const Inputs& in) { return reference::depthwise_convolution(in[0], in[1], {}, window); },
       {x, noise({40, 3}, 8)}},
      // A softmax is never rounded, its result is: weights whose logarithms it takes.
      {"light_convolution",
       [=](const Inputs& in) { return light_convolution(in[0], shares.log(), {}, window); },
       [=](const Inputs& in) {
         return reference::weigh(reference::windows(in[0], window),
                                 rounded(at::softmax(shares.log(), 1), compute).unsqueeze(0));
       },
       {x}}};
}

Inputs value_and_gradients(const Function& call, const Inputs& inputs, Compute compute,
                           const Function& prepare) {
  Inputs leaves, all;
  for (const at::Tensor& x : inputs) leaves.push_back(prepare({x}).clone().requires_grad_(true));
  const at::Tensor out = [&] {
    const ComputeScope scope(compute);
    return call(leaves);
  }();
  all = torch::autograd::grad({out}, leaves, {prepare({noise(out.sizes(), 10)})});
  all.push_back(out.detach());
  return all;
}

TEST(ConvolutionPrecision, OperandsAndResultsAreRoundedOnce) {
  const TimeWindow window{.offsets = cases::lengths({0, 1, 1, 3, 20, 58, 119}), .kernel = 3};
  for (const cpu::Table* level : cpu::levels())
    for (const Compute compute : {Compute::kBf16, Compute::kFp16})
      for (const Rounding& one : all_of(window, compute)) {
        SCOPED_TRACE(one.name + " at " + level->name);
        const cpu::LevelGuard guard(*level);
        const auto as_is = [](const Inputs& x) { return x[0]; };
        const auto round = [&](const Inputs& x) { return rounded(x[0], compute); };
        const Inputs got = value_and_gradients(one.run, one.inputs, compute, as_is);
        const Inputs want = value_and_gradients(one.plain, one.inputs, Compute::kFp32, round);
        const double unit = compute == Compute::kBf16 ? 1.0 / 128 : 1.0 / 1024;
        for (size_t i = 0; i < got.size(); ++i) {
          EXPECT_TRUE(at::equal(got[i], rounded(got[i], compute))) << i << " is no half value";
          EXPECT_TRUE(at::allclose(got[i], want[i], unit, 1e-4)) << i;
        }
      }
}

}  // namespace
}  // namespace stretto::kernels
