#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/squad/squad_file.h"
#include "distributed/agreement.h"
#include "experiment/experiment.h"
#include "families/text/engine/run_model.h"
#include "runs/run_folder.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// What stands behind the encoder of a model that answers questions.
TextHead span_head();

/// A run that answers questions. Throws as load_text_run() does.
LoadedTextRun load_question_run(const experiment::Experiment& experiment,
                                const runs::RunFolder& folder, const std::string& checkpoints,
                                at::Device device);

/// The file of the run folder that says whether training had questions without an answer.
Assets answer_assets(bool had_impossible);
/// What it says; false of a run without that file, such as an imported one. Throws Error(kBadData)
/// where it is not what answer_assets() makes.
bool had_impossible(const Assets& assets);

/// Questions as the processes of `eval` compare them.
distributed::Fact questions_fact(const std::string& name, const data::SquadData& questions);

/// Says how many questions lost their end to data.max_question_tokens, and how many tokens that
/// was; nothing of 0.
void warn_of_cut(int64_t questions, int64_t tokens);

/// Says how many answers data.bad_answers = "skip" left out, and which questions data.bad_samples.
void warn_of_skipped(const data::SquadData& questions);

}  // namespace stretto::tasks
