#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/pairs/corpus.h"
#include "distributed/agreement.h"
#include "distributed/process_group.h"
#include "experiment/experiment.h"
#include "families/translation/engine/translator.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"
#include "models/registry.h"
#include "models/seq2seq_model.h"
#include "tasks/family.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// A text-to-text model with its tokenizers: what evaluation, inference and training share.
struct TranslationModel {
  text::TokenizerPair tokenizers;
  std::shared_ptr<models::Seq2SeqModel> model;
};

/// What a model must know beside its options, for tokenizers with so many ids.
models::ModelSetup model_setup(const experiment::Experiment& experiment, int64_t src_ids,
                               int64_t tgt_ids, at::Device device);

/// Builds the network that an experiment describes for these tokenizers.
TranslationModel make_translation_model(const experiment::Experiment& experiment,
                                        text::TokenizerPair tokenizers, at::Device device,
                                        FirstWeights weights = FirstWeights::kDrawn);

/// Loss of a corpus and, on request, its translations.
struct CorpusScore {
  double loss = 0, nll = 0;  ///< per target token, natural log
  int64_t target_tokens = 0;
  /// 13a, of text as people read it (Tokenizer::readable); -1 when nothing was translated.
  double bleu = -1;
  std::string bleu_signature;
  std::vector<std::vector<int64_t>> outputs;  ///< of the first `num_translated` pairs
  std::vector<std::string> hypotheses;        ///< their text
  std::vector<double> pair_nll;  ///< [pairs] in corpus order, over target tokens; with `per_pair`
};
struct CorpusScoreOptions {
  int64_t max_tokens = 4096;
  int64_t max_samples = 0;  ///< of a batch; 0 = any number
  bool translate = false;
  int64_t num_translated = 0;             ///< 0 = all
  bool per_pair = false;                  ///< whether `pair_nll` is wanted
  losses::CrossEntropyOptions loss = {};  ///< as the models were made with; used for an ensemble
  /// What translations choose their words from (open_shortlist()); null = all.
  std::shared_ptr<const decoding::Shortlist> shortlist = {};
  /// Batches are shared out among these processes; every one gets the whole result, which does not
  /// depend on their number.
  distributed::ProcessGroup group = {};
  data::Loading loading = {};
};
/// @param models  one, or several that predict together as an ensemble: loss and nll are then those
///                of the mean of their probabilities (families/translation/engine/ensemble_loss.h)
CorpusScore score_corpus(const text::TokenizerPair& tokenizers,
                         const std::vector<std::shared_ptr<models::Seq2SeqModel>>& models,
                         const std::shared_ptr<const data::Corpus>& corpus,
                         const decoding::DecodeOptions& decode, const CorpusScoreOptions& options);

/// How the target text was split before it came, and what that means for translations and BLEU, in
/// words; empty for raw text.
///
/// @param corpus  validation or test text, whose first references are looked at; may be null
std::string split_beforehand(const text::TokenizerOptions& options,
                             const text::Tokenizer& tokenizer, const data::Corpus* corpus);

/// Machine translation: sentence pairs, an encoder-decoder, cross entropy, BLEU. A model with
/// several decoders has text, a loss and scores for each; its micro-batches are mixed
/// (data/mixed_batches.h).
class TranslationTask : public FamilyTask {
 public:
  /// @param group  the processes that train together: they share validation
  TranslationTask(const experiment::Experiment& experiment, TranslationModel model,
                  distributed::ProcessGroup group = {});

  torch::nn::Module& model() override { return *model_.model; }
  const data::BatchSource& train_batches() override { return *batches_; }
  std::vector<optim::TiedName> tied_names() const override { return model_.model->tied_names(); }
  /// With several heads, "de.loss" and so on, each with its weight.
  std::vector<std::string> losses() const override;
  bool has_all_losses_together() const override { return !has_heads(); }
  std::vector<std::string> statistics() const override;
  std::vector<std::string> counters() const override { return {"target tokens", "source tokens"}; }
  train::TaskWords words() const override;
  /// Source and target, as the tokenizers decode them; with several heads, which head.
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override;
  train::Prepared prepare(data::Batch batch) const override;
  train::Sums loss(const train::Prepared& batch, const train::StepContext& context) override;
  std::vector<double> weights(const data::Batch& batch) const override;
  /// Per target token of all heads, whatever their weights.
  double shown_loss(const train::Totals& totals) const override;
  std::vector<train::Score> measures(const train::Totals& totals) const override;
  bool can_validate() const override;
  train::Validation validate() override;
  std::map<std::string, std::string> assets() const override { return model_.tokenizers.assets; }

  std::vector<distributed::Fact> data_facts() const override;
  /// As require_known() looks at text (families/text/known_text.h).
  void require_known_data(bool warn) const override;
  /// Corpus, vocabulary and filters.
  std::vector<std::pair<std::string, std::string>> facts() const override;
  std::vector<std::string> notes() const override;
  data::Loading loading() const override { return {.depth = options_.data.prefetch}; }
  int64_t update_bound() const override;
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& run) const override;

 private:
  /// A decoder with its text, or the only one.
  struct Part {
    experiment::Head head;
    std::shared_ptr<const data::Corpus> train, valid;  ///< valid: null = none
    std::shared_ptr<models::Seq2SeqModel> model;       ///< with this decoder alone
  };

  bool has_heads() const { return !parts_.front().head.name.empty(); }
  Part open_part(const experiment::Head& head, size_t number) const;
  std::unique_ptr<data::BatchSource> make_batches() const;
  std::vector<report::Sample> samples(const Part& part, const CorpusScore& score,
                                      size_t most) const;
  void add_train_facts(const Part& part,
                       std::vector<std::pair<std::string, std::string>>& facts) const;
  void add_filter_facts(const Part& part,
                        std::vector<std::pair<std::string, std::string>>& facts) const;
  void add_valid_facts(const Part& part,
                       std::vector<std::pair<std::string, std::string>>& facts) const;

  const experiment::Experiment experiment_;
  const experiment::TranslationOptions& options_ = translation_of(experiment_);
  TranslationModel model_;
  distributed::ProcessGroup group_;
  std::vector<Part> parts_;  ///< in the order of model.heads: Batch::stream
  std::shared_ptr<const decoding::Shortlist> shortlist_;         ///< of decode.shortlist
  std::vector<std::shared_ptr<models::Seq2SeqModel>> teachers_;  ///< of loss.teacher
  std::unique_ptr<data::BatchSource> batches_;
};

}  // namespace stretto::tasks
