#include "families/translation/engine/translation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>
#include <mutex>
#include <numeric>

#include "base/text.h"
#include "data/pairs/pair_columns.h"
#include "families/translation/engine/ensemble_loss.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_display.h"
#include "families/translation/translation_options.h"
#include "metrics/scorers.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/distributed/thread_group.h"
#include "tests/tasks/listed_scores.h"
#include "tests/tasks/size_in_events.h"

namespace stretto::tasks {
namespace {

using Models = std::vector<std::shared_ptr<models::Seq2SeqModel>>;

/// Text that was split beforehand, its vocabulary, and models that know nothing.
class SplitText {
 public:
  explicit SplitText(const std::string& kind) : kind_(kind) {
    std::string src, tgt, vocabulary;
    for (int i = 0; i < 24; ++i) {
      src += sentence(i, 3 + i % 3) + "\n";
      tgt += sentence(2 * i, 2 + i % 4) + "\n";
    }
    for (int i = 0; i < kWords; ++i) vocabulary += first(i) + "\n" + rest(i) + "\n";
    e_.run = {.seed = 3, .threads = 1, .device = "cpu"};
    translation_of(e_).data.train_src =
        translation_of(e_).data.valid_src = {folder_.write("src", src)};
    translation_of(e_).data.train_tgt =
        translation_of(e_).data.valid_tgt = {folder_.write("tgt", tgt)};
    translation_of(e_).data.cache_dir = (folder_.path() / "cache").string();
    translation_of(e_).tokenizer.type = "vocab";
    translation_of(e_).tokenizer.src_vocab = folder_.write("vocab", vocabulary);
    translation_of(e_).model.d_model = 16;
    translation_of(e_).model.encoder =
        models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
    translation_of(e_).model.decoder =
        models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
    e_.report.samples = 2;
  }

  experiment::Experiment& experiment() { return e_; }
  text::TokenizerPair tokenizers() const { return experiment::make_experiment_tokenizers(e_); }
  std::shared_ptr<const data::Corpus> corpus() const {
    return data::open_corpus(translation_of(e_).data, data::Split::kValid, tokenizers(), 3, 1);
  }
  Models models(int count) {
    Models all;
    for (int i = 0; i < count; ++i) {
      e_.run.seed = 3 + i;
      all.push_back(make_translation_model(e_, tokenizers(), at::kCPU).model);
      const torch::NoGradGuard no_grad;  // fresh weights say nearly the same of every token
      for (auto& parameter : all.back()->parameters()) parameter.mul_(4);
    }
    return all;
  }
  CorpusScore score(const Models& models, const CorpusScoreOptions& options) const {
    auto decode = translation_of(e_).decode;
    decode.beam_size = 2;
    return score_corpus(tokenizers(), models, corpus(), decode, options);
  }

 private:
  static constexpr int kWords = 4;

  static std::string letters(int word) { return std::string(2, static_cast<char>('a' + word)); }
  std::string first(int word) const {
    return kind_ == "bpe"             ? letters(word) + "@@"
           : kind_ == "sentencepiece" ? "▁" + letters(word)
                                      : letters(word);
  }
  std::string rest(int word) const {
    return (kind_ == "wordpiece" ? "##" : "") + letters(word) + "x";
  }
  std::string sentence(int number, int words) const {
    std::string line;
    for (int k = 0; k < words; ++k) {
      const int word = (number + k) % kWords;
      line += (k > 0 ? " " : "") + first(word) + " " + rest(word);
    }
    return line;
  }

