#include "families/speech_synthesis/speech_synthesis_display.h"

namespace stretto::tasks {

std::vector<experiment::ScoreSpec> speech_synthesis_scores() {
  return {{.style = report::loss_style(), .also_called = {"valid_loss", "eval_loss", "val_loss"}},
          {.style = {.name = synthesis_score::kMelL1,
                     .label = "Frame L1",
                     .progress = "L1",
                     .chart = "Frame error",
                     .axis = report::Axis::kFromZero,
                     .tile = "Frame L1",
                     .column = "Frame L1",
                     .of_validation = true},
           .also_called = {"l1", "mel_loss", "mae"},
           .title = "mean absolute error of frames"},
          {.style = {.name = synthesis_score::kStopError,
                     .label = "Stop error",
                     .chart = "Stop error",
                     .axis = report::Axis::kFromZero,
                     .column = "Stop error",
                     .of_validation = true},
           .also_called = {"gate_error", "stop_token_error"},
           .title = "stop error",
           .noise = experiment::noise_of_share()},
          {.style = {.name = synthesis_score::kDiagonality,
                     .label = "Diagonality",
                     .chart = "Attention diagonality",
                     .axis = report::Axis::kFromZero,
                     .tile = "Diagonality",
                     .column = "Diagonality",
                     .higher_is_better = true,
                     .of_validation = true},
           .also_called = {"diagonality", "attention_score", "focus_rate"},
           .title = "attention diagonality",
           .noise = experiment::noise_of_share()}};
}

report::Display speech_synthesis_display() {
  report::Display display;
  display.numbers = experiment::styles_of(speech_synthesis_scores());
  display.rate = {.key = "frames_per_second",
                  .unit = kFrames,
                  .short_unit = "frames",
                  .remark = "without padding",
                  .batch = kFrames};
  display.loss_unit = {.name = kFrames, .count = kFrames};
  display.samples = "Sentences as the model speaks them";
  return display;
}

}  // namespace stretto::tasks
