#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/rule_check.h"
#include "experiment/score_spec.h"
#include "experiment/task_facts.h"
#include "nn/adapter_options.h"
#include "nn/lora_options.h"
#include "text/tokenizer_options.h"

namespace stretto::experiment {

struct OtherModel;
struct Preflight;
struct PreflightOptions;
struct TakenValue;

/// The data for validation, as messages speak of them.
struct ValidationData {
  bool there = false;
  std::string name;               ///< "validation text"
  std::vector<std::string> keys;  ///< that give them
  std::string remedy;             ///< "set data.valid_src and data.valid_tgt, or data.valid_tsv"
};

/// The bound of a micro-batch, and its key.
struct BatchBound {
  std::string key;    ///< "data.max_tokens"
  int64_t value = 0;  ///< 0 = there is none
  std::string unit;   ///< what it counts: "tokens"
};

/// The width of a model, and its key.
struct ModelWidth {
  std::string key;  ///< "model.d_model"; empty = the family's models have no width
  int64_t value = 0;
};

/// A key of `[model]` in two experiments.
struct ModelDifference {
  std::string key, theirs, own;  ///< "model.num_heads", and values as TOML writes them
  std::string key_there;         ///< "model.encoders.1.num_heads"; the same for most
};

/// What a family of tasks says of a configuration before anything is built: part of its FamilySpec.
/// What only the linter asks is in TaskFacts. No libtorch.
class TaskRules : public TaskFacts {
 public:
  /// Rules of the family's model, and of what turns its data into ids or numbers. They are reported
  /// before the rules of the optimizer and of the run.
  virtual void check_model(RuleCheck& check) const = 0;
  /// Rules of its data and of its outputs. They are reported after those of the run.
  virtual void check_data(RuleCheck& check) const = 0;
  /// What training alone needs, such as training text: not asked of a run's stored configuration,
  /// which may describe a model that was imported.
  virtual void check_training(RuleCheck& /*check*/) const {}

  /// What training would stop at in the data, as experiment/preflight.h says: nothing, where the
  /// family does not look.
  /// @param known  problems of the configuration: what they concern is left out
  virtual Preflight look_at_data(const Experiment& experiment,
                                 const std::vector<config::Problem>& known,
                                 const PreflightOptions& how) const;

  /// The part of it that the files alone show, those of a named tokenizer too, while no text is
  /// tokenised: training asks before it makes a run folder. Nothing where the family does not look.
  virtual Preflight look_at_files(const Experiment& experiment,
                                  const std::vector<config::Problem>& known,
                                  const PreflightOptions& how) const;

  /// Makes in the cache what a new run will open there, as far as the files of `[data]` and
  /// `[tokenizer]` decide it and it takes little time: a start does it while libtorch is being
  /// loaded. Nothing where the family has nothing to make. Throws as training does.
  virtual void prepare_data(const Experiment& /*experiment*/) const {}

  /// All numbers by which people judge a run, in the order in which they are shown. At least one
  /// ranks.
  virtual std::vector<ScoreSpec> scores(const Experiment& experiment) const = 0;
  virtual ValidationData validation_data(const Experiment& experiment) const = 0;
  /// `optim.reference_batch` counts the same; an update has `train.update_freq` times as much.
  virtual BatchBound micro_batch(const Experiment& experiment) const = 0;
  /// Whether the model normalises over the rows of a micro-batch.
  virtual bool has_batch_norm(const Experiment& /*experiment*/) const { return false; }
  /// Whether the model takes a state of its lanes from one update to the next
  /// (train::Task::carry()).
  virtual bool has_carry(const Experiment& /*experiment*/) const { return false; }
  /// Entries of `model.init` (nn/init_options.h): first weights by name pattern.
  virtual std::vector<std::string> init_rules(const Experiment& /*experiment*/) const { return {}; }
  /// `model.lora`; null where the family's models have none.
  virtual const nn::LoraOptions* lora(const Experiment& /*experiment*/) const { return nullptr; }
  /// `model.adapter`; null where the family's models have none.
  virtual const nn::AdapterOptions* adapter(const Experiment& /*experiment*/) const {
    return nullptr;
  }
  /// `[tokenizer]` as text/tokenizer.h takes it; nothing where the family has no tokenizer.
  virtual std::optional<text::TokenizerOptions> tokenizer_options(
      const Experiment& /*experiment*/) const {
    return std::nullopt;
  }
  /// The folder of a run whose predictions training learns (`loss.teacher`), and whose tokenizer a
  /// run without one of its own takes; empty where there is none.
  virtual std::string teacher_run(const Experiment& /*experiment*/) const { return {}; }
  /// The same experiment without it: for a task that trains nothing.
  virtual Experiment without_teacher(Experiment experiment) const { return experiment; }
  /// The schedule `noam` divides by its root, and is refused where there is none.
  virtual ModelWidth model_width(const Experiment& /*experiment*/) const { return {}; }
  /// A run's stored configuration that is older than a key gets the value that says what the run
  /// did, where it is not the default. @param given  the keys that the configuration states
  virtual void complete_stored(Experiment& /*experiment*/, const config::Origins& /*given*/) const {
  }
  /// `train.init_from`: where the other run's model computes other numbers than `own` would with
  /// the same tensors, though their shapes are the same. Nothing for parts that `own` takes nothing
  /// from, and for runs of other families.
  /// @param stored  the names of the other run's tensors; not read without `train.init_only`
  virtual std::vector<ModelDifference> hidden_differences(
      const Experiment& /*theirs*/, const Experiment& /*own*/,
      const std::vector<std::string>& /*stored*/) const {
    return {};
  }
  /// `train.init_from`: values of keys of `[model]` and `[tokenizer]` that `own` need not repeat:
  /// those of the other model, or what the family makes of it. By default, and for models of other
  /// families, none. @param given  which keys `own` states; their values need not be left out
  virtual std::vector<TakenValue> values_of_other_model(const OtherModel& other,
                                                        const Experiment& own,
                                                        const config::Origins& given) const;
};

/// The rules of the family that `task.name` names; null for another name, which is a problem of its
/// own.
const TaskRules* find_task_rules(const Experiment& experiment);

/// TaskRules::without_teacher() of its family; of one that is not known the experiment as it is.
Experiment without_teacher(const Experiment& experiment);

/// Whether training reads its text with the tokenizers of the run that `train.init_from` names, or
/// without that with those of its teacher: the configuration names none, and rows of pieces are not
/// matched. Not for a family that is not known, or has no tokenizer.
bool takes_tokenizer_of_other_run(const Experiment& experiment);

/// The width of the experiment's model; none for a family that is not known.
ModelWidth model_width(const Experiment& experiment);

}  // namespace stretto::experiment
