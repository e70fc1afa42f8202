// Our own product where its left factor is put together, and where rows are few.
#include "kernels/gemm/gemm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kernels/compute.h"
#include "kernels/cpu/table.h"
#include "tests/kernels/gradcheck.h"
#include "tests/kernels/scopes.h"

namespace stretto::kernels {
namespace {

using testing::noise;

TEST(Gemm, GatheredRowsEqualACopyOfThem) {
  for (const cpu::Table* level : cpu::levels())
    for (const Compute compute : {Compute::kFp32, Compute::kBf16, Compute::kFp16})
      for (const int64_t width : {1, 5, 64, 300})
        for (const int64_t rows : {1, 29, 301}) {
          SCOPED_TRACE(std::string(level->name) + " width " + std::to_string(width) + " rows " +
                       std::to_string(rows));
          const cpu::LevelGuard guard(*level);
          const at::Tensor
              x = noise({40, width}),
              table = at::arange(rows * 3, at::kInt).view({rows, 3}).mul(7).remainder(41).sub(1);
          const at::Tensor with_zeroes = at::cat({at::zeros({1, width}), x});
          const at::Tensor copied =
              with_zeroes.index_select(0, table.flatten().add(1).to(at::kLong))
                  .view({rows, 3 * width});
          const gemm::Packed b({noise({3 * width, 45}, 8)}, compute);
          const at::Tensor bias = noise({45}, 9);
          at::Tensor got = at::empty({rows, 45}), want = at::empty({rows, 45});
          gemm::multiply_gathered({x, table}, b, bias, false, got);
          gemm::multiply({copied}, b, bias, false, want);
          EXPECT_TRUE(at::equal(got, want));

          const gemm::Packed dy({noise({rows, 37}, 10)}, compute);
          at::Tensor parts = at::empty({width, 3, 37}), part = at::empty({width, 37});
          gemm::multiply_transposed({x, table}, dy, parts);
          for (int64_t i = 0; i < 3; ++i) {
            const at::Tensor of_part = copied.slice(1, i * width, (i + 1) * width).contiguous();
            gemm::multiply({of_part, true}, dy, {}, false, part);
            EXPECT_TRUE(at::equal(parts.select(1, i), part)) << i;
          }
        }
}

TEST(Gemm, AFactorGivenAsItsTransposeIsLaidOutAlike) {
  for (const cpu::Table* level : cpu::levels())
    for (const Compute compute : {Compute::kFp32, Compute::kBf16, Compute::kFp16})
      for (const int64_t depth : {1, 3, 4, 15, 16, 17, 33, 64, 255, 256, 257, 300})
        for (const int64_t columns : {1, 8, 31, 32, 33, 64, 70}) {
          const cpu::LevelGuard guard(*level);
          const at::Tensor b = noise({columns, depth}, 8), a = noise({13, depth});
          at::Tensor got = at::full({13, columns}, NAN), want = at::full({13, columns}, NAN);
          gemm::multiply({a}, gemm::Packed({b, true}, compute), {}, false, got);
          gemm::multiply({a}, gemm::Packed({b.t().contiguous()}, compute), {}, false, want);
          EXPECT_TRUE(at::equal(got, want)) << level->name << ' ' << depth << ' ' << columns;
        }
}

// Few rows have loops of their own, and whole and part panels, several blocks of depth, and sums
// that are added to others.
TEST(Gemm, FewRowsHaveTheBitsThatTheyHaveAmongMany) {
  for (const cpu::Table* level : cpu::levels())
    for (const Compute compute : {Compute::kFp32, Compute::kBf16, Compute::kFp16})
      for (const int64_t depth : {1, 70, 256, 600})
        for (const int64_t columns : {31, 192, 1100})
          for (const bool add : {false, true}) {
            const cpu::LevelGuard guard(*level);
            const at::Tensor a = noise({120, depth}), bias = noise({columns}, 9);
            const at::Tensor before = noise({120, columns}, 10);
            const gemm::Packed b({noise({depth, columns}, 8)}, compute);
            at::Tensor all = before.clone();
            gemm::multiply({a}, b, bias, add, all);
            for (const int64_t rows : {1, 4, 8, 13, 32, 48}) {
              at::Tensor few = before.narrow(0, 60, rows).clone();
              gemm::multiply({a.narrow(0, 60, rows)}, b, bias, add, few);
              EXPECT_TRUE(at::equal(few, all.narrow(0, 60, rows)))
                  << level->name << ' ' << depth << ' ' << columns << ' ' << rows << ' ' << add;
            }
          }
}

TEST(Gemm, FewRowsAreSharedAmongThreadsWithoutATraceInAnyBit) {
  for (const cpu::Table* level : cpu::levels())
    for (const int64_t rows : {1, 5, 24, 25, 60})
      for (const int64_t columns : {31, 200, 1025, 2100}) {
        const cpu::LevelGuard guard(*level);
        const at::Tensor a = noise({rows, 70}), bias = noise({columns}, 9);
        const gemm::Packed b({noise({70, columns}, 8)});
        const auto product = [&](int threads) {
          const testing::Threads count(threads);
          at::Tensor out = at::full({rows, columns}, NAN);
          gemm::multiply({a}, b, bias, false, out);
          return out;
        };
        const at::Tensor alone = product(1);
        for (const int threads : {2, 3, 7})
          EXPECT_TRUE(at::equal(product(threads), alone))
              << level->name << ' ' << rows << ' ' << columns << ' ' << threads;
      }
}

}  // namespace
}  // namespace stretto::kernels
