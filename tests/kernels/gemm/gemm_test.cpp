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

TEST(Gemm, RowsReadWhereTheyLieGiveTheBitsOfACopyOfThem) {
  constexpr int64_t kApart = 2048;  // numbers between lines of one cache set, which are copied
  for (const cpu::Table* level : cpu::levels())
    for (const int64_t depth : {1, 40, 256, 300, 1000})
      for (const int64_t rows : {1, 5, 29, 200}) {
        SCOPED_TRACE(std::string(level->name) + " depth " + std::to_string(depth) + " rows " +
                     std::to_string(rows));
        const cpu::LevelGuard guard(*level);
        at::Tensor apart = at::full({rows, kApart}, NAN).narrow(1, 3, depth);
        apart.copy_(noise({rows, depth}));
        const at::Tensor together = apart.clone(at::MemoryFormat::Contiguous);
        at::Tensor steps = at::full({depth, kApart}, NAN).narrow(1, 3, rows);
        steps.copy_(together.t());
        const gemm::Operand turned_apart{steps, true};
        const gemm::Operand turned_together{steps.clone(at::MemoryFormat::Contiguous), true};
        const at::Tensor factor = noise({depth, 600}, 8), bias = noise({600}, 9);
        const auto product = [&](const gemm::Operand& a, int64_t columns) {
          at::Tensor out = at::full({rows, columns}, NAN);
          const gemm::Packed b({factor.slice(1, 0, columns).contiguous()});
          gemm::multiply(a, b, bias.slice(0, 0, columns), false, out);
          return out;
        };
        const at::Tensor copied = product({apart}, 600);
        for (const int64_t columns : {7, 45, 200, 600})
          for (const gemm::Operand& a :
               {gemm::Operand{apart}, gemm::Operand{together}, turned_apart, turned_together})
            EXPECT_TRUE(at::equal(product(a, columns), copied.slice(1, 0, columns))) << columns;
      }
}

/// Those whose steps of depth are long enough to read B where it lies.
std::vector<const cpu::Table*> levels_with_sixteen_lanes() {
  std::vector<const cpu::Table*> found;
  for (const cpu::Table* level : cpu::levels())
    if (level->panel == 32) found.push_back(level);
  return found;
}

TEST(Gemm, AFactorThatIsNotLaidOutGivesTheSameBits) {
  constexpr int64_t kApart = 256;
  for (const cpu::Table* level : levels_with_sixteen_lanes())
    for (const int64_t rows : {49, 200})
      for (const int64_t depth : {1, 40, 256, 300, 700})
        for (const int64_t columns : {32, 128, 256}) {
          SCOPED_TRACE(std::string(level->name) + " rows " + std::to_string(rows) + " depth " +
                       std::to_string(depth) + " columns " + std::to_string(columns));
          const cpu::LevelGuard guard(*level);
          const at::Tensor matrix = noise({depth, kApart}, 8), bias = noise({columns}, 9);
          const gemm::Operand b{matrix.narrow(1, 0, columns)};
          const auto as_it_lies = gemm::Packed::for_one_product(b, rows, Compute::kFp32);
          ASSERT_EQ(as_it_lies.step(), kApart);
          const gemm::Packed laid_out(b);
          const gemm::Operand dense{noise({rows, depth})}, turned{noise({depth, rows}), true};
          for (const gemm::Operand& a : {dense, turned})
            for (const bool add : {false, true}) {
              at::Tensor got = noise({rows, columns}, 10), want = got.clone();
              gemm::multiply(a, as_it_lies, bias, add, got);
              gemm::multiply(a, laid_out, bias, add, want);
              EXPECT_TRUE(at::equal(got, want)) << a.transposed << add;
            }
        }
}

TEST(Gemm, EightLanesLayOutEveryFactor) {
  for (const cpu::Table* level : cpu::levels()) {
    const cpu::LevelGuard guard(*level);
    const auto b = gemm::Packed::for_one_product({noise({300, 128})}, 200, Compute::kFp32);
    EXPECT_EQ(b.step(), level->panel == 32 ? 128 : 0) << level->name;
  }
}

TEST(Gemm, LargeFactorsAndThoseWithHalfAPanelAreLaidOut) {
  const auto step = [](const gemm::Operand& b, int64_t rows, Compute compute) {
    return gemm::Packed::for_one_product(b, rows, compute).step();
  };
  if (levels_with_sixteen_lanes().empty()) GTEST_SKIP() << "wants a processor with AVX-512";
  const cpu::LevelGuard guard(*levels_with_sixteen_lanes().front());
  const gemm::Operand plain{noise({300, 128})}, large{noise({300, 512})};
  EXPECT_EQ(step(plain, 200, Compute::kFp32), 128);
  EXPECT_EQ(step(plain, 48, Compute::kFp32), 0);  // whoever has few rows reads B once
  EXPECT_EQ(step(plain, 200, Compute::kBf16), 0);
  EXPECT_EQ(step(plain, 200, Compute::kFp16), 0);
  EXPECT_EQ(step({noise({128, 300}), true}, 200, Compute::kFp32), 0);
  EXPECT_EQ(step({noise({300, 45})}, 200, Compute::kFp32), 0);
  EXPECT_EQ(step(large, 192, Compute::kFp32), 512);  // their sums leave room for it
  EXPECT_EQ(step(large, 193, Compute::kFp32), 0);
  EXPECT_EQ(step({noise({128, 512})}, 193, Compute::kFp32), 512);
  EXPECT_EQ(step({noise({300, 640}).narrow(1, 0, 128)}, 100, Compute::kFp32), 0);
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
