#include "families/translation/engine/teacher.h"

#include <gtest/gtest.h>

#include <string>

#include "families/translation/engine/translation_family.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_options.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/tasks/teacher_run.h"
#include "tests/tasks/train_family.h"
#include "tests/train/toy_task.h"

namespace stretto::tasks {
namespace {

class TranslationTeacher : public ::testing::Test {
 protected:
  TranslationTeacher() {
    std::string src, tgt;
    for (int i = 0; i < 40; ++i) {
      const std::string a(1, static_cast<char>('a' + i % 5));
      const std::string b(1, static_cast<char>('a' + i % 3));
      src += a + " " + b + "\n";
      tgt += b + " " + a + "\n";
    }
    auto& own = sections();
    own.data.train_src = own.data.valid_src = {folder_.write("src", src)};
    own.data.train_tgt = own.data.valid_tgt = {folder_.write("tgt", tgt)};
    own.data.cache_dir = (folder_ / "cache").string();
    own.tokenizer.type = "vocab";
    own.tokenizer.src_vocab = folder_.write("vocab", "a\nb\nc\nd\ne\n");
    own.model.d_model = 16;
    const models::StackOptions stack{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
    own.model.encoder = stack;
    own.model.decoder = stack;
    own.eval.bleu = false;
    experiment_.options.eval.best_metric = "nll";
  }

  experiment::TranslationOptions& sections() { return translation_of(experiment_.options); }

  train::TrainerSetup train(const std::string& name, int64_t updates) {
    return train_family(translation_family(), experiment_, folder_ / name,
                        {.updates = updates, .lr = 0.005});
  }

  void train_teacher(int64_t updates) {
    const auto setup = train("teacher", updates);
    make_teacher(folder_, experiment_.options, setup, sections().loss);
  }

  testing::TempDir folder_;
  experiment::LoadedExperiment experiment_;
};

TEST_F(TranslationTeacher, AStudentComesNearToItsProbabilities) {
  train_teacher(40);
  sections().loss.teacher_weight = 1;  // nothing of the labels
  sections().model.d_model = 8;
  const auto events = train::test::events(train("student", 60), "train");
  ASSERT_GT(events.size(), 1U);
  EXPECT_LT(*events.back().number("loss"), 0.5 * *events.front().number("loss"));
}

TEST_F(TranslationTeacher, RefusesAnotherVocabularyAndWhatIsNoRunOfTranslation) {
  train_teacher(1);
  const auto refuses = [&](const std::string& said) {
    const auto error = stretto::testing::failure(ExitCode::kUsage, [&] {
      load_teachers(experiment_.options,
                    experiment::make_experiment_tokenizers(experiment_.options), at::kCPU);
    });
    EXPECT_NE(error.message().find(said), std::string::npos) << error.message();
  };
  sections().tokenizer.src_vocab = folder_.write("vocab2", "a\nb\nc\ne\nd\n");
  refuses("has another vocabulary than the student");
  folder_.write("other/config.toml", "[task]\nname = \"masked_lm\"\n[train]\nmax_steps = 9000\n");
  sections().loss.teacher = (folder_ / "other").string();
  refuses("is no model that reads one source");
}

TEST_F(TranslationTeacher, IsNobodyWhereNoneIsNamed) {
  EXPECT_TRUE(load_teachers(experiment_.options,
                            experiment::make_experiment_tokenizers(experiment_.options), at::kCPU)
                  .empty());
}

}  // namespace
}  // namespace stretto::tasks
