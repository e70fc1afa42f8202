#include "families/speech_recognition/speech_recognition_spec.h"

#include <cmath>
#include <utility>
#include <vector>

#include "audio/feature_stream.h"
#include "base/error.h"
#include "config/open_part.h"
#include "data/speech/speech_files.h"
#include "experiment/data_files.h"
#include "families/speech_recognition/requests.h"
#include "families/speech_recognition/speech_facts.h"
#include "families/speech_recognition/speech_recognition_display.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "families/speech_recognition/speech_recognition_rules.h"
#include "families/text/command_options.h"
#include "families/text/model_shapes.h"
#include "models/speech/speech_model_options.h"

namespace stretto::experiment {
namespace {

using tasks::SpeechEvalFiles, tasks::SpeechInferArguments;

/// An option that families of text have too, with what it means here.
CommandOption for_speech(CommandOption option, const char* help) {
  option.help = help;
  return option;
}

FamilyCommand eval_of_speech() {
  return {
      .options = {
          command_option(&SpeechEvalFiles::data, for_speech(data_option(),
                                                            "of sounds what data.train takes: a "
                                                            "manifest, a folder, an archive")),
          command_option(&SpeechEvalFiles::predictions,
                         for_speech(predictions_option(),
                                    "of sounds a table: each utterance with its errors, loss, "
                                    "what was said and what was heard")),
          command_option(&SpeechEvalFiles::confusions,
                         {.name = "--confusions",
                          .type = "FILE",
                          .help = "write how often each word was taken for another, left out "
                                  "or added to this file, the most frequent first",
                          .check = must_be_writable("--confusions")})}};
}

// A stream has no file, no list and no n best. An utterance with one label has no tokens.
void check_speech_infer(const Experiment& experiment, const FamilyValues& values) {
  const auto& asked = values.as<SpeechInferArguments>();
  const auto& own = speech_of(experiment);
  if (asked.log_probs && own.has_label()) {
    throw Error(ExitCode::kUsage,
                "stretto infer --log-probs: the model gives an utterance one label, and no tokens",
                "use --json, whose `top` has probabilities of labels");
  }
  if (!asked.stream) return;
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw Error(ExitCode::kUsage, "stretto infer --stream: " + what, hint);
  };
  if (!asked.data.empty()) {
    refuse("the sound comes from stdin, and not from --data", "leave one out");
  }
  if (asked.nbest > 1) {
    refuse("--nbest: words are written as they become certain, of one text",
           "leave --nbest out, or name files");
  }
  if (asked.scores) {
    refuse("--scores: a text has its score at its end, behind its words",
           "use --json, whose last line has it, or name files");
  }
  if (asked.log_probs) refuse("--log-probs: rows are of whole sounds", "name files instead");
  if (own.has_label()) {
    refuse("a label is known at the end of an utterance", "name files instead");
  }
  if (own.decode.reader == "attention") {
    refuse("the attention decoder needs the whole utterance", "set decode.reader=ctc");
  }
  if (const auto problem = audio::stream_obstacle(own.features); !problem.empty()) {
    refuse(problem, "name files instead");
  }
  if (const auto problem = models::stream_problem(own.model); !problem.empty()) {
    refuse(problem, "name files instead");
  }
}

FamilyCommand infer_of_speech() {
  auto nbest = nbest_option();
  nbest.help = "of sounds the N most probable texts, with decode.method = \"beam\", or labels";
  return {
      .options = {command_option(&SpeechInferArguments::data,
                                 {.name = "--data",
                                  .type = "FILE",
                                  .help = "utterances as data.train takes them, beside files: a "
                                          "manifest, a folder, an archive; again for more",
                                  .check = must_exist("check --data")}),
                  command_option(&SpeechInferArguments::nbest, std::move(nbest)),
                  command_option(&SpeechInferArguments::scores,
                                 for_speech(scores_option(),
                                            "of sounds in front of each text its "
                                            "natural log-probability")),
                  command_option(&SpeechInferArguments::log_probs,
                                 {.name = "--log-probs",
                                  .help = "with --json, log_probs: of sounds the natural "
                                          "log-probabilities of all tokens in each row of the "
                                          "model, for other decoders; the blank is the last"}),
                  command_option(&SpeechInferArguments::stream,
                                 {.name = "--stream",
                                  .help = "read 16-bit PCM of one channel at features.rate from "
                                          "stdin, and write words as they become certain"})},
      .check = &check_speech_infer,
      .batch_keys = {"eval.batch_seconds"}};
}

std::vector<data::DataFile> files_of_speech(const Experiment& experiment) {
  return data::speech_data_files(speech_of(experiment).data, files_of_path_keys(experiment));
}

report::Display display_of_speech(const Experiment& experiment) {
  const auto& own = speech_of(experiment);
  return tasks::speech_recognition_display(
      own.has_label() ? tasks::SpeechAnswer::kLabel : tasks::SpeechAnswer::kTranscript,
      own.is_per_utterance() ? tasks::kUtterances : tasks::kWantedLabels);
}

PlannedWork work_of_speech(const Experiment& experiment) {
  const auto& own = speech_of(experiment);
  return {.units = 0.9 * own.data.batch_seconds * frames_per_second(own),
          .assumed = "a micro-batch has nine tenths of data.batch_seconds, of utterances of " +
                     std::to_string(std::llround(usual_frames(own))) + " frames",
          .key = "data.batch_seconds"};
}

// Lists of blocks have keys that no override reaches: such models have the sizes that are given.
ModelShape shape_of_speech(const Experiment& experiment) {
  const models::SpeechModelOptions& model = speech_of(experiment).model;
  ModelShape shape;
  if (model.is<models::ConformerOptions>()) {
    const models::ConformerSizes sizes = models::sizes_of(model.as<models::ConformerOptions>());
    return shape_of_layers(sizes.num_layers, sizes.d_model, sizes.num_heads, sizes.ffn_dim);
  }
  if (model.is<models::DeepSpeech2Options>()) {
    const models::DeepSpeech2Shape network =
        models::shape_of(model.as<models::DeepSpeech2Options>());
    add_width(shape, "model.hidden_dim", network.hidden_dim, 8);
    add_width(shape, "model.output_dim", network.output_dim, 8);
    add_depth(shape, "model.num_layers", network.num_layers);
    shape.fan_in = static_cast<double>(network.hidden_dim + network.recurrent_width());
  }
  return shape;
}

}  // namespace

FamilySpec speech_recognition_spec() {
  return {
      .options = config::open_alternative<SpeechRecognitionOptions>(),
      .also_called = {"asr", "speech2text", "speech_to_text", "stt", "speech",
                      "automatic_speech_recognition", "speech_commands", "audio_classification"},
      .rules = &speech_recognition_rules,
      .display = &display_of_speech,
      .eval = eval_of_speech(),
      .infer = infer_of_speech(),
      .plan = FamilyPlan{.work = &work_of_speech, .shape = &shape_of_speech},
      .data_files = &files_of_speech};
}

}  // namespace stretto::experiment
