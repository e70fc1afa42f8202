#include "families/translation/translation_distillation.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "families/translation/translation_options.h"

namespace stretto::experiment {
namespace {

using Keys = std::vector<std::string>;

TEST(TranslationDistillation, KeepsPiecesOfTextThatBothReadInPieces) {
  const auto family = translation_distillation();
  Experiment teacher, student;
  EXPECT_EQ(family.teacher_keys(teacher, student), (Keys{"decode.nbest=1"}));
  translation_of(teacher).tokenizer.type = "vocab";
  EXPECT_EQ(family.teacher_keys(teacher, student), (Keys{"decode.nbest=1"}));
  translation_of(student).tokenizer.type = "vocab";
  EXPECT_EQ(family.teacher_keys(teacher, student),
            (Keys{"decode.nbest=1", "tokenizer.subwords=none"}));
}

TEST(TranslationDistillation, TrainsOnWhatWasLabelledAndOnItsOwnTextBehindIt) {
  const auto family = translation_distillation();
  Experiment student;
  auto& data = translation_of(student).data;
  data.train_src = {"own.en"};
  data.train_tgt = {"own.de"};
  data.train_weights = {2};
  const std::vector<LabelledText> texts{{.text = "0.src", .labels = "0.labels"},
                                        {.text = "1.src", .labels = "1.labels"}};
  EXPECT_EQ(family.data_keys(student, texts, StudentData::kLabelled),
            (Keys{R"(data.train_src=["0.src","1.src"])",
                  R"(data.train_tgt=["0.labels","1.labels"])", "data.train_weights=[2.0,1.0]"}));
  EXPECT_EQ(family.data_keys(student, texts, StudentData::kLabelledAndOwn),
            (Keys{R"(data.train_src=["0.src","1.src","own.en"])",
                  R"(data.train_tgt=["0.labels","1.labels","own.de"])",
                  "data.train_weights=[2.0,1.0,2.0]"}));
}

TEST(TranslationDistillation, NamesTheColumnOfTablesAsItsText) {
  Experiment student;
  auto& data = translation_of(student).data;
  data.train_tsv = {"pairs.tsv"};
  data.src_column = 3;
  data.separator = ";";
  const auto texts = translation_distillation().texts(student);
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_EQ(texts[0], (TextToLabel{.path = "pairs.tsv", .column = 3, .separator = ';'}));
}

}  // namespace
}  // namespace stretto::experiment
