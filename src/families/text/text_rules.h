#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment/other_model.h"
#include "experiment/preflight.h"
#include "experiment/task_rules.h"
#include "families/text/known_text.h"
#include "families/text/text_sections.h"
#include "models/causal_options.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

/// What a tokenizer makes of a text.
struct SeenTokens {
  TokenCounts counts;
  std::string unread;   ///< "a.txt from line 1,234 on"; empty = all was read
  int64_t samples = 0;  ///< of training; 0 = they were not counted
};

/// Micro-batches that so many samples do not exceed: Preflight::most_batches.
int64_t most_batches(const TextSections& text, int64_t samples);

/// What `check` asks of every task on texts with one tokenizer (families/text/text_sections.h),
/// whatever its model is. A family derives from it and adds rules of its own: it calls
/// check_model() and check_data() of this class first. Those whose model is an encoder derive from
/// EncoderRules.
class TextRules : public TaskRules {
 public:
  /// The tokenizer's files.
  void check_model(RuleCheck& check) const override;
  /// That texts fit into micro-batches.
  void check_data(RuleCheck& check) const override;
  /// That there is training text.
  void check_training(RuleCheck& check) const override;
  std::string name_of_data() const override { return "text"; }

  /// The family's sections: sections_of() its struct.
  virtual TextSections sections(const Experiment& experiment) const = 0;
  /// What a tokenizer is trained on. Throws as the family's readers do.
  virtual std::unique_ptr<text::LineSource> training_text(const Experiment& experiment) const = 0;
  /// What is found in the family's texts, as look_at_data() gives it.
  virtual Preflight look_at_texts(const Experiment& experiment,
                                  const std::vector<config::Problem>& known,
                                  const PreflightOptions& how) const = 0;
  /// Tokenises texts as training does, as far as the time allows.
  /// @param key        "data.train", which names the files
  /// @param tokenizer  tokenizer_of_model()
  /// Throws as training does.
  virtual SeenTokens count_tokens(const Experiment& experiment, const std::string& key,
                                  const std::vector<std::string>& files,
                                  const text::Tokenizer& tokenizer,
                                  const PreflightTimer& time) const = 0;
  /// Throws Error(kUsage) for a tokenizer that the family cannot train with: one that is named,
  /// trained, or taken over from another run.
  virtual void require_tokenizer(const Experiment& /*experiment*/,
                                 const text::Tokenizer& /*tokenizer*/) const {}
  /// The tokenizer with texts as the model reads them. Throws Error(kUsage) where it has none such.
  virtual std::shared_ptr<const text::Tokenizer> tokenizer_of_model(
      const Experiment& /*experiment*/, std::shared_ptr<const text::Tokenizer> tokenizer) const {
    return tokenizer;
  }
  /// The model, where its layers are those of a language model: runs may begin with its weights.
  virtual std::optional<models::CausalModelOptions> causal_stack(
      const Experiment& /*experiment*/) const {
    return std::nullopt;
  }
  /// What training calls the samples of its text, behind "training" and "validation".
  virtual std::string name_of_samples() const { return "text"; }
  /// Whether training would stop at tokens of the texts that are unknown (`data.max_unknown`).
  /// Where samples are counted with them, `found` has the most micro-batches.
  /// @param known  problems of the configuration: what they concern is left out
  void look_at_unknown(const Experiment& experiment, const std::vector<config::Problem>& known,
                       const text::Tokenizer& tokenizer, const PreflightTimer& time,
                       Preflight& found) const;

  /// The texts, and the tokenizer that the configuration names; with `full` also one that is
  /// trained, on sound texts.
  Preflight look_at_data(const Experiment& experiment, const std::vector<config::Problem>& known,
                         const PreflightOptions& how) const final;

  /// The tokenizer that the configuration names; texts are left to training.
  Preflight look_at_files(const Experiment& experiment, const std::vector<config::Problem>& known,
                          const PreflightOptions& how) const final;

  ValidationData validation_data(const Experiment& experiment) const override;
  BatchBound micro_batch(const Experiment& experiment) const override;
  std::optional<text::TokenizerOptions> tokenizer_options(
      const Experiment& experiment) const override;
  /// The norms of a causal stack; empty without one.
  std::vector<NormedUnits> normed_units(const Experiment& experiment) const override;
  /// The sizes of training's files alone.
  FileSizes file_sizes(const Experiment& experiment) const override;
};

/// TextRules::causal_stack of the experiment's family; nothing for families that are not of text.
std::optional<models::CausalModelOptions> find_causal_stack(const Experiment& experiment);

/// The rules of the experiment's family. Throws std::bad_cast for other families.
const TextRules& text_rules_of(const Experiment& experiment);

}  // namespace stretto::experiment
