#pragma once

#include "tasks/family.h"

namespace stretto::tasks {

/// `stretto embed`: one vector for each line, of any run whose task encodes texts, with a head or
/// without. A line that is too long is cut as texts of the run are. The exit code. Throws
/// Error(kUsage) when the run has no checkpoint, Error(kBadData) when one is damaged or does not
/// fit, Error(kNumeric) at a vector that is not finite: lines that were read together with its line
/// have no output, and a file of them all is not written.
int embed_lines(const EmbedRequest& request, const CommandContext& context);

}  // namespace stretto::tasks
