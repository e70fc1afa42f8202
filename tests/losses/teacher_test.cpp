#include "losses/teacher.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <utility>
#include <vector>

#include "losses/registry.h"

namespace stretto::losses {
namespace {

constexpr int64_t kTaughtClasses = 7, kTaughtRows = 5;

at::Tensor taught_random(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble);
}

OutputRows teacher_rows(uint64_t seed, int64_t width) {
  return {.rows = taught_random({kTaughtRows, width}, seed),
          .matrix = taught_random({kTaughtClasses + 1, width}, seed + 1),
          .bias = taught_random({kTaughtClasses + 1}, seed + 2),
          .num_classes = kTaughtClasses,
          .softcap = 0};
}

at::Tensor plain_logits(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(x, weight, bias).narrow(1, 0, kTaughtClasses);
}

struct TaughtCase {
  at::Tensor x = taught_random({kTaughtRows, 3}, 1).requires_grad_(true);
  at::Tensor weight = taught_random({kTaughtClasses + 1, 3}, 2).requires_grad_(true);
  at::Tensor bias = taught_random({kTaughtClasses + 1}, 3).requires_grad_(true);
  at::Tensor targets = at::tensor({0, 6, 3, 1, 1}, at::kLong);

  std::vector<at::Tensor> gradients(const at::Tensor& loss) const {
    return torch::autograd::grad({loss}, {x, weight, bias});
  }
};

TEST(Teacher, DivergenceAndGradientsAreThoseOfThePlainFormula) {
  const TaughtCase given;
  const std::vector<OutputRows> teachers{teacher_rows(10, 4), teacher_rows(20, 6)};
  for (const double temperature : {1.0, 2.5}) {
    for (const double cap : {0.0, 0.9}) {
      const at::Tensor got = divergence_from(teachers, temperature, given.x, given.weight,
                                             kTaughtClasses, given.bias, cap);
      at::Tensor q = at::zeros({kTaughtRows, kTaughtClasses}, at::kDouble);
      for (const auto& teacher : teachers) {
        q += at::softmax(plain_logits(teacher.rows, teacher.matrix, teacher.bias) / temperature, 1);
      }
      q /= 2;
      at::Tensor logits = plain_logits(given.x, given.weight, given.bias);
      if (cap > 0) logits = cap * at::tanh(logits / cap);
      const at::Tensor log_p = at::log_softmax(logits / temperature, 1);
      const at::Tensor want = temperature * temperature * (q * (q.log() - log_p)).sum();
      EXPECT_NEAR(got.item<double>(), want.item<double>(), 1e-10);
      const auto got_gradients = given.gradients(got), wanted = given.gradients(want);
      for (size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_TRUE(at::allclose(got_gradients[i], wanted[i], 1e-9, 1e-10)) << i;
      }
    }
  }
}

TEST(Teacher, IsZeroFromItself) {
  const TaughtCase given;
  const OutputRows itself{given.x.detach(), given.weight.detach(), given.bias.detach(),
                          kTaughtClasses, 0};
  const auto loss =
      divergence_from({itself}, 2, given.x, given.weight, kTaughtClasses, given.bias, 0);
  EXPECT_NEAR(loss.item<double>(), 0, 1e-12);
  EXPECT_LT(given.gradients(loss)[0].abs().max().item<double>(), 1e-12);
}

TEST(Teacher, MixesWithTheLossOfLabelsInTrainingAlone) {
  const TaughtCase given;
  CrossEntropyOptions options;
  const auto plain = make_loss(options);
  options.teacher = "runs/teacher";
  options.teacher_weight = 0.25;
  const auto taught = make_loss(options);
  const std::vector<OutputRows> teachers{teacher_rows(10, 4)};
  const auto of = [&](const nn::OutputLoss& loss) {
    return loss(given.x, given.weight, given.targets, kTaughtClasses, given.bias, 0);
  };
  EXPECT_THROW(of(taught), c10::Error) << "outside of a scope";
  const double labels = of(plain).loss_sum.item<double>();
  {
    const TeacherScope scope(teachers);
    const double divergence =
        divergence_from(teachers, 1, given.x, given.weight, kTaughtClasses, given.bias, 0)
            .item<double>();
    EXPECT_NEAR(of(taught).loss_sum.item<double>(), 0.75 * labels + 0.25 * divergence, 1e-9);
  }
  const at::NoGradGuard no_grad;
  EXPECT_NEAR(of(taught).loss_sum.item<double>(), labels, 1e-12);
}

TEST(Teacher, RecordsWhatStandsBeforeALoss) {
  const TaughtCase given;
  OutputRows recorded;
  const auto loss = make_loss({});
  {
    const RecordScope scope(recorded);
    const auto nothing =
        loss(given.x, given.weight, given.targets, kTaughtClasses, given.bias, 0.5);
    EXPECT_EQ(nothing.loss_sum.item<double>(), 0);
  }
  EXPECT_TRUE(recorded.rows.is_same(given.x));
  EXPECT_TRUE(recorded.matrix.is_same(given.weight));
  EXPECT_EQ(recorded.num_classes, kTaughtClasses);
  EXPECT_EQ(recorded.softcap, 0.5);
  EXPECT_EQ(RecordScope::current(), nullptr);
}

TEST(Teacher, RefusesTeachersOfOtherTokensOrClasses) {
  const TaughtCase given;
  auto fewer = teacher_rows(10, 4);
  fewer.rows = fewer.rows.narrow(0, 0, kTaughtRows - 1);
  auto other = teacher_rows(10, 4);
  other.num_classes = kTaughtClasses - 1;
  for (const auto& teacher : {fewer, other}) {
    EXPECT_THROW(
        divergence_from({teacher}, 1, given.x, given.weight, kTaughtClasses, given.bias, 0),
        c10::Error);
  }
}

}  // namespace
}  // namespace stretto::losses
