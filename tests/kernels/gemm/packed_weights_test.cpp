#include "kernels/gemm/packed_weights.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "kernels/convolution/steps.h"
#include "kernels/kernels.h"
#include "tests/kernels/gradcheck.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::noise, testing::OwnProducts;

TEST(PackedWeights, GiveTheBitsOfWeightsLaidOutAnew) {
  const OwnProducts own;
  const at::NoGradGuard no_grad;
  const at::Tensor weight = noise({75, 301}, 8), bias = noise({75}, 9);
  PackedWeights weights;
  for (const Compute compute : {Compute::kFp32, Compute::kBf16, Compute::kFp16}) {
    const ComputeScope arithmetic(compute);
    for (const int64_t rows : {1, 5, 47, 48, 200}) {
      const at::Tensor x = noise({rows, 301});
      for (const at::Tensor& shift : {bias, at::Tensor()}) {
        const at::Tensor anew = kernels::linear(x, weight, shift);
        const PackedWeightsScope scope(weights);
        EXPECT_TRUE(at::equal(kernels::linear(x, weight, shift), anew)) << rows << " rows";
      }
    }
  }
}

// Kept weights of this size lie in large pages where there are any.
TEST(PackedWeights, OfManyNumbersGiveTheSameBits) {
  const OwnProducts own;
  const at::NoGradGuard no_grad;
  const at::Tensor weight = noise({1100, 1000}, 8), x = noise({3, 1000});
  const at::Tensor anew = kernels::linear(x, weight);
  PackedWeights weights;
  const PackedWeightsScope scope(weights);
  EXPECT_TRUE(at::equal(kernels::linear(x, weight), anew));
}

TEST(PackedWeights, ARowDoesNotDependOnTheRowsBesideIt) {
  const OwnProducts own;
  const at::NoGradGuard no_grad;
  const at::Tensor x = noise({130, 64}), weight = noise({90, 64}, 8);
  PackedWeights weights;
  const PackedWeightsScope scope(weights);
  const at::Tensor all = kernels::linear(x, weight);
  for (const int64_t row : {0, 11, 129}) {
    EXPECT_TRUE(at::equal(kernels::linear(x.slice(0, row, row + 1), weight)[0], all[row]));
  }
}

TEST(PackedWeights, ArePutDownOnceForEachWeightAndArithmetic) {
  const at::Tensor weight = noise({40, 32}, 8);
  PackedWeights weights;
  const gemm::Packed& first = weights.of(weight, Compute::kFp32);
  EXPECT_EQ(&weights.of(weight, Compute::kFp32), &first);
  EXPECT_NE(&weights.of(weight, Compute::kBf16), &first);
  EXPECT_EQ(weights.of(weight.narrow(0, 0, 33), Compute::kFp32).columns(), 33);
  EXPECT_EQ(weights.of(weight, Compute::kFp32).columns(), 40);
}

TEST(PackedWeights, MakeWhatIsMadeOfAWeightOnce) {
  PackedWeights weights;
  const at::Tensor weight = noise({4, 3}, 8), other = noise({4, 3}, 9);
  int made = 0;
  const auto doubled = [&](const at::Tensor& of) {
    return weights.made_of(of, [&] {
      ++made;
      return of * 2;
    });
  };
  const at::Tensor first = doubled(weight);
  EXPECT_TRUE(at::equal(first, weight * 2));
  EXPECT_TRUE(doubled(weight).is_same(first));
  EXPECT_TRUE(at::equal(doubled(other), other * 2));
  EXPECT_EQ(made, 2);
}

TEST(PackedWeights, AreKeptByALossWithoutGradients) {
  const OwnProducts own;
  const at::NoGradGuard no_grad;
  at::Tensor weight = noise({75, 64}, 8);
  const at::Tensor x = noise({60, 64}), targets = at::arange(60);
  const auto nll = [&] {
    return kernels::linear_cross_entropy(x, weight, targets, 0, 75).nll_sum.item<double>();
  };
  const double apart = nll();
  PackedWeights weights;
  const PackedWeightsScope scope(weights);
  EXPECT_EQ(nll(), apart);
  weight.zero_();  // which nobody may do: it shows that the table is not laid out anew
  EXPECT_EQ(nll(), apart);
}

TEST(PackedWeights, AreSharedByConvolutionsThatDecode) {
  const OwnProducts own;
  const at::Tensor weight = noise({40, 3 * 32}, 8);
  const PackedConvolution apart(weight, {}, 3);
  PackedWeights weights;
  const PackedWeightsScope scope(weights);
  const PackedConvolution first(weight, {}, 3), second(weight, {}, 3);
  EXPECT_EQ(first.packed(), second.packed());
  EXPECT_NE(first.packed(), apart.packed());
}

TEST(PackedWeights, AreOfOneThreadAndOnlyWithinTheScope) {
  const OwnProducts own;
  EXPECT_EQ(PackedWeightsScope::current(), nullptr);
  PackedWeights outer, inner;
  const PackedWeightsScope scope(outer);
  {
    const PackedWeightsScope nested(inner);
    EXPECT_EQ(PackedWeightsScope::current(), &inner);
  }
  EXPECT_EQ(PackedWeightsScope::current(), &outer);
  std::thread([] { EXPECT_EQ(PackedWeightsScope::current(), nullptr); }).join();
}

}  // namespace
}  // namespace stretto::kernels
