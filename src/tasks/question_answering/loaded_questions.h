#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/squad/squad_file.h"
#include "distributed/agreement.h"
#include "experiment/experiment.h"
#include "models/text_model.h"
#include "tasks/family.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// A run that answers questions.
struct LoadedQuestionRun {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::vector<std::shared_ptr<models::TextModel>> models;
  std::string checkpoint;       ///< names, with commas
  std::string checkpoint_hash;  ///< of all their files
  bool may_have_none = false;   ///< whether it may say that a paragraph has no answer
};

/// @param checkpoints  as runs/choose_checkpoint.h reads them
/// Throws as load_text_run() does.
LoadedQuestionRun load_question_run(const experiment::Experiment& experiment,
                                    const std::string& directory, const std::string& checkpoints,
                                    at::Device device);

/// The file of the run folder that says whether training had questions without an answer.
Assets answer_assets(bool has_impossible);
/// Of a run without that file, such as an imported one: false.
bool had_impossible(const Assets& assets);

/// Questions as processes compare them.
distributed::Fact questions_fact(const std::string& name, const data::SquadData& questions);

/// Says which answers data.bad_answers = "skip" left out.
void warn_of_skipped(const data::SquadData& questions);

}  // namespace stretto::tasks
