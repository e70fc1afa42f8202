#include "experiment/task_facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiment/task_rules.h"
#include "families/masked_lm/masked_lm_options.h"
#include "families/question_answering/question_answering_options.h"
#include "families/text/text_size.h"
#include "families/text_classification/text_classification_options.h"
#include "families/translation/translation_options.h"
#include "tests/base/temp_dir.h"

namespace stretto::experiment {
namespace {

using testing::TempDir;

FileSizes sizes_of(const Experiment& e) {
  return find_task_rules(e)->file_sizes(e);
}

ScoredSamples scored_in(const Experiment& e) {
  return find_task_rules(e)->scored_samples(e, sizes_of(e));
}

LabelSmoothing smoothing_in(const Experiment& e) {
  return find_task_rules(e)->label_smoothing(e, sizes_of(e));
}

Experiment of_task(const char* name) {
  Experiment e;
  e.task.select(name);
  return e;
}

std::string repeated(int count, const std::string& line) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line + "\n";
  return text;
}

/// A family that says nothing of its data.
class SilentFacts : public TaskFacts {};

TEST(TaskFacts, MessagesSpeakOfTextWhereAFamilyHasText) {
  for (const auto& name : TaskChoice::names()) {
    const std::string data = name == "image_classification" ? "pictures"
                             : name.starts_with("speech_")  ? "sounds"
                                                            : "text";
    EXPECT_EQ(find_task_rules(of_task(name.c_str()))->name_of_data(), data) << name;
  }
  EXPECT_EQ(SilentFacts().name_of_data(), "data");
}

TEST(TaskFacts, AnEpochOfTranslationIsTheLongerSideAndGuessedWhenCompressed) {
  const TempDir folder;
  Experiment e;
  auto& data = translation_of(e).data;
  data.train_src = {folder.write("a.en", std::string(1000, 'x'))};
  data.train_tgt = {folder.write("a.de", std::string(1200, 'x'))};
  EXPECT_EQ(sizes_of(e).epoch, 300);
  data.train_tsv = {folder.write("b.tsv.gz", std::string(100, 'x'))};
  EXPECT_EQ(sizes_of(e).epoch, tokens_in(1350));
  data.train_src.push_back("/no/such/file");
  EXPECT_EQ(sizes_of(e).epoch, 0);
}

TEST(TaskFacts, AnEpochOfHeadsHasTheirSecondSources) {
  const TempDir folder;
  const std::string text = folder.write("a.en", std::string(1000, 'x'));
  data::HeadDataOptions head{.head = "de", .train_src = {text}, .train_tgt = {text}};
  Experiment e;
  auto& data = translation_of(e).data;
  data.heads = {head};
  EXPECT_EQ(sizes_of(e).epoch, 250);
  head.train_src2 = {text};
  head.repeat = 0.5;
  data.heads.push_back(head);
  EXPECT_EQ(sizes_of(e).epoch, 500);
}

TEST(TaskFacts, AnEpochOfEncodedTextsIsThatOfTheirFiles) {
  const TempDir folder;
  Experiment e = of_task("masked_lm");
  auto& data = e.task.as<MaskedLmOptions>().data;
  data.train = {folder.write("a.txt", std::string(400, 'x')),
                folder.write("b.txt", std::string(2, 'x'))};
  EXPECT_EQ(sizes_of(e).epoch, 101);
  data.train.push_back("/no/such/file");
  EXPECT_EQ(sizes_of(e).epoch, 0);
}

TEST(TaskFacts, TheVocabularyFileOfTheTargetIsCounted) {
  const TempDir folder;
  Experiment e;
  auto& tokenizer = translation_of(e).tokenizer;
  tokenizer.type = "vocab";
  tokenizer.src_vocab = folder.write("src", "a\nb\nc\n");
  EXPECT_EQ(smoothing_in(e).classes, 3);
  tokenizer.tgt_vocab = folder.write("tgt", "x 7\ny 3\n\nz 1\nw 1\nv 1");
  EXPECT_EQ(smoothing_in(e).classes, 5);
  tokenizer.tgt_vocab = "/no/such/file";
  EXPECT_EQ(smoothing_in(e).classes, 0);
  tokenizer.type = "sentencepiece";
  EXPECT_EQ(sizes_of(e).classes, 0);
  EXPECT_EQ(smoothing_in(e).classes, 8000) << "those of a model that is trained";
}

TEST(TaskFacts, LabelsAreThoseThatAreListedOrThatShortFilesHave) {
  const TempDir folder;
  Experiment e = of_task("text_classification");
  auto& own = e.task.as<TextClassificationOptions>();
  own.data.train = {folder.write("a.tsv", "text\tlabel\none\tx\ntwo\ty\nthree\tz\nfour\tx\n")};
  EXPECT_EQ(smoothing_in(e).classes, 0) << "nothing is smoothed";
  own.loss.label_smoothing = 0.2;
  EXPECT_EQ(smoothing_in(e).classes, 3);
  own.data.train.push_back(folder.write("b.tsv", "text\tlabel\nno label\n"));
  EXPECT_EQ(smoothing_in(e).classes, 0) << "a file that training would refuse";
  own.data.labels = {"x", "y"};
  EXPECT_EQ(smoothing_in(e).classes, 2);
  own.data.labels.clear();
  own.data.train = {folder.write("long.tsv", "text\tlabel\n" + repeated(1 << 19, "a\tx"))};
  EXPECT_EQ(smoothing_in(e).classes, 0) << "a long file is not read";
}

TEST(TaskFacts, SentencesOfBleuAreThoseOfTheKeyOrOfAShorterText) {
  const TempDir folder;
  Experiment e;
  e.eval.best_metric = "bleu";
  auto& own = translation_of(e);
  own.data.valid_src = {folder.write("v.en", repeated(30, "a b"))};
  own.data.valid_tsv = {folder.write("v.tsv", repeated(20, "a\tb"))};
  EXPECT_EQ(scored_in(e).count, 50);
  EXPECT_EQ(scored_in(e).key, "data.valid_src");
  own.eval.bleu_sentences = 60;
  EXPECT_EQ(scored_in(e).count, 50);
  own.eval.bleu_sentences = 40;
  EXPECT_EQ(scored_in(e).count, 40);
  EXPECT_EQ(scored_in(e).key, "eval.bleu_sentences");
  EXPECT_TRUE(scored_in(e).is_number);
  own.eval.bleu_sentences = 0;
  own.data.valid_src.clear();
  EXPECT_EQ(scored_in(e).key, "data.valid_tsv");
  own.data.valid_tsv = {folder.write("long.tsv", repeated(2000, "a\tb"))};
  EXPECT_EQ(scored_in(e).count, kCountedSamples);
  own.data.valid_tsv.push_back("/no/such/file");
  EXPECT_EQ(scored_in(e).count, kCountedSamples) << "so many are enough";
  own.data.valid_tsv = {"/no/such/file"};
  EXPECT_EQ(scored_in(e).count, 0);
  e.eval.best_metric = "nll";
  EXPECT_EQ(sizes_of(e).validation, 0) << "nobody asks";
}

TEST(TaskFacts, SentencesOfSeveralHeadsAreThoseOfTheShortestText) {
  const TempDir folder;
  Experiment e;
  auto& own = translation_of(e);
  own.model.heads.resize(2);
  own.model.heads[0].name = "de";
  own.model.heads[1].name = "fr";
  own.data.heads = {
      {.head = "de", .valid_src = {folder.write("de", repeated(40, "a"))}, .valid_tgt = {"b"}},
      {.head = "fr", .valid_src = {folder.write("fr", repeated(30, "a"))}, .valid_tgt = {"b"}}};
  const auto count = [&](const char* metric) {
    e.eval.best_metric = metric;
    return scored_in(e).count;
  };
  EXPECT_EQ(count("bleu"), 30);
  EXPECT_EQ(count("de.bleu"), 40);
  EXPECT_EQ(count("fr.bleu"), 30);
  EXPECT_EQ(scored_in(e).key, "data.heads.1.valid_src");
  own.data.heads[1].valid_src = {"/no/such/file"};
  EXPECT_EQ(count("bleu"), 0);
}

TEST(TaskFacts, LabelledTextsForValidationAreCounted) {
  const TempDir folder;
  Experiment e = of_task("text_classification");
  auto& data = e.task.as<TextClassificationOptions>().data;
  data.skipped_label = "-";
  data.valid = {folder.write("a.tsv", "text\tlabel\none\tx\ntwo\t-\nthree\ty\n"),
                folder.write("b.tsv", "text\tlabel\nfour\tx\n")};
  EXPECT_EQ(scored_in(e).count, 3);
  EXPECT_EQ(scored_in(e).key, "data.valid");
  data.valid.push_back(folder.write("long.tsv", "text\tlabel\n" + repeated(2000, "five\tx")));
  EXPECT_EQ(scored_in(e).count, kCountedSamples);
  data.valid = {folder.write("c.tsv", "text\tlabel\nno label\n")};
  EXPECT_EQ(scored_in(e).count, 0);
}

TEST(TaskFacts, QuestionsForValidationAreCountedInShortFiles) {
  const TempDir folder;
  const auto file = [&](int questions, const std::string& context) {
    std::string qas;
    for (int i = 0; i < questions; ++i) {
      qas += std::string(i == 0 ? "" : ", ") + R"({"id": "q)" + std::to_string(i) +
             R"(", "question": "Where?", "answers": [{"text": "Oslo", "answer_start": 0}]})";
    }
    return folder.write("data.json", R"({"data": [{"paragraphs": [{"context": ")" + context +
                                         R"(", "qas": [)" + qas + "]}]}]}");
  };
  Experiment e = of_task("question_answering");
  auto& data = e.task.as<QuestionAnsweringOptions>().data;
  EXPECT_EQ(scored_in(e).count, 0);
  data.valid = {file(3, "Oslo")};
  EXPECT_EQ(scored_in(e).count, 3);
  file(3, "Oslo" + std::string(kFewBytes, '!'));
  EXPECT_EQ(scored_in(e).count, 0);
  file(3, "Rome");
  EXPECT_EQ(scored_in(e).count, 0) << "an answer that is not there";
}

TEST(TaskFacts, MaskedTokensOfValidationAreGuessed) {
  const TempDir folder;
  Experiment e = of_task("masked_lm");
  auto& data = e.task.as<MaskedLmOptions>().data;
  data.valid = {folder.write("v.txt", std::string(800, 'x'))};
  data.mask_probability = 0.25;
  EXPECT_EQ(scored_in(e).count, 50);
  EXPECT_TRUE(scored_in(e).is_guess);
}

}  // namespace
}  // namespace stretto::experiment