  std::string kind_;
  stretto::testing::TempDir folder_;
  experiment::Experiment e_;
};

bool shows_a_mark(const std::string& text) {
  for (const char* mark : {"@@", "▁", "##"}) {
    if (text.find(mark) != std::string::npos) return true;
  }
  return false;
}

double bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& reference) {
  return metrics::compute({.metric = "bleu"}, hypotheses,
                          std::vector<std::vector<std::string>>{reference})
      .score;
}

TEST(ScoreCorpus, BleuIsThatOfWordsHoweverTheyWereSplit) {
  for (const std::string kind : {"bpe", "sentencepiece", "wordpiece"}) {
    SCOPED_TRACE(kind);
    SplitText text(kind);
    const auto score = text.score(text.models(1), {.max_tokens = 40, .translate = true});
    const auto corpus = text.corpus();
    const auto subwords = text::subwords_named(kind);
    std::vector<std::string> words, pieces, output_pieces;
    for (int64_t i = 0; i < corpus->num_pairs(); ++i) {
      pieces.push_back(corpus->tgt_text(i));
      words.push_back(text::join_subwords(pieces.back(), subwords));
      std::string output;
      for (const int64_t id : score.outputs[static_cast<size_t>(i)]) {
        output += (output.empty() ? "" : " ") + text.tokenizers().tgt->piece(id);
      }
      output_pieces.push_back(output);
      EXPECT_FALSE(shows_a_mark(words.back())) << words.back();
      EXPECT_FALSE(shows_a_mark(score.hypotheses[static_cast<size_t>(i)]));
    }
    EXPECT_EQ(score.bleu, bleu(score.hypotheses, words));
    EXPECT_NE(score.bleu, bleu(output_pieces, pieces)) << "the test tells nothing";
  }
}

TEST(ScoreCorpus, TokensStayAsTheyAreWhereTheConfigurationSaysSo) {
  SplitText text("bpe");
  translation_of(text.experiment()).tokenizer.subwords = "none";
  std::string all;
  for (const auto& model : text.models(8)) {  // some of them like a piece with a mark
    const auto score = text.score({model}, {.max_tokens = 40, .translate = true});
    for (const auto& hypothesis : score.hypotheses) all += hypothesis + "\n";
  }
  EXPECT_TRUE(shows_a_mark(all)) << all;
}

TEST(TranslationTask, SamplesShowWordsAndTheModelsOwnPieces) {
  SplitText text("bpe");
  TranslationTask task(text.experiment(), {text.tokenizers(), text.models(1)[0]});
  const auto result = task.validate();
  ASSERT_EQ(result.samples.size(), 2u);
  for (const auto& shown : result.samples) {
    const auto& sample = std::get<report::TextPairSample>(shown);
    EXPECT_FALSE(shows_a_mark(sample.input + sample.reference + sample.output));
    EXPECT_TRUE(shows_a_mark(sample.input_pieces.front())) << sample.input_pieces.front();
    auto pieces = sample.output_pieces;
    ASSERT_EQ(pieces.back(), "</s>");
    pieces.pop_back();
    EXPECT_EQ(text.tokenizers().tgt->readable(join(pieces, " ")), sample.output);
  }
}

TEST(TranslationTask, NamesItsNumbersAndWhatMessagesSpeakOf) {
  SplitText text("bpe");
  TranslationTask task(text.experiment(), {text.tokenizers(), text.models(1)[0]});
  EXPECT_EQ(task.counters().front(), "target tokens");
  const auto measures =
      task.measures({.losses = {30}, .weights = {10}, .statistics = {20}, .counts = {10, 12}});
  ASSERT_EQ(measures.size(), 2u);
  EXPECT_EQ(train::find_score(measures, "nll")->value, 2);
  EXPECT_EQ(train::find_score(measures, "ppl")->value, std::exp(2.0));
  expect_listed(measures, text.experiment());
  const auto validation = task.validate();
  expect_listed(validation, text.experiment());
  for (const char* name : {"loss", "nll", "ppl", "bleu"}) {
    EXPECT_NE(train::find_score(validation.scores, name), nullptr) << name;
  }
  EXPECT_NE(task.words().smaller_batches.find("data.max_tokens"), std::string::npos);
  EXPECT_EQ(task.update_bound(), translation_of(text.experiment()).data.max_tokens);

  const auto batch = task.train_batches().load(0, 0);
  EXPECT_EQ(task.weights(batch), std::vector<double>{double(data::target(batch).num_rows())});
  EXPECT_EQ(size_in_events(task, batch, translation_display({}).loss_unit), task.weights(batch)[0]);
  const auto shown = task.show(batch, 0);
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].first, "source");
  EXPECT_EQ(shown[1].first, "target");
  EXPECT_FALSE(shown[0].second.empty());
}

/// Sums of a batch's loss at one update, in the order loss, statistics.
std::vector<double> sums_of(TranslationTask& task, const data::Batch& batch, int64_t update) {
  const train::Sums sums = task.loss(task.prepare(batch), {.seed = 3, .update = update});
  std::vector<double> all{sums.losses[0].item<double>()};
  for (const auto& statistic : sums.statistics) all.push_back(statistic.item<double>());
  return all;
}

