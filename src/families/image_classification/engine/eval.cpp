#include <iostream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/log.h"
#include "base/named_output.h"
#include "base/text.h"
#include "distributed/agreement.h"
#include "experiment/num_threads.h"
#include "families/image_classification/engine/commands.h"
#include "families/image_classification/engine/image_classification.h"
#include "families/image_classification/engine/image_run.h"
#include "families/image_classification/requests.h"
#include "families/text/engine/eval_files.h"
#include "tasks/finite_answers.h"
#include "tasks/left_out.h"
#include "tasks/line_work.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

// Where each picture is, its class, the predicted one and the probability of that.
void write_guesses(const std::string& path, const data::ImageSet& set, const data::Labels& classes,
                   const train::ScoreTable& table) {
  if (path.empty()) return;
  std::string lines;
  for (int64_t i = 0; i < set.size(); ++i) {
    const auto numbers = table.row(i);
    lines += set.table().place(i) + "\t" + classes.name(set.label(i));
    if (numbers[kImageReadable] != 0) {
      lines += "\t" + classes.name(static_cast<int64_t>(numbers[kImageGuess])) + "\t" +
               fixed(numbers[kImageGuessProbability], 6);
    }
    lines += "\n";
  }
  write_named_output(path, lines);
}

struct ScoredPictures {
  std::string checkpoint, set;
  std::vector<train::Score> scores;
  int64_t pictures = 0, unreadable = 0;
};

void print_image_scores(bool as_json, const ScoredPictures& scored) {
  if (as_json) {
    nlohmann::ordered_json json{{"set", scored.set}, {"checkpoint", scored.checkpoint}};
    for (const auto& score : scored.scores) json[score.name] = score.value;
    json["pictures"] = scored.pictures;
    json["unreadable_pictures"] = scored.unreadable;
    std::cout << json_line(json) << std::flush;
    return;
  }
  for (const auto& score : scored.scores) {
    std::cout << score.name << " " << fixed(score.value, 4) << "  ";
  }
  std::cout << "pictures " << with_thousands(scored.pictures);
  if (scored.unreadable > 0) std::cout << "  unreadable " << with_thousands(scored.unreadable);
  std::cout << std::endl;
}

}  // namespace

int evaluate_images(const EvalRequest& request, const CommandContext& context) {
  const auto& experiment = request.experiment.options;
  const auto& options = experiment::images_of(experiment);
  const auto& asked = request.own.as<ImageEvalFiles>();
  const auto files = eval_files(asked.data, options.data.test, options.data.valid,
                                "give --data with a folder or a file of pictures");
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto& group = context.group;
  const auto run = load_image_run(experiment, folder, request.checkpoint, context.device);
  const auto set =
      open_image_set(options.data, files.key, files.paths, run.classes, group.is_root());
  const std::string checkpoint = checkpoint_names(run.checkpoints, folder);
  if (group.is_root()) {
    log::info("checkpoint " + checkpoint + ", " + files.name + " pictures");
    warn_of_left_out(set->left_out());
  }
  distributed::require_agreement(
      group, {{"checkpoint", checkpoint + " " + checkpoint_hash(run.checkpoints)},
              {"pictures", hex64(set->table().hash()) + " of " + counted(set->size(), "picture")}});
  const auto table = score_images(
      run.models, image_batches(set, options), options,
      {.device = context.device,
       .group = group,
       .loading = data::image_loading(options.data, experiment::num_threads(experiment))});
  for (int64_t i = 0; i < set->size(); ++i) {
    if (table.row(i)[kImageOverflowed] == 0) continue;
    refuse_not_finite(set->table().place(i), "its prediction", request.run_directory);
  }
  if (!group.is_root()) return 0;  // all have the same result, one says it
  write_guesses(asked.predictions, *set, run.classes, table);
  print_image_scores(request.json, {.checkpoint = checkpoint,
                                    .set = files.name,
                                    .scores = scores_of_images(table),
                                    .pictures = set->size(),
                                    .unreadable = num_unreadable(table, set->size())});
  return 0;
}

}  // namespace stretto::tasks
