// Machine translation with several decoders: text, losses and scores of each.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "families/translation/engine/head_scores.h"
#include "families/translation/engine/translation.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_options.h"
#include "tests/base/temp_dir.h"

namespace stretto::tasks {
namespace {

constexpr int kLetters = 8;

/// Letters, and two heads: `de` writes them as they are, `fr` the other way round, counting double.
/// `fr` has half as many lines.
class TwoHeads {
 public:
  TwoHeads() {
    std::string src, same, reversed, few_src, few_reversed, vocabulary;
    for (int i = 0; i < 24; ++i) {
      std::string line, back;
      for (int k = 0; k < 3 + i % 3; ++k) {
        const std::string letter(1, static_cast<char>('a' + (i + 3 * k) % kLetters));
        line += (k > 0 ? " " : "") + letter;
        back = letter + (k > 0 ? " " : "") + back;
      }
      src += line + "\n";
      same += line + "\n";
      if (i % 2 == 0) few_src += line + "\n", few_reversed += back + "\n";
    }
    for (int i = 0; i < kLetters; ++i)
      vocabulary += std::string(1, static_cast<char>('a' + i)) + "\n";
    e_.run = {.seed = 3, .threads = 1, .device = "cpu"};
    data::HeadDataOptions de{.head = "de"}, fr{.head = "fr"};
    de.train_src = de.valid_src = {folder_.write("src", src)};
    de.train_tgt = de.valid_tgt = {folder_.write("same", same)};
    fr.train_src = fr.valid_src = {folder_.write("few_src", few_src)};
    fr.train_tgt = fr.valid_tgt = {folder_.write("few_reversed", few_reversed)};
    translation_of(e_).data.heads = {fr, de};
    translation_of(e_).data.max_tokens = 12;
    translation_of(e_).data.max_src_tokens = translation_of(e_).data.max_tgt_tokens = 10;
    translation_of(e_).data.cache_dir = (folder_.path() / "cache").string();
    translation_of(e_).tokenizer.type = "vocab";
    translation_of(e_).tokenizer.src_vocab = folder_.write("vocab", vocabulary);
    translation_of(e_).model.d_model = 16;
    translation_of(e_).model.encoder =
        models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
    const models::StackOptions stack{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
    translation_of(e_).model.heads = {{.name = "de", .decoder = stack},
                                      {.name = "fr", .weight = 2, .decoder = stack}};
    translation_of(e_).model.dropout = 0;
    translation_of(e_).loss.label_smoothing = 0;
    translation_of(e_).eval.bleu = true;
    e_.report.samples = 3;
    translation_of(e_).decode.beam_size = 2;
  }

  experiment::Experiment& experiment() { return e_; }
  text::TokenizerPair tokenizers() const { return experiment::make_experiment_tokenizers(e_); }
  TranslationTask task() const {
    return TranslationTask(e_, make_translation_model(e_, tokenizers(), at::kCPU));
  }

 private:
  stretto::testing::TempDir folder_;
  experiment::Experiment e_;
};

/// The first micro-batch of a stream.
data::Batch batch_of(const data::BatchSource& source, int64_t stream) {
  for (int64_t i = 0; i < source.num_batches(); ++i) {
    const data::Batch batch = source.load(0, i);
    if (batch.stream == stream) return batch;
  }
  ADD_FAILURE() << "no micro-batch of stream " << stream;
  return {};
}

TEST(TranslationHeads, MixTheirTextsIntoOneEpoch) {
  TwoHeads heads;
  auto task = heads.task();
  const auto& batches = task.train_batches();
  std::set<int64_t> samples;
  int64_t pairs[2] = {0, 0};
  for (int64_t i = 0; i < batches.num_batches(); ++i) {
    const auto batch = batches.load(0, i);
    pairs[batch.stream] += batch.num_sequences();
    for (const int64_t id : batch.sample_ids) EXPECT_TRUE(samples.insert(id).second) << id;
    EXPECT_EQ(task.show(batch, 0).front(),
              (std::pair<std::string, std::string>{"head", batch.stream == 0 ? "de" : "fr"}));
  }
  EXPECT_EQ(pairs[0], 24);
  EXPECT_EQ(pairs[1], 12);
  translation_of(heads.experiment()).data.heads[0].repeat = 2;  // of `fr`
  auto twice = heads.task();
  int64_t repeated = 0;
  for (int64_t i = 0; i < twice.train_batches().num_batches(); ++i) {
    const auto batch = twice.train_batches().load(0, i);
    repeated += batch.stream == 1 ? batch.num_sequences() : 0;
  }
  EXPECT_EQ(repeated, 24);
}

TEST(TranslationHeads, HaveALossEach) {
  const TwoHeads heads;
  auto task = heads.task();
  EXPECT_EQ(task.losses(), (std::vector<std::string>{"de.loss", "fr.loss"}));
  EXPECT_FALSE(task.has_all_losses_together());
  for (const size_t own : {0, 1}) {
    const auto batch = batch_of(task.train_batches(), static_cast<int64_t>(own));
    const auto sums = task.loss(task.prepare(batch), {.seed = 1, .update = 1});
    ASSERT_EQ(sums.losses.size(), 2U);
    ASSERT_EQ(sums.statistics.size(), 2U);
    const double nll = sums.statistics[own].item<double>();
    const double weight = own == 0 ? 1 : 2;
    EXPECT_GT(nll, 0);
    EXPECT_NEAR(sums.losses[own].item<double>(), weight * nll, 1e-4 * nll);
    EXPECT_EQ(sums.losses[1 - own].item<double>(), 0);
    EXPECT_EQ(sums.statistics[1 - own].item<double>(), 0);
    std::vector<double> weights(2, 0);
    weights[own] = static_cast<double>(data::target(batch).num_rows());
    EXPECT_EQ(task.weights(batch), weights);
  }
}

TEST(TranslationHeads, ShowTheirNumbersAndThoseOfAllTokens) {
  const TwoHeads heads;
  const auto task = heads.task();
  // 10 tokens of `de` with an nll of 2 each, 30 of `fr` with 3, whose loss counts double.
  const train::Totals both{.losses = {22, 186}, .weights = {10, 30}, .statistics = {20, 90}};
  EXPECT_DOUBLE_EQ(task.shown_loss(both), (22 + 93) / 40.0);
  EXPECT_DOUBLE_EQ(both.loss(), 2.2 + 6.2);
  const auto measures = task.measures(both);
  EXPECT_DOUBLE_EQ(train::find_score(measures, "nll")->value, 110 / 40.0);
  EXPECT_DOUBLE_EQ(train::find_score(measures, "ppl")->value, std::exp(110 / 40.0));
  EXPECT_DOUBLE_EQ(train::find_score(measures, "de.nll")->value, 2);
  EXPECT_DOUBLE_EQ(train::find_score(measures, "fr.nll")->value, 3);
  EXPECT_DOUBLE_EQ(train::find_score(measures, "fr.ppl")->value, std::exp(3.0));
  const train::Totals one{.losses = {0, 186}, .weights = {0, 30}, .statistics = {0, 90}};
  EXPECT_DOUBLE_EQ(task.shown_loss(one), 3.1);
  EXPECT_DOUBLE_EQ(train::find_score(task.measures(one), "nll")->value, 3);
  EXPECT_EQ(train::find_score(task.measures(one), "de.nll"), nullptr);
}

TEST(TranslationHeads, AreEachValidatedOnTheirText) {
  const TwoHeads heads;
  auto task = heads.task();
  ASSERT_TRUE(task.can_validate());
  const auto found = task.validate();
  std::vector<std::string> names;
  for (const auto& score : found.scores) names.push_back(score.name);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "nll", "ppl", "bleu", "de.nll", "de.ppl",
                                             "de.bleu", "fr.nll", "fr.ppl", "fr.bleu"}));
  const auto value = [&](const char* name) { return train::find_score(found.scores, name)->value; };
  // 24 sentences of 3, 4 and 5 letters and their ends, and every second of them.
  const double de = 24 * 5, fr = 12 * 5;
  EXPECT_EQ(found.counts.at("target tokens"), static_cast<int64_t>(de + fr));
  EXPECT_NEAR(value("nll"), (value("de.nll") * de + value("fr.nll") * fr) / (de + fr), 1e-9);
  EXPECT_NEAR(value("bleu"), (value("de.bleu") + value("fr.bleu")) / 2, 1e-9);
  EXPECT_NE(value("de.nll"), value("fr.nll"));
  ASSERT_EQ(found.samples.size(), 4U);  // two of each
  EXPECT_TRUE(std::get<report::TextPairSample>(found.samples[0]).input.starts_with("[de] "));
  EXPECT_TRUE(std::get<report::TextPairSample>(found.samples[3]).input.starts_with("[fr] "));
}

