#include "cli/notes.h"

#include "base/log.h"
#include "lint/lint.h"

namespace stretto::cli {

void tell_notes(const config::Origins& origins) {
  for (const auto& note : origins.notes()) log::warn(note.text());
}

void tell_unread_keys(const experiment::LoadedExperiment& experiment) {
  for (const auto& finding : lint::lint(experiment.options, experiment.origins)) {
    if (finding.code != lint::kUnreadKey) continue;
    log::warn(finding.place + ": `" + finding.key + "`: " + finding.reason + "; " + finding.fix);
  }
}

}  // namespace stretto::cli