TEST(TranslationTask, WithRDropTellsHowFarTwoPassesAreApart) {
  SplitText text("bpe");
  translation_of(text.experiment()).loss.r_drop = 5;
  TranslationTask task(text.experiment(), {text.tokenizers(), text.models(1)[0]});
  EXPECT_EQ(task.statistics(), (std::vector<std::string>{"nll", "kl"}));
  const auto measures =
      task.measures({.losses = {30}, .weights = {10}, .statistics = {20, 4}, .counts = {10, 12}});
  ASSERT_NE(train::find_score(measures, "kl"), nullptr);
  EXPECT_EQ(train::find_score(measures, "kl")->value, 0.4);
  expect_listed(measures, text.experiment());

  const auto batch = task.train_batches().load(0, 0);
  const auto sums = sums_of(task, batch, 5);
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_GT(sums[2], 0);
  EXPECT_NE(sums, sums_of(task, batch, 6));
  EXPECT_EQ(sums, sums_of(task, batch, 5));
  EXPECT_EQ(task.loss(task.prepare(batch), {.seed = 3, .update = 5}).counts.front(),
            data::target(batch).num_rows());
  EXPECT_EQ(train::find_score(task.validate().scores, "kl"), nullptr);
}

TEST(TranslationTask, TensorsThatAreMadeAheadGiveTheModelsOwnLoss) {
  for (const double r_drop : {0.0, 5.0}) {
    SplitText text("bpe");
    translation_of(text.experiment()).loss.r_drop = r_drop;
    TranslationTask task(text.experiment(), {text.tokenizers(), text.models(1)[0]});
    auto& model = dynamic_cast<models::Seq2SeqModel&>(task.model());
    const auto batch = task.train_batches().load(0, 0);
    const train::StepContext context{.seed = 3, .update = 5};
    const auto own = model.loss(batch, {.training = true, .dropout_key = context.dropout_key()});
    EXPECT_EQ(sums_of(task, batch, 5).front(), own.loss_sum.item<double>()) << r_drop;
  }
}

// So it does not matter how an update is cut: into micro-batches, among processes, for lack of
// memory.
TEST(TranslationTask, WithRDropABatchIsTheSumOfItsParts) {
  SplitText text("bpe");
  translation_of(text.experiment()).loss.r_drop = 5;
  TranslationTask task(text.experiment(), {text.tokenizers(), text.models(1)[0]});
  const auto batch = task.train_batches().load(0, 0);
  const int64_t half = batch.num_sequences() / 2;
  ASSERT_GT(half, 0);
  const auto whole = sums_of(task, batch, 5), first = sums_of(task, data::part(batch, 0, half), 5),
             second = sums_of(task, data::part(batch, half, batch.num_sequences()), 5);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(first[i] + second[i], whole[i], 1e-4 * whole[i]) << i;
  }
}

TEST(TranslationTask, WithoutRDropOrWithAnAlphaOfZeroTheLossHasItsOldBits) {
  SplitText text("bpe");
  TranslationTask plain(text.experiment(), {text.tokenizers(), text.models(1)[0]});
  EXPECT_EQ(plain.statistics(), std::vector<std::string>{"nll"});
  const auto batch = plain.train_batches().load(0, 0);
  const auto want = sums_of(plain, batch, 5);
  ASSERT_EQ(want.size(), 2u);
  translation_of(text.experiment()).loss.r_drop = 0;
  TranslationTask zero(text.experiment(), {text.tokenizers(), text.models(1)[0]});
  EXPECT_EQ(sums_of(zero, batch, 5), want);
}

TEST(TranslationTask, RefusesToDrawSegmentationsOfTextThatWasSplitBeforehand) {
  SplitText text("bpe");
  translation_of(text.experiment()).data.src_subword_sampling = 0.1;
  const Error error = stretto::testing::failure(ExitCode::kUsage, [&] {
    TranslationTask(text.experiment(), {text.tokenizers(), text.models(1)[0]});
  });
  EXPECT_NE(error.message().find("data.src_subword_sampling"), std::string::npos);
}

TEST(TranslationTask, WithoutBleuAValidationHasNoScoreOfThatName) {
  SplitText text("bpe");
  translation_of(text.experiment()).eval.bleu = false;
  TranslationTask task(text.experiment(), {text.tokenizers(), text.models(1)[0]});
  const auto result = task.validate();
  EXPECT_EQ(train::find_score(result.scores, "bleu"), nullptr);
  EXPECT_TRUE(result.samples.empty());
}

