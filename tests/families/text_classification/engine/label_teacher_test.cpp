#include "families/text_classification/engine/label_teacher.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/base/failure.h"
#include "tests/families/text_classification/engine/sentences.h"
#include "tests/tasks/teacher_run.h"
#include "tests/train/toy_task.h"

namespace stretto::tasks {
namespace {

using stretto::testing::failure;

at::Tensor teacher_random(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kDouble);
}

TEST(LabelDivergence, IsThatOfThePlainFormulas) {
  const at::Tensor logits = teacher_random({4, 3}, 1), teacher = teacher_random({4, 3}, 2);
  const double t = 2;
  const at::Tensor q = at::softmax(teacher / t, 1), p = at::softmax(logits / t, 1);
  EXPECT_TRUE(at::allclose(label_divergence(LabelTarget::kOne, logits, teacher, t),
                           t * t * (q * (q / p).log()).sum(1), 1e-9, 1e-12));
  const at::Tensor b = at::sigmoid(teacher / t), a = at::sigmoid(logits / t);
  const at::Tensor both = b * (b / a).log() + (1 - b) * ((1 - b) / (1 - a)).log();
  EXPECT_TRUE(at::allclose(label_divergence(LabelTarget::kSeveral, logits, teacher, t),
                           t * t * both.mean(1), 1e-9, 1e-12));
  const at::Tensor value = teacher_random({4, 1}, 3), wanted = teacher_random({4, 1}, 4);
  EXPECT_TRUE(at::allclose(label_divergence(LabelTarget::kValue, value, wanted, t),
                           (value - wanted).square().squeeze(1), 1e-9, 1e-12));
}

TEST(LabelDivergence, IsZeroFromItself) {
  const at::Tensor logits = teacher_random({4, 3}, 1);
  for (const auto target : {LabelTarget::kOne, LabelTarget::kSeveral}) {
    EXPECT_LT(label_divergence(target, logits, logits, 3).abs().max().item<double>(), 1e-12);
  }
}

class LabelTeacherTest : public TextClassificationTest {
 protected:
  /// Trains a run that is a teacher, with the configuration that later commands read.
  void train_teacher(int64_t updates) {
    const auto setup = train("teacher", updates);
    make_teacher(folder_, experiment_.options, setup, sections().loss);
  }
};

TEST_F(LabelTeacherTest, AStudentTakesItsTokenizerAndLearnsFromItAlone) {
  train_teacher(150);
  encoder().d_model = 8;
  sections().loss.teacher_weight = 1;  // nothing of the labels
  const auto assets = family_.first_assets(experiment_);
  experiment_.options.run.seed = 5;
  EXPECT_EQ(family_.first_assets(experiment_), assets) << "none is drawn from the text";
  sections().loss.teacher_hidden = 0.1;
  sections().loss.teacher_attention = 0.1;
  train("student", 200);
  EXPECT_GT(eval("student")["accuracy"].get<double>(), 0.8);
}

TEST_F(LabelTeacherTest, RefusesAnotherVocabularyOtherLabelsAndShorterTexts) {
  train_teacher(1);
  const auto assets = family_.first_assets(experiment_);
  const auto refuses = [&](const Assets& own, const std::string& said) {
    const auto error = failure(ExitCode::kUsage, [&] {
      LabelTeacher(experiment_.options, own, &label_head_of_run, at::kCPU);
    });
    EXPECT_NE(error.message().find(said), std::string::npos) << error.message();
  };
  for (const auto& [name, bytes] : assets) {
    auto other = assets;
    other[name] = bytes + " ";
    refuses(other, name == kLabelsAsset ? "other labels" : "another vocabulary");
  }
  sections().data.max_text_tokens = 25;
  refuses(assets, "24 learned positions");
}

}  // namespace
}  // namespace stretto::tasks
