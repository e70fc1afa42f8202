// Translation takes special ids from its tokenizers, from text to loss to output. Here they come
// last, and the ids that they have elsewhere are letters.
#include "tests/text/special_ids.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "families/translation/engine/translation.h"
#include "families/translation/translation_options.h"
#include "tests/base/temp_dir.h"
#include "tests/text/renumbered_tokenizer.h"

namespace stretto::tasks {
namespace {

using Models = std::vector<std::shared_ptr<models::Seq2SeqModel>>;

/// Words of letters that are to be written backwards, and two tokenizers of the same letters.
class Backwards {
 public:
  Backwards() {
    std::string src, tgt, vocabulary;
    for (int i = 0; i < kLetters; ++i) vocabulary += letter(i) + "\n";
    for (int i = 0; i < 8; ++i) {
      std::string line, back;
      for (int k = 0; k < 2 + i % 3; ++k) {
        const std::string next = letter((i + 3 * k) % kLetters);
        line += (k > 0 ? " " : "") + next;
        back = next + (k > 0 ? " " : "") + back;
      }
      src += line + "\n";
      tgt += back + "\n";
      targets_.push_back(back);
    }
    plain_ = text::make_vocabulary(vocabulary, "letters");
    other_ = std::make_shared<stretto::testing::RenumberedTokenizer>(plain_);
    e_.run = {.seed = 3, .threads = 1, .device = "cpu"};
    auto& options = translation_of(e_);
    options.data.train_src = options.data.valid_src = {folder_.write("src", src)};
    options.data.train_tgt = options.data.valid_tgt = {folder_.write("tgt", tgt)};
    options.data.cache_dir = (folder_.path() / "cache").string();
    options.tokenizer.type = "vocab";
    options.model.d_model = 32;
    options.model.encoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 64};
    options.model.decoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 64};
    options.model.norm = "pre";
    options.model.dropout = 0;
    options.loss.label_smoothing = 0;
    options.decode.beam_size = 1;
    e_.report.samples = 2;
  }

  const std::vector<std::string>& targets() const { return targets_; }
  int64_t number(int64_t id) const { return other_->number(id); }
  text::TokenizerPair plain() const { return pair_of(plain_); }
  text::TokenizerPair other() const { return pair_of(other_); }
  TranslationModel model(const text::TokenizerPair& tokenizers) const {
    return make_translation_model(e_, tokenizers, at::kCPU);
  }
  TranslationTask task(const TranslationModel& model) const { return TranslationTask(e_, model); }
  CorpusScore score(const text::TokenizerPair& tokenizers, const Models& models) const {
    const auto corpus =
        data::open_corpus(translation_of(e_).data, data::Split::kValid, tokenizers, 3, 1);
    return score_corpus(tokenizers, models, corpus, translation_of(e_).decode,
                        {.translate = true, .loss = translation_of(e_).loss});
  }

 private:
  static constexpr int kLetters = 8;
  static std::string letter(int number) { return std::string(1, static_cast<char>('a' + number)); }
  static text::TokenizerPair pair_of(const std::shared_ptr<const text::Tokenizer>& both) {
    return {.src = both, .tgt = both, .joint = true, .assets = {}};
  }

  stretto::testing::TempDir folder_;
  experiment::Experiment e_;
  std::vector<std::string> targets_;
  std::shared_ptr<const text::Tokenizer> plain_;
  std::shared_ptr<const stretto::testing::RenumberedTokenizer> other_;
};

at::Tensor table_of(const TranslationModel& model) {
  return model.model->named_parameters()["embedding.weight"];
}

/// The weights of another numbering; rows that no id has stay.
void renumber(const Backwards& text, const TranslationModel& from, const TranslationModel& to) {
  const torch::NoGradGuard no_grad;
  for (int64_t id = 0; id < from.tokenizers.src->size(); ++id) {
    table_of(to)[text.number(id)].copy_(table_of(from)[id]);
  }
}

double loss_of(TranslationTask& task, const data::Batch& batch, int64_t update) {
  const auto sums = task.loss(task.prepare(batch), {.seed = 1, .update = update});
  const auto tokens = static_cast<double>(data::target(batch).num_rows());
  const at::Tensor loss = sums.losses.front() / tokens;
  loss.backward();
  return loss.item<double>();
}

