#pragma once

#include <memory>
#include <vector>

#include "data/batch.h"
#include "experiment/experiment.h"
#include "experiment/load_experiment.h"
#include "losses/teacher.h"
#include "models/seq2seq_model.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// The models of the run that `loss.teacher` names, one for each of its checkpoints; none where it
/// names no run. They are no part of the student.
///
/// Throws Error(kUsage) for what is no run of translation, for a teacher whose tokenizer is not the
/// student's, and where its positions are too few for the student's data; and as
/// load_translation_run() does.
std::vector<std::shared_ptr<models::Seq2SeqModel>> load_teachers(
    const experiment::Experiment& student, const text::TokenizerPair& tokenizers,
    at::Device device);

/// What stands before the losses of these models, of a micro-batch of the student: no dropout, no
/// gradient.
std::vector<losses::OutputRows> rows_of_teachers(
    const std::vector<std::shared_ptr<models::Seq2SeqModel>>& teachers, const data::Batch& batch,
    const models::PairTensors& tensors);

/// The tokenizers of that run, for a student that names none. The log says which keys yield to
/// them.
text::TokenizerPair tokenizers_of_teacher(const experiment::LoadedExperiment& student);

}  // namespace stretto::tasks
