#pragma once

#include <tuple>

#include "config/field.h"
#include "data/pairs/data_options.h"
#include "decoding/decode_options.h"
#include "distributed/dist_options.h"
#include "experiment/eval_options.h"
#include "experiment/task_options.h"
#include "losses/cross_entropy_options.h"
#include "models/seq2seq_options.h"
#include "optim/optim_options.h"
#include "report/report_options.h"
#include "text/tokenizer_options.h"
#include "train/run_options.h"
#include "train/train_options.h"

namespace stretto::experiment {

/// One configuration file: every section with its defaults.
struct Experiment {
  train::RunOptions run;
  TaskOptions task;
  data::DataOptions data;
  text::TokenizerOptions tokenizer;
  models::Seq2SeqOptions model;
  losses::CrossEntropyOptions loss;
  optim::OptimOptions optim;
  optim::ScheduleOptions schedule;
  train::TrainOptions train;
  distributed::DistOptions dist;
  EvalOptions eval;
  decoding::DecodeOptions decode;
  report::ReportOptions report;

  static auto fields() {
    using config::field;
    using E = Experiment;
    return std::tuple{
        field(&E::run, "run", "what every experiment has").also_called({"common"}),
        field(&E::task, "task", "what is learned"),
        field(&E::data, "data", "text, read in place")
            .also_called({"dataset", "corpus", "corpora", "datasets"}),
        field(&E::tokenizer, "tokenizer", "from text to ids and back")
            .also_called({"vocab", "vocabulary", "sentencepiece"}),
        field(&E::model, "model", "the network").also_called({"network", "architecture"}),
        field(&E::loss, "loss", "what is minimised").also_called({"criterion", "objective"}),
        field(&E::optim, "optim", "how weights change"),
        field(&E::schedule, "schedule", "learning rate over updates")
            .also_called({"lr_schedule", "lr_scheduler", "scheduler"}),
        field(&E::train, "train", "length of the run, accumulation, checkpoints")
            .also_called({"trainer", "training_args", "training_arguments", "checkpoint"}),
        field(&E::dist, "dist", "processes that train together")
            .also_called({"distributed", "distributed_training", "parallel", "ddp"}),
        field(&E::eval, "eval", "validation while training")
            .also_called({"validation", "valid", "evaluation", "dev"}),
        field(&E::decode, "decode", "from a model to sentences")
            .also_called({"decoding", "generation", "inference", "translate", "beam_search"}),
        field(&E::report, "report", "what people look at")
            .also_called({"logging", "log", "tensorboard"}),
    };
  }
};

/// Whether processes may share a micro-batch (data::Share::cut). Its parts make the same update but
/// for rounding, and with batch norm another one.
bool may_cut_micro_batches(const Experiment& experiment);

}  // namespace stretto::experiment
