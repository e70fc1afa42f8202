#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "base/named_output.h"
#include "base/text.h"
#include "data/speech/speech_files.h"
#include "distributed/agreement.h"
#include "experiment/num_threads.h"
#include "families/speech_synthesis/engine/commands.h"
#include "families/speech_synthesis/engine/synthesis_run.h"
#include "families/speech_synthesis/engine/synthesis_scores.h"
#include "families/speech_synthesis/engine/voice_set.h"
#include "families/speech_synthesis/requests.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "families/speech_synthesis/voice_frames.h"
#include "families/text/engine/eval_files.h"
#include "tasks/finite_answers.h"
#include "tasks/left_out.h"
#include "tasks/line_work.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

std::string without_tabs(std::string text) {
  for (char& character : text) {
    if (character == '\t' || character == '\n' || character == '\r') character = ' ';
  }
  return text;
}

// Below a line of names, a line for each clip.
void write_clips(const std::string& path, const VoiceSet& set, const train::ScoreTable& table) {
  if (path.empty()) return;
  std::string lines = "clip\tframes\tloss\tmel_l1\tstop\tdiagonality\tmonotonic\ttext\n";
  for (size_t i = 0; i < set.samples.ids.size(); ++i) {
    const int64_t clip = set.samples.ids[i];
    const auto numbers = table.row(clip);
    const double frames = numbers[kClipLength];
    std::vector<std::string> cells{without_tabs(set.clips->place(clip))};
    if (frames > 0) {
      for (const std::string& cell :
           {fixed(frames, 0), fixed(numbers[kClipLoss] / frames, 6),
            fixed(numbers[kClipL1] / frames, 6), fixed(numbers[kClipStop], 0),
            fixed(numbers[kClipDiagonality], 4), fixed(numbers[kClipMonotonic], 4)}) {
        cells.push_back(cell);
      }
    } else {
      cells.resize(7, "-");
    }
    cells.push_back(without_tabs(set.texts[i]));
    lines += join(cells, "\t") + "\n";
  }
  write_named_output(path, lines);
}

struct ScoredClips {
  std::string checkpoint, set;
  std::vector<train::Score> scores;
  int64_t frames = 0, clips = 0, unreadable = 0;
};

void print_clip_scores(bool as_json, const ScoredClips& scored) {
  if (as_json) {
    nlohmann::ordered_json json{{"set", scored.set}, {"checkpoint", scored.checkpoint}};
    for (const auto& score : scored.scores) json[score.name] = score.value;
    json["frames"] = scored.frames;
    json["clips"] = scored.clips;
    json["unreadable_clips"] = scored.unreadable;
    std::cout << json_line(json) << std::flush;
    return;
  }
  for (const auto& score : scored.scores) {
    std::cout << score.name << " " << fixed(score.value, 4) << "  ";
  }
  std::cout << "clips " << with_thousands(scored.clips);
  if (scored.unreadable > 0) std::cout << "  unreadable " << with_thousands(scored.unreadable);
  std::cout << std::endl;
}

}  // namespace

int evaluate_voice(const EvalRequest& request, const CommandContext& context) {
  const auto& experiment = request.experiment.options;
  const auto& own = experiment::synthesis_of(experiment);
  const auto& asked = request.own.as<SynthesisEvalFiles>();
  const auto files = eval_files(asked.data, own.data.test, own.data.valid,
                                "give --data with a folder or a manifest of clips");
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto& group = context.group;
  const int64_t threads = experiment::num_threads(experiment);
  const auto run = load_synthesis_run(experiment, folder, request.checkpoint, context.device);
  const VoiceText text(own.tokenizer, run.voice.tokenizer);
  const experiment::VoiceFrames frames(own, static_cast<uint64_t>(experiment.run.seed));
  const auto spoken = scored_batches(open_voice_set(own, files.key, files.paths, text,
                                                    run.voice.speakers, threads, group.is_root()),
                                     own);
  const std::string checkpoint = checkpoint_names(run.checkpoints, folder);
  if (group.is_root()) {
    log::info("checkpoint " + checkpoint + ", " + files.name + " clips");
    warn_of_left_out(spoken.set.clips->left_out());
  }
  distributed::require_agreement(
      group,
      {{"checkpoint", checkpoint + " " + checkpoint_hash(run.checkpoints)},
       {"clips", hex64(spoken.set.hash()) + " of " + counted(spoken.set.num_samples(), "clip")}});
  const auto table = score_voice(*run.model, spoken, frames, own,
                                 {.device = context.device,
                                  .group = group,
                                  .loading = data::speech_loading(own.data, threads)});
  for (const int64_t clip : spoken.set.samples.ids) {
    if (table.row(clip)[kClipOverflowed] == 0) continue;
    refuse_not_finite(spoken.set.clips->place(clip), "its frames", request.run_directory);
  }
  if (!group.is_root()) return 0;  // all have the same result, one says it
  write_clips(asked.predictions, spoken.set, table);
  const int64_t clips = spoken.set.num_samples();
  print_clip_scores(request.json, {.checkpoint = checkpoint,
                                   .set = files.name,
                                   .scores = scores_of_voice(table, spoken.set),
                                   .frames = static_cast<int64_t>(table.sum(kClipLength)),
                                   .clips = clips,
                                   .unreadable = clips - num_read_clips(table, spoken.set)});
  return 0;
}

}  // namespace stretto::tasks
