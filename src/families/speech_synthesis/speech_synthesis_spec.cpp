#include "families/speech_synthesis/speech_synthesis_spec.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/named_output.h"
#include "config/open_part.h"
#include "data/speech/speech_files.h"
#include "experiment/data_files.h"
#include "families/speech_synthesis/requests.h"
#include "families/speech_synthesis/speech_synthesis_display.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "families/speech_synthesis/speech_synthesis_rules.h"
#include "families/text/command_options.h"
#include "families/text/model_shapes.h"

namespace stretto::experiment {
namespace {

using tasks::SynthesisEvalFiles, tasks::SynthesisInferArguments;

/// An option that families of text have too, with what it means here.
CommandOption of_clips(CommandOption option, const char* help) {
  option.help = help;
  return option;
}

FamilyCommand eval_of_synthesis() {
  return {.options = {command_option(&SynthesisEvalFiles::data,
                                     of_clips(data_option(), "of sounds as data.train takes them")),
                      command_option(&SynthesisEvalFiles::predictions,
                                     of_clips(predictions_option(),
                                              "of synthesis a line a clip: where it is, its "
                                              "frames, loss, L1, whether it ends in time, how its "
                                              "attention looks"))}};
}

void check_output(const Experiment& /*experiment*/, const FamilyValues& values) {
  if (!values.as<SynthesisInferArguments>().output.empty()) return;
  throw Error(ExitCode::kUsage, "--output is missing: synthesis writes a sound for each line",
              "name a folder: --output sounds");
}

FamilyCommand infer_of_synthesis() {
  return {
      .options =
          {command_option(&SynthesisInferArguments::output,
                          {.name = "--output",
                           .type = "DIR",
                           .help = "of synthesis: write 00001.wav and so on, a sound for each "
                                   "line, to this folder, which is made if it is missing"}),
           command_option(&SynthesisInferArguments::speaker,
                          {.name = "--speaker",
                           .type = "NAME",
                           .help = "of synthesis: who speaks; default the first speaker of the "
                                   "run"}),
           command_option(&SynthesisInferArguments::style,
                          {.name = "--style",
                           .type = "FILE",
                           .help = "of synthesis with style tokens: a sound in the wanted style; "
                                   "default the mean of all tokens",
                           .check = must_exist("check --style")})},
      .check = &check_output,
      .batch_keys = {"decode.max_samples", "decode.max_seconds"}};
}

std::vector<data::DataFile> files_of_synthesis(const Experiment& experiment) {
  return data::speech_data_files(synthesis_of(experiment).data, files_of_path_keys(experiment));
}

PlannedWork work_of_synthesis(const Experiment& experiment) {
  const auto& own = synthesis_of(experiment);
  return {.units = own.data.batch_seconds / own.features.hop_seconds,
          .assumed = own.data.max_samples > 0 ? "data.max_samples ends no micro-batch earlier" : "",
          .key = "data.batch_seconds"};
}

ModelShape shape_of_synthesis(const Experiment& experiment) {
  const models::SynthesisModelOptions& model = synthesis_of(experiment).model;
  ModelShape shape;
  if (model.is<models::Tacotron2Options>()) {
    const auto& sizes = model.as<models::Tacotron2Options>();
    add_width(shape, "model.embedding_dim", sizes.embedding_dim, 8);
    add_width(shape, "model.encoder_dim", sizes.encoder_dim, 8);
    add_width(shape, "model.prenet_dim", sizes.prenet_dim, 8);
    add_width(shape, "model.decoder_dim", sizes.decoder_dim, 8);
    add_width(shape, "model.attention_dim", sizes.attention_dim, 8);
    add_width(shape, "model.postnet_dim", sizes.postnet_dim, 8);
    add_depth(shape, "model.encoder_convolutions", sizes.encoder_convolutions);
    shape.fan_in = static_cast<double>(2 * sizes.decoder_dim);
  } else {
    const auto& sizes = model.as<models::CentaurOptions>();
    add_width(shape, "model.d_model", sizes.d_model, 8);
    add_width(shape, "model.prenet_dim", sizes.prenet_dim, 8);
    add_depth(shape, "model.num_layers", sizes.num_layers);
    shape.fan_in = static_cast<double>(sizes.d_model);
  }
  return shape;
}

}  // namespace

FamilySpec speech_synthesis_spec() {
  return {.options = config::open_alternative<SpeechSynthesisOptions>(),
          .also_called = {"text2speech", "tts", "text_to_speech", "tacotron2", "tacotron",
                          "speech_generation"},
          .rules = &speech_synthesis_rules,
          .display = [](const Experiment& /*e*/) { return tasks::speech_synthesis_display(); },
          .eval = eval_of_synthesis(),
          .infer = infer_of_synthesis(),
          .plan = FamilyPlan{.work = &work_of_synthesis, .shape = &shape_of_synthesis},
          .data_files = &files_of_synthesis};
}

}  // namespace stretto::experiment
