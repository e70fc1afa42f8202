#include "families/text/engine/text_teacher.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "tests/base/failure.h"

namespace stretto::tasks {
namespace {

at::Tensor taught_rows(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble);
}

TEST(RelationDivergence, ComparesTheRowsOfEachTextWhateverTheirWidth) {
  data::PackedTokens texts;
  texts.append(std::vector<int64_t>{1, 2, 3});
  texts.append(std::vector<int64_t>{4, 5});
  const at::Tensor rows = taught_rows({5, 4}, 1), teacher = taught_rows({5, 6}, 2);
  const at::Tensor got = relation_divergence(rows, teacher, texts);
  ASSERT_EQ(got.sizes(), at::IntArrayRef({2}));
  for (const auto& [text, begin, end] : {std::tuple(0, 0, 3), std::tuple(1, 3, 5)}) {
    const auto relations = [](const at::Tensor& x) {
      return at::softmax(at::mm(x, x.t()) / std::sqrt(static_cast<double>(x.size(1))), 1);
    };
    const at::Tensor p = relations(rows.slice(0, begin, end));
    const at::Tensor q = relations(teacher.slice(0, begin, end));
    EXPECT_NEAR(got[text].item<double>(), (q * (q / p).log()).sum(1).mean().item<double>(), 1e-10);
  }
  EXPECT_LT(relation_divergence(rows, rows, texts).abs().max().item<double>(), 1e-12);
}

TEST(RelationDivergence, ComparesPartsOfRowsHeadByHead) {
  data::PackedTokens texts;
  texts.append(std::vector<int64_t>{1, 2, 3});
  const at::Tensor rows = taught_rows({3, 4}, 1), teacher = taught_rows({3, 6}, 2);
  const at::Tensor left = relation_divergence(rows.narrow(1, 0, 2), teacher.narrow(1, 0, 3), texts);
  const at::Tensor right =
      relation_divergence(rows.narrow(1, 2, 2), teacher.narrow(1, 3, 3), texts);
  EXPECT_TRUE(at::allclose(relation_divergence(rows, teacher, texts, 2), (left + right) / 2));
}

TEST(AttentionDivergence, IsTheMeanOfQueriesKeysAndValuesByTheHeadsThatBothHave) {
  data::PackedTokens texts;
  texts.append(std::vector<int64_t>{1, 2, 3});
  // Four heads that share two of keys and values, and six with as many.
  const nn::AttentionRows own{taught_rows({3, 8}, 1), taught_rows({3, 4}, 2),
                              taught_rows({3, 4}, 3), 4, 2};
  const nn::AttentionRows theirs{taught_rows({3, 12}, 4), taught_rows({3, 12}, 5),
                                 taught_rows({3, 12}, 6), 6, 6};
  const at::Tensor wanted = (relation_divergence(own.queries, theirs.queries, texts, 2) +
                             relation_divergence(own.keys, theirs.keys, texts, 2) +
                             relation_divergence(own.values, theirs.values, texts, 2)) /
                            3;
  EXPECT_TRUE(at::allclose(attention_divergence(own, theirs, texts), wanted));
  EXPECT_LT(attention_divergence(own, own, texts).abs().max().item<double>(), 1e-12);
}

TEST(PartsDivergence, IsTheWeighedMeanOverTeachersOfWhatIsAskedFor) {
  data::PackedTokens texts;
  texts.append(std::vector<int64_t>{1, 2, 3});
  const TextPass own{.rows = taught_rows({3, 4}, 1)};
  const std::vector<TextPass> teachers{{.rows = taught_rows({3, 4}, 2)},
                                       {.rows = taught_rows({3, 6}, 3)}};
  const at::Tensor wanted = 0.5 *
                            (relation_divergence(own.rows, teachers[0].rows, texts) +
                             relation_divergence(own.rows, teachers[1].rows, texts)) /
                            2;
  EXPECT_TRUE(at::allclose(parts_divergence(own, teachers, {.rows = 0.5}, texts), wanted));
  EXPECT_FALSE(parts_divergence(own, teachers, {}, texts).defined());
  stretto::testing::failure(ExitCode::kUsage,
                            [&] { parts_divergence(own, teachers, {.attention = 1}, texts); });
}

}  // namespace
}  // namespace stretto::tasks
