#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "families/text/encoder_sections.h"
#include "families/text/text_rules.h"
#include "models/causal_options.h"
#include "text/tokenizer.h"

namespace stretto::experiment {

/// What `check` asks of every task on encoded texts (families/text/encoder_sections.h): TextRules,
/// and the rules of the model. A family calls check_model(), check_data() and check_training() of
/// this class first.
class EncoderRules : public TextRules {
 public:
  /// The model's parts, and the tokenizer's files.
  void check_model(RuleCheck& check) const override;
  /// That texts fit into micro-batches and positions.
  void check_data(RuleCheck& check) const override;
  /// That there is training text, and that the model has a head.
  void check_training(RuleCheck& check) const override;

  /// Whether `model.name` may choose a causal stack (EncoderSections::causal).
  virtual bool takes_causal_stacks() const { return false; }
  /// The stack of a language model; nothing for an encoder.
  std::optional<models::CausalModelOptions> causal_stack(
      const Experiment& experiment) const override;
  /// Texts of a causal stack stand behind a separator (text/behind_separator.h).
  std::shared_ptr<const text::Tokenizer> tokenizer_of_model(
      const Experiment& experiment,
      std::shared_ptr<const text::Tokenizer> tokenizer) const override;
  /// The family's sections: encoder_sections_of() its struct.
  virtual EncoderSections encoder_sections(const Experiment& experiment) const = 0;
  TextSections sections(const Experiment& experiment) const final {
    return encoder_sections(experiment);
  }
  /// Whether a sample is a pair of texts.
  virtual bool reads_pairs(const Experiment& /*experiment*/) const { return false; }
  /// Whether the head reads one row of each text, as `model.pooling` says.
  virtual bool reads_pooled_rows() const { return false; }
  /// Whether the head predicts masked tokens, with an activation and a norm of the encoder's kind.
  virtual bool predicts_masked_tokens() const { return false; }

  std::vector<std::string> init_rules(const Experiment& experiment) const override;
  const nn::LoraOptions* lora(const Experiment& experiment) const override;
  const nn::AdapterOptions* adapter(const Experiment& experiment) const override;
  std::vector<ModelDifference> hidden_differences(
      const Experiment& theirs, const Experiment& own,
      const std::vector<std::string>& stored) const override;
  std::vector<TakenValue> values_of_other_model(const OtherModel& other, const Experiment& own,
                                                const config::Origins& given) const override;
  ModelWidth model_width(const Experiment& experiment) const override;
};

/// The rules of the experiment's family. Throws std::bad_cast for other families.
const EncoderRules& encoder_rules_of(const Experiment& experiment);

}  // namespace stretto::experiment
