#pragma once

#include "experiment/command_option.h"

/// Options of commands that several families have. Each binds them to members of its own
/// (command_option()), or says which key they state.
namespace stretto::experiment {

CommandOption data_option();         ///< `eval --data`: texts
CommandOption predictions_option();  ///< `eval --predictions`: a text
CommandOption per_line_option();     ///< `eval --per-line`: a text
CommandOption nbest_option();        ///< `infer --nbest`: a number
CommandOption scores_option();       ///< `infer --scores`: a flag

/// `stretto embed` of every family whose model encodes texts: tasks::EmbedArguments.
FamilyCommand embed_command();

}  // namespace stretto::experiment
