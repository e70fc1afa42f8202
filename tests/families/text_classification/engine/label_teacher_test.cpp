#include "families/text_classification/engine/label_teacher.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "config/resolved.h"
#include "experiment/experiment_schema.h"
#include "store/run_record.h"
#include "tests/base/failure.h"
#include "tests/families/text_classification/engine/sentences.h"
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

TEST(RelationDivergence, ComparesTheRowsOfEachTextWhateverTheirWidth) {
  data::PackedTokens texts;
  texts.append(std::vector<int64_t>{1, 2, 3});
  texts.append(std::vector<int64_t>{4, 5});
  const at::Tensor rows = teacher_random({5, 4}, 1), teacher = teacher_random({5, 6}, 2);
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
  const at::Tensor rows = teacher_random({3, 4}, 1), teacher = teacher_random({3, 6}, 2);
  const at::Tensor left = relation_divergence(rows.narrow(1, 0, 2), teacher.narrow(1, 0, 3), texts);
  const at::Tensor right =
      relation_divergence(rows.narrow(1, 2, 2), teacher.narrow(1, 3, 3), texts);
  EXPECT_TRUE(at::allclose(relation_divergence(rows, teacher, texts, 2), (left + right) / 2));
}

TEST(AttentionDivergence, IsTheMeanOfQueriesKeysAndValuesByTheHeadsThatBothHave) {
  data::PackedTokens texts;
  texts.append(std::vector<int64_t>{1, 2, 3});
  // Four heads that share two of keys and values, and six with as many.
  const nn::AttentionRows own{teacher_random({3, 8}, 1), teacher_random({3, 4}, 2),
                              teacher_random({3, 4}, 3), 4, 2};
  const nn::AttentionRows theirs{teacher_random({3, 12}, 4), teacher_random({3, 12}, 5),
                                 teacher_random({3, 12}, 6), 6, 6};
  const at::Tensor wanted = (relation_divergence(own.queries, theirs.queries, texts, 2) +
                             relation_divergence(own.keys, theirs.keys, texts, 2) +
                             relation_divergence(own.values, theirs.values, texts, 2)) /
                            3;
  EXPECT_TRUE(at::allclose(attention_divergence(own, theirs, texts), wanted));
  EXPECT_LT(attention_divergence(own, own, texts).abs().max().item<double>(), 1e-12);
}

class LabelTeacherTest : public TextClassificationTest {
 protected:
  /// Trains a run that is a teacher, with the configuration that later commands read.
  void train_teacher(int64_t updates) {
    const auto setup = train("teacher", updates);
    auto stored = experiment_.options;
    stored.train.max_steps = 5000;
    folder_.write("teacher/config.toml",
                  store::seal_config(config::to_toml(experiment::experiment_schema(stored)),
                                     setup.identity.run_id));
    sections().loss.teacher = (folder_ / "teacher").string();
    sections().loss.teacher_checkpoint = "last";
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