TEST(TranslationTask, ItsShortlistIsReadOnceForAllValidations) {
  SplitText text("bpe");
  auto& options = translation_of(text.experiment());
  const stretto::testing::TempDir folder;
  options.decode.shortlist = folder.write("pairs", "aa@@ bb@@\naax bbx\n");
  options.decode.shortlist_common = 4;
  options.eval.bleu = true;
  TranslationTask task(text.experiment(), {text.tokenizers(), text.models(1)[0]});
  std::filesystem::remove(options.decode.shortlist);
  task.model().eval();
  const torch::NoGradGuard no_grad;
  const auto words = [&] {
    std::string all;
    for (const auto& shown : task.validate().samples)
      all += std::get<report::TextPairSample>(shown).output + "\n";
    return all;
  };
  const std::string with_list = words();
  EXPECT_EQ(words(), with_list);
  for (const char* absent : {"aa", "cc", "dd"}) {
    EXPECT_EQ(with_list.find(absent), std::string::npos) << with_list;
  }
}

TEST(SplitBeforehand, SaysWhatBleuIsOf) {
  SplitText text("wordpiece");
  const auto& options = translation_of(text.experiment()).tokenizer;
  const auto corpus = text.corpus();
  const auto said = [&](const text::TokenizerOptions& how) {
    return split_beforehand(how, *text.tokenizers().tgt, corpus.get());
  };
  const std::string joined = said(options);
  EXPECT_NE(joined.find("wordpiece"), std::string::npos) << joined;
  translation_of(text.experiment()).tokenizer.subwords = "none";
  const std::string kept = said(options);
  EXPECT_NE(kept.find("BLEU is that of its tokens"), std::string::npos) << kept;
  // Pieces that came as if they were raw text are seen in the text itself.
  const std::string seen = said({});
  EXPECT_NE(seen.find("(wordpiece): BLEU is that of pieces"), std::string::npos) << seen;
  EXPECT_EQ(split_beforehand({}, *text.tokenizers().tgt, nullptr), "");
}

TEST(ScoreCorpus, TheLossOfThePairsAddsUpToTheWhole) {
  SplitText text("bpe");
  const auto all = text.models(2);
  for (const Models& models : {Models{all[0]}, all}) {
    const auto score = text.score(models, {.max_tokens = 40, .per_pair = true});
    const auto corpus = text.corpus();
    ASSERT_EQ(score.pair_nll.size(), static_cast<size_t>(corpus->num_pairs()));
    const double sum = std::accumulate(score.pair_nll.begin(), score.pair_nll.end(), 0.0);
    EXPECT_NEAR(sum / static_cast<double>(score.target_tokens), score.nll, 1e-6 * score.nll);
    // In the order of the corpus, not of the batches: each alone is the same.
    for (int64_t i = 0; i < corpus->num_pairs(); ++i) {
      data::Batch alone = data::pair_batch();
      alone.sample_ids = {i};
      data::source(alone) = {corpus->src(i), {0, static_cast<int32_t>(corpus->src(i).size())}};
      data::target(alone) = {corpus->tgt(i), {0, static_cast<int32_t>(corpus->tgt(i).size())}};
      const double nll = batch_loss(models, alone, translation_of(text.experiment()).loss).nll_sum;
      EXPECT_NEAR(score.pair_nll[static_cast<size_t>(i)], nll, 1e-4 * nll) << "pair " << i;
    }
  }
}

TEST(ScoreCorpus, ProcessesShareTheWorkAndHaveTheSameOutputsAndPairs) {
  SplitText text("sentencepiece");
  const auto models = text.models(2);
  const auto score = [&](const distributed::ProcessGroup& group) {
    return text.score(models,
                      {.max_tokens = 40, .translate = true, .per_pair = true, .group = group});
  };
  const CorpusScore one = score({});
  for (const int processes : {2, 3}) {
    std::mutex mutex;
    stretto::test::run_ranks(processes, [&](const distributed::ProcessGroup& group) {
      const CorpusScore shared = score(group);
      const std::lock_guard lock(mutex);
      EXPECT_EQ(shared.pair_nll, one.pair_nll);
      EXPECT_EQ(shared.outputs, one.outputs);
      EXPECT_EQ(shared.hypotheses, one.hypotheses);
      EXPECT_EQ(shared.bleu, one.bleu);
    });
  }
}

}  // namespace
}  // namespace stretto::tasks
