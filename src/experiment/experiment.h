#pragma once

#include "config/choice.h"
#include "config/field.h"
#include "distributed/dist_options.h"
#include "experiment/eval_options.h"
#include "experiment/masked_lm_options.h"
#include "experiment/question_answering_options.h"
#include "experiment/text_classification_options.h"
#include "experiment/translation_options.h"
#include "optim/optim_options.h"
#include "report/report_options.h"
#include "train/run_options.h"
#include "train/train_options.h"

namespace stretto::experiment {

/// The families of tasks, each with the sections that it reads: `[data]`, `[model]` and the like.
using TaskChoice = config::Choice<TranslationOptions, MaskedLmOptions, QuestionAnsweringOptions,
                                  TextClassificationOptions>;

/// One configuration file: every section with its defaults.
struct Experiment {
  train::RunOptions run;
  TaskChoice task;
  optim::OptimOptions optim;
  optim::ScheduleOptions schedule;
  train::TrainOptions train;
  distributed::DistOptions dist;
  EvalOptions eval;
  report::ReportOptions report;

  static auto fields() {
    using config::field;
    using E = Experiment;
    return config::Fields{
        field(&E::run, "run", "what every experiment has").also_called({"common"}),
        field(&E::task, "task", "what is learned")
            .value_also_called("translation",
                               {"mt", "seq2seq", "translation_from_pretrained_bart", "text2text"})
            .value_also_called("masked_lm", {"mlm", "fill_mask", "masked_language_modeling"})
            .value_also_called("question_answering", {"qa", "squad", "extractive_qa"})
            .value_also_called("text_classification",
                               {"classification", "sentence_prediction", "sequence_classification",
                                "text_pair_classification", "regression", "glue"})
            .with_parts_beside(),
        field(&E::optim, "optim", "how weights change"),
        field(&E::schedule, "schedule", "learning rate over updates")
            .also_called({"lr_schedule", "lr_scheduler", "scheduler"}),
        field(&E::train, "train", "length of the run, accumulation, checkpoints")
            .also_called({"trainer", "training_args", "training_arguments", "checkpoint"}),
        field(&E::dist, "dist", "processes that train together")
            .also_called({"distributed", "distributed_training", "parallel", "ddp"}),
        field(&E::eval, "eval", "validation while training")
            .also_called({"validation", "valid", "evaluation", "dev"}),
        field(&E::report, "report", "what people look at")
            .also_called({"logging", "log", "tensorboard"}),
    };
  }
};

/// The sections of translation. Throws std::bad_variant_access for another family.
inline const TranslationOptions& translation_of(const Experiment& experiment) {
  return experiment.task.as<TranslationOptions>();
}
inline TranslationOptions& translation_of(Experiment& experiment) {
  return experiment.task.as<TranslationOptions>();
}

/// Whether processes may share a micro-batch (data::RankBatches::cut). Its parts make the same
/// update but for rounding, and with batch norm another one.
bool may_cut_micro_batches(const Experiment& experiment);

}  // namespace stretto::experiment
