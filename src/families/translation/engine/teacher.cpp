#include "families/translation/engine/teacher.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "experiment/load_experiment.h"
#include "experiment/run_config.h"
#include "families/translation/engine/load_run.h"
#include "families/translation/heads.h"
#include "families/translation/translation_options.h"
#include "models/seq2seq_options.h"
#include "runs/run_folder.h"
#include "tasks/load_checkpoints.h"
#include "tasks/taken_tokenizer.h"

namespace stretto::tasks {
namespace {

// The configuration of the teacher's run.
experiment::Experiment experiment_of_teacher(const std::string& directory) {
  const std::string where = (std::filesystem::path(directory) / "config.toml").string();
  auto loaded =
      experiment::load_stored_experiment(experiment::read_run_config(directory), where, {});
  if (loaded.options.task.name() == experiment::TranslationOptions::kName &&
      experiment::head_names(loaded.options).empty() &&
      !models::has_two_encoders(translation_of(loaded.options).model)) {
    return std::move(loaded.options);
  }
  throw Error(ExitCode::kUsage,
              "loss.teacher: " + directory +
                  " is no model that reads one source and writes with one decoder",
              "name the run folder of such a model of translation");
}

void require_positions(const experiment::Experiment& teacher,
                       const experiment::Experiment& student) {
  const auto learned = models::learned_positions(translation_of(teacher).model);
  const auto& data = translation_of(student).data;
  const int64_t longest = std::max(data.max_src_tokens, data.max_tgt_tokens);
  if (learned.tokens >= longest) return;
  throw Error(
      ExitCode::kUsage,
      "loss.teacher: it has " + counted(learned.tokens, "learned position") +
          ", and sentences may have " + counted(longest, "token"),
      "lower data.max_src_tokens and data.max_tgt_tokens to " + std::to_string(learned.tokens));
}

}  // namespace

std::vector<std::shared_ptr<models::Seq2SeqModel>> load_teachers(
    const experiment::Experiment& student, const text::TokenizerPair& tokenizers,
    at::Device device) {
  const auto& loss = translation_of(student).loss;
  if (!loss.has_teacher()) return {};
  const auto teacher = experiment_of_teacher(loss.teacher);
  require_positions(teacher, student);
  auto run = load_translation_run(teacher, runs::RunFolder::open(loss.teacher),
                                  loss.teacher_checkpoint, device);
  if (run.tokenizers.assets != tokenizers.assets) {
    throw Error(ExitCode::kUsage,
                "loss.teacher: " + loss.teacher + " has another vocabulary than the student",
                "leave [tokenizer] out of the student's configuration: it then takes the "
                "teacher's. `stretto distill --level sequence` needs no common vocabulary");
  }
  for (const auto& model : run.models) model->eval();
  return std::move(run.models);
}

std::vector<losses::OutputRows> rows_of_teachers(
    const std::vector<std::shared_ptr<models::Seq2SeqModel>>& teachers, const data::Batch& batch,
    const models::PairTensors& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<losses::OutputRows> all(teachers.size());
  for (size_t i = 0; i < teachers.size(); ++i) {
    const losses::RecordScope scope(all[i]);
    teachers[i]->loss(batch, tensors, {.training = false});
  }
  return all;
}

text::TokenizerPair tokenizers_of_teacher(const experiment::LoadedExperiment& student) {
  const std::string& directory = translation_of(student.options).loss.teacher;
  const auto teacher = experiment_of_teacher(directory);
  auto tokenizers = text::load_tokenizers(translation_of(teacher).tokenizer,
                                          assets_of(runs::RunFolder::open(directory)));
  tell_taken_tokenizer(student, directory + ", the teacher");
  return tokenizers;
}

}  // namespace stretto::tasks