TEST(TranslationHeads, OfWhichOneHasValidationTextAreValidatedByIt) {
  TwoHeads heads;
  translation_of(heads.experiment()).data.heads[1].valid_src.clear();  // of `de`
  translation_of(heads.experiment()).data.heads[1].valid_tgt.clear();
  auto task = heads.task();
  ASSERT_TRUE(task.can_validate());
  const auto scores = task.validate().scores;
  EXPECT_EQ(train::find_score(scores, "nll")->value, train::find_score(scores, "fr.nll")->value);
  EXPECT_EQ(train::find_score(scores, "de.nll"), nullptr);
  translation_of(heads.experiment()).data.heads[0].valid_src.clear();
  translation_of(heads.experiment()).data.heads[0].valid_tgt.clear();
  EXPECT_FALSE(heads.task().can_validate());
}

TEST(HeadScores, OfAllAreThoseOfAllTokensAndTheMeanBleu) {
  CorpusScore de, fr;
  de.loss = 2, de.nll = 1, de.target_tokens = 30, de.bleu = 10, de.bleu_signature = "nrefs:1";
  fr.loss = 6, fr.nll = 5, fr.target_tokens = 10, fr.bleu = 40;
  const auto all = overall({{"de", de}, {"fr", fr}});
  EXPECT_DOUBLE_EQ(all.loss, 3);
  EXPECT_DOUBLE_EQ(all.nll, 2);
  EXPECT_EQ(all.target_tokens, 40);
  EXPECT_DOUBLE_EQ(all.bleu, 25);
  EXPECT_EQ(all.bleu_signature, "nrefs:1");
  EXPECT_EQ(overall({{"de", de, "test"}, {"fr", fr, "test"}}).bleu, 25);
  fr.bleu = -1;
  EXPECT_EQ(overall({{"de", de}, {"fr", fr}}).bleu, -1);
}

TEST(HeadScores, OfDifferentSetsHaveNoMeanBleu) {
  CorpusScore de, fr;
  de.nll = 1, de.target_tokens = 30, de.bleu = 10;
  fr.nll = 5, fr.target_tokens = 10, fr.bleu = 40;
  const std::vector<HeadScore> heads{{"de", de, "test"}, {"fr", fr, "valid"}};
  EXPECT_EQ(overall(heads).bleu, -1);
  EXPECT_DOUBLE_EQ(overall(heads).nll, 2);
  const auto scores = scores_of(heads);
  EXPECT_EQ(train::find_score(scores, "bleu"), nullptr);
  EXPECT_EQ(train::find_score(scores, "fr.bleu")->value, 40);
}

TEST(HeadScores, OfOneDecoderHaveNoOtherNames) {
  CorpusScore only;
  only.nll = 1;
  std::vector<std::string> names;
  for (const auto& score : scores_of({{"", only}})) names.push_back(score.name);
  EXPECT_EQ(names, (std::vector<std::string>{"loss", "nll", "ppl"}));
}

}  // namespace
}  // namespace stretto::tasks
