#include <iostream>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/named_output.h"
#include "base/text.h"
#include "distributed/agreement.h"
#include "families/question_answering/engine/answer_finder.h"
#include "families/question_answering/engine/answer_scores.h"
#include "families/question_answering/engine/commands.h"
#include "families/question_answering/engine/loaded_questions.h"
#include "families/question_answering/requests.h"
#include "families/text/engine/eval_files.h"
#include "families/text/engine/run_model.h"
#include "families/text/text_sections.h"
#include "tasks/finite_answers.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

/// What is told beside the scores.
struct EvaluatedSet {
  std::string name, checkpoint;
  double loss = 0;
  int64_t windows = 0;
};

void print_answer_json(const EvaluatedSet& set, const metrics::SquadScore& score,
                       metrics::SquadVersion version) {
  nlohmann::ordered_json json{{"set", set.name},
                              {"checkpoint", set.checkpoint},
                              {"loss", set.loss},
                              {"windows", set.windows}};
  const auto scores = nlohmann::ordered_json::parse(metrics::to_json(score, version));
  for (const auto& [key, value] : scores.items()) {
    if (key != "missing" && key != "unknown") json[key] = value;  // there are none
  }
  std::cout << json.dump() << std::endl;
}

void print_answer_text(const EvaluatedSet& set, const metrics::SquadScore& score) {
  const auto print = [](const std::string& name, const metrics::SquadPart& part) {
    std::cout << name << "exact match " << fixed(part.exact_match, 2) << "  F1 "
              << fixed(part.f1, 2) << "  (" << counted(part.total, "question") << ")\n";
  };
  print("", score.all);
  if (score.has_answer) print("with an answer: ", *score.has_answer);
  if (score.no_answer) print("without an answer: ", *score.no_answer);
  if (score.best_f1) {
    std::cout << "best F1 " << fixed(score.best_f1->score, 2)
              << " with decode.none_threshold = " << shortest(score.best_f1->threshold) << "\n";
  }
  std::cout << "loss " << fixed(set.loss, 4) << " over " << counted(set.windows, "window") << "\n";
  std::cout.flush();
}

void write_answer_files(const QuestionEvalFiles& files, const data::QuestionWindows& windows,
                        const FoundAnswers& found) {
  const auto write = [](const std::string& path, const auto& content) {
    if (!path.empty()) write_named_output(path, content());
  };
  write(files.predictions, [&] { return predictions_json(windows.data(), found); });
  write(files.nbest, [&] { return nbest_json(windows, found); });
  write(files.none_scores, [&] { return none_differences_json(windows.data(), found); });
}

}  // namespace

int evaluate_answers(const EvalRequest& request, const CommandContext& context) {
  const auto& experiment = request.experiment.options;
  require_head(experiment);  // whatever text there is
  const auto& options = experiment::questions_of(experiment);
  const auto& group = context.group;
  const auto chosen = eval_files(request.own.as<QuestionEvalFiles>().data, options.data.test,
                                 options.data.valid, "give a file of SQuAD: --data FILE");
  auto questions = experiment::open_questions(experiment, chosen.paths);
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto run = load_question_run(experiment, folder, request.checkpoint, context.device);
  const std::string checkpoint = checkpoint_names(run.checkpoints, folder);
  if (group.is_root()) {
    log::info("checkpoint " + checkpoint + ", " + chosen.name + " questions");
    warn_of_skipped(*questions.data);
  }
  const bool impossible = had_impossible(run.assets) || experiment::has_impossible(*questions.data);
  const auto version = experiment::squad_version(experiment, impossible);
  const auto windows =
      experiment::windows_of(experiment, std::move(questions), *run.tokenizer.tokenizer);
  if (group.is_root()) warn_of_cut(windows.num_cut_questions(), windows.num_cut_tokens());
  distributed::require_agreement(
      group, {{"checkpoint", checkpoint + " " + checkpoint_hash(run.checkpoints)},
              questions_fact("questions", windows.data())});
  const auto found =
      find_answers(run.models, windows,
                   {.choice = options.decode.choice(version == metrics::SquadVersion::kV2),
                    .max_tokens = options.eval.max_tokens,
                    .max_samples = options.eval.max_samples,
                    .group = group,
                    .loading = experiment::text_sections(experiment).loading});
  if (found.overflowed >= 0) {
    const auto& question = windows.data().questions[static_cast<size_t>(found.overflowed)];
    refuse_not_finite(chosen.name + ": question " + printable(question.id), "the answer to it",
                      request.run_directory);
  }
  if (!group.is_root()) return 0;  // all have the same result, one says it
  const auto score = score_found(experiment, windows.data(), found, version);
  write_answer_files(request.own.as<QuestionEvalFiles>(), windows, found);
  const EvaluatedSet set{chosen.name, checkpoint, found.loss(), found.num_labelled};
  if (request.json) {
    print_answer_json(set, score, version);
  } else {
    print_answer_text(set, score);
  }
  return 0;
}

}  // namespace stretto::tasks
