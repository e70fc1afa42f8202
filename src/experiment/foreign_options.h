#pragma once

#include <span>

#include "config/schema.h"

namespace stretto::experiment {

/// Options of `transformers`, fairseq, OpenNMT-py and Marian that no key's own name or other names
/// lead to: those of the command line, those of things that Stretto does not have, and those whose
/// key is in one family of tasks only. An entry whose key the chosen family lacks is passed over.
///
/// tests/experiment/foreign_options_test.cpp has a hundred options of each toolkit.
std::span<const config::ForeignOption> foreign_options();

}  // namespace stretto::experiment