/// Losses of so many updates by plain gradient descent.
std::vector<double> descend(TranslationTask& task, int updates) {
  torch::optim::SGD optimizer(task.model().parameters(), 0.05);
  std::vector<double> losses;
  for (int update = 0; update < updates; ++update) {
    optimizer.zero_grad();
    losses.push_back(loss_of(task, task.train_batches().load(0, 0), update));
    optimizer.step();
  }
  return losses;
}

TEST(TranslationSpecialIds, ReachTheModelFromItsTokenizers) {
  const Backwards text;
  EXPECT_EQ(text.model(text.plain()).model->target_specials(), stretto::testing::kSpecials);
  const TranslationModel other = text.model(text.other());
  EXPECT_EQ(other.model->target_specials(), other.tokenizers.tgt->specials());
  EXPECT_EQ(other.model->target_specials().eos, 8);
  const at::Tensor zero = table_of(other).detach().abs().sum(1).eq(0);
  EXPECT_TRUE(zero[other.tokenizers.tgt->specials().pad].item<bool>());
  EXPECT_EQ(zero.sum().item<int64_t>(), 1);
}

TEST(TranslationSpecialIds, DoNotChangeALoss) {
  const Backwards text;
  const TranslationModel plain = text.model(text.plain()), other = text.model(text.other());
  renumber(text, plain, other);
  TranslationTask plain_task = text.task(plain), other_task = text.task(other);
  const data::Batch batch = other_task.train_batches().load(0, 0);
  for (int64_t i = 0; i < batch.num_sequences(); ++i) {
    EXPECT_EQ(data::target(batch).sequence(i).back(), other.tokenizers.tgt->specials().eos);
  }
  const auto expected = descend(plain_task, 5), found = descend(other_task, 5);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-4 * expected[i]) << "update " << i;
  }
  EXPECT_LT(found.back(), found.front());
}

TEST(TranslationSpecialIds, DoNotChangeAnOutputOrAnEnsemble) {
  const Backwards text;
  const TranslationModel plain = text.model(text.plain()), other = text.model(text.other());
  {
    const torch::NoGradGuard no_grad;  // fresh weights say nearly the same of every token
    for (auto& parameter : plain.model->parameters()) parameter.mul_(4);
    for (auto& parameter : other.model->parameters()) parameter.mul_(4);
  }
  renumber(text, plain, other);
  const auto expected = text.score(plain.tokenizers, {plain.model});
  const auto found = text.score(other.tokenizers, {other.model});
  EXPECT_NEAR(found.nll, expected.nll, 1e-4 * expected.nll);
  EXPECT_EQ(found.hypotheses, expected.hypotheses);
  const auto twice = text.score(other.tokenizers, {other.model, other.model});
  EXPECT_NEAR(twice.nll, found.nll, 1e-4 * found.nll);
  EXPECT_EQ(twice.hypotheses, found.hypotheses);
}

TEST(TranslationSpecialIds, EndWhatAModelHasLearned) {
  const Backwards text;
  const TranslationModel other = text.model(text.other());
  TranslationTask task = text.task(other);
  torch::optim::Adam optimizer(task.model().parameters(), torch::optim::AdamOptions(5e-3));
  // With 31 tokens, such a mean leaves each a probability above 1/2.
  constexpr double kKnown = 0.02;
  double loss = 0;
  for (int update = 0; update < 1000; ++update) {
    optimizer.zero_grad();
    loss = loss_of(task, task.train_batches().load(0, 0), update);
    if (loss <= kKnown) break;
    optimizer.step();
  }
  ASSERT_LE(loss, kKnown) << "eight short sentences are to be known by heart";
  const auto score = text.score(other.tokenizers, {other.model});
  EXPECT_EQ(score.hypotheses, text.targets()) << "each ends where its target does";

  const auto validation = task.validate();
  ASSERT_EQ(validation.samples.size(), 2u);
  for (const auto& sample : validation.samples) {
    const auto& shown = std::get<report::TextPairSample>(sample);
    EXPECT_EQ(shown.output, shown.reference);
    EXPECT_EQ(shown.input_pieces.back(), "</s>");
    EXPECT_EQ(shown.output_pieces.back(), "</s>");
  }
}

}  // namespace
}  // namespace stretto::tasks
